//! The end of a run: the answer or the object on stdout, everything else on stderr.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use llm_do::approval::ApprovalRequest;
use llm_do::event::Status;
use llm_do::{RunError, RunReport};
use llm_do_core::counted;
use llm_do_record::{question_id, short_id};

use crate::arguments::Output;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, usage_line};
use crate::run_object::{FinishedRun, RunObject, unfit_answer};
use crate::text::{visible, visible_line};
use crate::{failure_hint, text};

/// So many characters of an answer that does not fit are shown.
const MAX_SHOWN: usize = 2_000;

impl Host {
    /// Prints the end of a run, each part on its stream.
    pub(crate) fn print(&self, result: &Result<RunReport, RunError>) -> Exit {
        let (report, error) = match result {
            Ok(report) => (report, None),
            Err(error) => (&*error.report, Some(error_message(error))),
        };
        if self.stdout_closed.load(Ordering::Relaxed) {
            return if output::has_failed() { Exit::Failed } else { Exit::Unread };
        }
        let finished = FinishedRun {
            report,
            exit: self.exit_of(report),
            error,
            hint: failure_hint::for_user(report, &self.limit_sources()),
            partial: self.answer.unfinished(),
            diagnostics: &self.project.notices,
            warnings: self.cassette_warnings(),
        };
        match self.output {
            Output::Text => self.answer.finish(report),
            Output::Json => drop(output::to_stdout(&RunObject::new(&finished).to_line())),
            Output::Jsonl => drop(output::to_stdout(&RunObject::new(&finished).into_last_line().to_line())),
        }
        self.explain(&finished);
        finished.exit
    }

    /// How the process ends after a run: what ended the run shows in the exit code.
    pub(crate) fn exit_of(&self, report: &RunReport) -> Exit {
        match (Exit::from_report(report), self.interrupts.signal()) {
            (Exit::Interrupted, Some(signal)) => signal.into(),
            (exit, _) => exit,
        }
    }

    /// Says on stderr what the answer alone does not say.
    fn explain(&self, finished: &FinishedRun<'_>) {
        let report = finished.report;
        let mut lines: Vec<String> =
            finished.warnings.iter().map(|warning| format!("warning: {}", visible(warning))).collect();
        lines.extend(finished.error.iter().map(|error| format!("error: {}", visible(error))));
        let raw = unfit_answer(report).filter(|_| self.output == Output::Text);
        lines.extend(raw.map(|raw| format!("the answer was:\n{}", bounded(&raw))));
        let was_cut =
            matches!(finished.exit, Exit::Interrupted | Exit::Terminated | Exit::HungUp | Exit::TimedOut);
        if self.verbose > 0 || was_cut {
            lines.push(visible(report.trace().to_string().trim_end()));
        }
        if finished.exit == Exit::Denied && report.nobody_to_ask && finished.error.is_none() {
            lines.push("notice: a call had to ask and nobody could be asked, so it was denied".to_owned());
        }
        lines.extend(finished.hint.iter().map(|hint| format!("hint: {}", visible(hint))));
        if self.verbose > 0 || was_cut {
            lines.push(used(report));
        }
        lines.extend(resume_line(report));
        if !lines.is_empty() {
            self.console.line(&self.console.paint.message(&lines.join("\n")));
        }
    }
}

/// How to continue a run that has no result yet.
pub(crate) fn resume_line(report: &RunReport) -> Option<String> {
    let resume = report.can_resume.then(|| format!("to continue: llm-do resume {}", short_id(report.id)))?;
    Some(match report.status {
        Status::Parked => format!("{}\n{resume}", open_questions(report)),
        _ => resume,
    })
}

/// What a parked run waits for, and how that is answered.
fn open_questions(report: &RunReport) -> String {
    let open = report.open_requests();
    let line = |request: &Arc<ApprovalRequest>| {
        let id = question_id(report.id, &request.id);
        format!("  {id}  {} wants to {}", visible_line(&request.path), visible_line(&request.description))
    };
    let lines: Vec<String> = open.iter().map(line).collect();
    format!(
        "waits for {}:\n{}\nto answer: llm-do approve ID, or llm-do deny ID",
        counted(open.len(), "answer"),
        lines.join("\n")
    )
}

/// Why a run gave no answer, without the hint, which may be written for a model.
fn error_message(error: &RunError) -> String {
    match &error.report.failure {
        Some(failure) => failure.message.clone(),
        None => error.to_string(),
    }
}

/// What a run used, and with which models.
fn used(report: &RunReport) -> String {
    let models: Vec<&str> = report.usage.iter().map(|(model, _)| model.as_str()).collect();
    let with = if models.is_empty() { String::new() } else { format!(" with {}", models.join(", ")) };
    format!("{} in {:.1} s{with}", usage_line(&report.usage.total()), report.duration.as_secs_f64())
}

/// The beginning of a text, a little to the right.
fn bounded(text: &str) -> String {
    let count = text.chars().count();
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    let shown = text::printable(&shown).replace('\n', "\n    ");
    match count.checked_sub(MAX_SHOWN).filter(|left| *left > 0) {
        Some(left) => format!("    {shown}\n    (and {left} more characters, which `--output json` shows)"),
        None => format!("    {shown}"),
    }
}
