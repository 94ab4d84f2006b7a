//! `llm-do approvals`, `approve` and `deny`: questions of runs, answered from another process.

use std::fmt::Write;
use std::path::Path;

use llm_do::approval::{Answer, Scope};
use llm_do_core::counted;
use llm_do_record::{AnswerError, MIN_ID_CHARS, Reader, RecordedQuestion, short_id};
use serde_json::{Value, json};

use crate::approvals::shown_question;
use crate::arguments::{ApprovalsArguments, ApproveArguments, DenyArguments, ListOutput, RecordArguments};
use crate::command_error::CommandError;
use crate::console::Paint;
use crate::exit::Exit;
use crate::record::{self, RecordTarget, age, project_of};
use crate::run_object::QuestionObject;
use crate::text::visible_line;
use crate::{child, host, output, wrap};

/// Lists the questions that wait, or shows one.
pub(crate) fn approvals(arguments: &ApprovalsArguments) -> Result<Exit, CommandError> {
    if let Some(id) = &arguments.id {
        return show(&find(&arguments.record, id)?, arguments.output);
    }
    let mut questions = match record::reader(&arguments.record)? {
        Some(reader) => all(&reader)?,
        None => Vec::new(),
    };
    if let Some(project) = arguments.project.as_deref().map(project_of) {
        questions.retain(|question| question.project.as_deref() == Some(&project));
    }
    match arguments.output {
        ListOutput::Json => {
            let list: Vec<Value> = questions.iter().map(object).collect();
            output::to_stdout(&serde_json::to_string_pretty(&list).unwrap_or_default());
        }
        ListOutput::Text if questions.is_empty() => output::to_stderr("no question waits for an answer"),
        ListOutput::Text => drop(output::to_stdout(wrap::for_stdout(&table(&questions)).trim_end())),
    }
    Ok(Exit::Done)
}

/// Allows a call.
pub(crate) fn approve(arguments: &ApproveArguments) -> Result<Exit, CommandError> {
    let question = answerable(&arguments.record, &arguments.id)?;
    let answer = match (&arguments.edit, &arguments.session) {
        (Some(edited), _) => Answer::Edit(edited_arguments(edited)?),
        (None, Some(scope)) => Answer::Session(scope_of(&question, scope)?),
        (None, None) => Answer::Once,
    };
    give(&arguments.record, &question, answer, "approved")
}

/// Denies a call.
pub(crate) fn deny(arguments: &DenyArguments) -> Result<Exit, CommandError> {
    let question = answerable(&arguments.record, &arguments.id)?;
    give(&arguments.record, &question, Answer::Deny(arguments.reason.clone()), "denied")
}

/// Finds a question that is to be answered. What an agent starts does not answer for the user.
fn answerable(record: &RecordArguments, id: &str) -> Result<RecordedQuestion, CommandError> {
    child::refuse("answer approvals")?;
    find(record, id)
}

/// Writes an answer into the record, and says how the run goes on.
fn give(
    record: &RecordArguments,
    question: &RecordedQuestion,
    answer: Answer,
    verb: &str,
) -> Result<Exit, CommandError> {
    let Some(store) = RecordTarget::new(record).open()? else { return Ok(Exit::Failed) };
    let (run, key) = (question.run, question.request.id.clone());
    host::block_on(async {
        let given = store.answer(run, key, answer, who()).await;
        given.map_err(|error| refused(question, error))
    })?;
    output::to_stdout(&format!("{verb}: {}", one_line(question)));
    let reader = record::reader(record)?;
    let next = reader.map(|reader| next_step(&reader, question)).transpose()?.flatten();
    next.iter().for_each(|next| output::to_stderr(next));
    Ok(Exit::Done)
}

fn refused(question: &RecordedQuestion, error: AnswerError) -> CommandError {
    match error {
        AnswerError::Store(error) => CommandError::failed(error.to_string()),
        other => CommandError::failed(format!("{} cannot be answered: {other}", question.id())),
    }
}

/// Says how a run goes on after an answer; nothing if it is still going on by itself.
fn next_step(reader: &Reader, answered: &RecordedQuestion) -> Result<Option<String>, CommandError> {
    let holder = reader.holder(answered.run).map_err(|error| CommandError::failed(error.to_string()))?;
    if holder.is_some() {
        return Ok(None);
    }
    let id = short_id(answered.run);
    let open = all(reader)?;
    let left = open.iter().filter(|other| other.run == answered.run && is_open(other)).count();
    Ok(Some(match left {
        0 => format!("to continue: llm-do resume {id}"),
        left => format!("run {id} waits for {} more", counted(left, "answer")),
    }))
}

fn is_open(question: &RecordedQuestion) -> bool {
    question.answered_by.is_none() && !question.has_expired()
}

/// Who gives an answer, for the record and for whoever comes second.
fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| "the user".to_owned());
    format!("{user} (process {})", std::process::id())
}

fn edited_arguments(edited: &str) -> Result<Value, CommandError> {
    let text = match edited.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(Path::new(path)).map_err(|error| {
            CommandError::usage(format!("`{}` cannot be read: {error}", visible_line(path)))
        })?,
        None => edited.to_owned(),
    };
    llm_do_core::parse_strict(&text).map_err(|error| {
        CommandError::with_hint(
            format!("the edited arguments are not valid JSON: {error}"),
            "give all arguments of the call as an object, or `@FILE`",
        )
    })
}

fn scope_of(question: &RecordedQuestion, text: &str) -> Result<Scope, CommandError> {
    if text == "exact" {
        return Ok(Scope::Exact);
    }
    let scopes = &question.request.scopes;
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.and_then(|index| scopes.get(index)).cloned().ok_or_else(|| {
        CommandError::with_hint(
            format!("`{}` is not a scope of this question", visible_line(text)),
            format!("give `exact` for equal calls{}", numbered(scopes)),
        )
    })
}

fn numbered(scopes: &[Scope]) -> String {
    let line =
        |(index, scope): (usize, &Scope)| format!("\n  {}  {}", index + 1, visible_line(&scope.to_string()));
    let lines: String = scopes.iter().enumerate().map(line).collect();
    if lines.is_empty() { lines } else { format!(", or a number:{lines}") }
}

fn all(reader: &Reader) -> Result<Vec<RecordedQuestion>, CommandError> {
    reader.questions().map_err(|error| CommandError::failed(error.to_string()))
}

/// Finds a question by the beginning of its id.
fn find(record: &RecordArguments, id: &str) -> Result<RecordedQuestion, CommandError> {
    let shown = visible_line(id);
    if id.chars().count() < MIN_ID_CHARS {
        return Err(CommandError::with_hint(
            format!("`{shown}` is too short for the id of a question"),
            format!("give {MIN_ID_CHARS} or more characters of an id of `llm-do approvals`"),
        ));
    }
    let reader = record::reader(record)?;
    let mut found = reader.map(|reader| all(&reader)).transpose()?.unwrap_or_default();
    found.retain(|question| question.id().starts_with(id));
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CommandError::with_hint(
            format!("no question that waits begins with `{shown}`"),
            "`llm-do approvals` lists them",
        )),
        _ => Err(CommandError::with_hint(
            format!("several questions begin with `{shown}`:\n{}", table(&found).trim_end()),
            "give more of the id",
        )),
    }
}

fn show(question: &RecordedQuestion, form: ListOutput) -> Result<Exit, CommandError> {
    if form == ListOutput::Json {
        output::to_stdout(&serde_json::to_string_pretty(&object(question)).unwrap_or_default());
        return Ok(Exit::Done);
    }
    let mut text = format!("question {}, asked {} ago", question.id(), age(question.asked));
    if let Some(expires) = question.request.expires {
        let _ = write!(text, ", to be answered by {}", expires.strftime("%Y-%m-%d %H:%M:%S UTC"));
    }
    if let Some(by) = &question.answered_by {
        let _ = write!(text, ", answered by {}", visible_line(by));
    }
    text.push_str(&shown_question(&question.request, Paint::none(), 0));
    let scopes = &question.request.scopes;
    if !scopes.is_empty() {
        let _ = write!(text, "scopes of --session: exact (equal calls){}", numbered(scopes));
    }
    output::to_stdout(text.trim_end());
    Ok(Exit::Done)
}

fn table(questions: &[RecordedQuestion]) -> String {
    let mut text = format!("{:13}  {:>4}  {:9}  what\n", "id", "age", "state");
    for question in questions {
        let state = match (&question.answered_by, question.has_expired()) {
            (Some(_), _) => "answered",
            (None, true) => "expired",
            (None, false) => "open",
        };
        let (id, age) = (question.id(), age(question.asked));
        let _ = writeln!(text, "{id:13}  {age:>4}  {state:9}  {}", one_line(question));
    }
    text
}

fn one_line(question: &RecordedQuestion) -> String {
    let request = &question.request;
    format!("{} wants to {}", visible_line(&request.path), visible_line(&request.description))
}

fn object(question: &RecordedQuestion) -> Value {
    let mut object =
        serde_json::to_value(QuestionObject::new(question.run, &question.request)).unwrap_or_default();
    object["project"] = json!(question.project);
    object["asked"] = json!(question.asked.to_string());
    object["answered_by"] = json!(question.answered_by);
    object
}
