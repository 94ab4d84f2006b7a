//! One instance of the toolset: considers a command text, and runs it.

use std::sync::Arc;

use llm_do_core::{Approval, Assessment, Scope, SecretFile, Subject};
use llm_do_secrets::SecretFiles;
use serde_json::{Value, json};

use super::confinement::{Confinement, Purpose};
use super::execute::{Invocation, Prepared, PreparedStep};
use super::execution_env::ExecutionEnv;
use super::git;
use super::git_secrets;
use super::parse::{Argv, CommandLine, parse};
use super::policy::{Judgment, Policy};
use super::private_paths::private_paths;
use super::protection;
use super::repository::{Asked, Repository};
use super::secrets::{self, Judge, Secrets};
use super::syntax_error::SyntaxError;
use crate::filesystem::Guarded;

/// What one agent call may run, and where.
#[derive(Debug)]
pub(crate) struct ShellSession {
    pub(crate) policy: Policy,
    pub(crate) env: ExecutionEnv,
    pub(crate) confinement: Confinement,
    pub(crate) guarded: Arc<Guarded>,
    pub(crate) secret_files: Arc<SecretFiles>,
    pub(crate) timeout: u64,
    pub(crate) max_output_bytes: usize,
}

/// A command text, read and judged.
#[derive(Debug)]
pub(crate) struct Considered {
    line: CommandLine,
    pub(crate) judgment: Judgment,
    repositories: Vec<Repository>,
    /// What was found about secret files, by command.
    secrets: Vec<Secrets>,
    /// Whether only a fresh approval lets it run.
    protected: bool,
}

impl ShellSession {
    /// Reads and judges a command text. Looks at files and asks git, but changes nothing.
    pub(crate) async fn consider(self: &Arc<Self>, text: &str) -> Result<Considered, SyntaxError> {
        let line = parse(text)?;
        let (session, judged) = (self.clone(), line.clone());
        let judging = tokio::task::spawn_blocking(move || {
            let mut judgment = session.policy.judge(&judged, &session.env.root);
            for reason in private_paths(&judged, &session.env.root, &session.guarded) {
                judgment = judgment.and(Judgment::new(Approval::Blocked, reason));
            }
            let protection = protection::reasons(&judged, &judgment, &session.env.root, &session.guarded);
            (judgment, protection)
        });
        let (mut judgment, protection) = judging
            .await
            .unwrap_or_else(|_| (Judgment::new(Approval::Blocked, "it could not be judged"), Vec::new()));
        let protected = !protection.is_empty();
        judgment = judgment.and(Judgment::from_concerns(protection));
        if let Some(refusal) = self.confinement.refusal() {
            judgment = judgment.and(Judgment::new(Approval::Blocked, refusal));
        }
        let (mut repositories, mut secrets) = (Vec::new(), Vec::new());
        if judgment.approval != Approval::Blocked {
            for argv in line.commands() {
                let repository = self.repository(argv).await;
                judgment = judgment.and(Judgment::from_concerns(repository.concerns.clone()));
                repositories.push(repository);
                let found = self.secrets_of(argv).await;
                judgment = judgment.and(Judgment::from_concerns(found.concerns.clone()));
                secrets.push(found);
            }
        }
        Ok(Considered { line, judgment, repositories, secrets, protected })
    }

    /// Looks for secret files that a command would show.
    async fn secrets_of(self: &Arc<Self>, argv: &[String]) -> Secrets {
        if let Some(arguments) = git_arguments(argv) {
            let judge = Judge { root: &self.env.root, files: &self.secret_files };
            let sandbox = self.confinement.sandbox(Purpose::Probe).ok();
            let asked = sandbox.and_then(|sandbox| Asked::new(arguments, &self.env, sandbox));
            return match asked {
                Some(asked) => git_secrets::find(arguments, &judge, &asked).await,
                None => Secrets::default(),
            };
        }
        let (session, argv) = (self.clone(), argv.to_vec());
        let looking = tokio::task::spawn_blocking(move || {
            let judge = Judge { root: &session.env.root, files: &session.secret_files };
            let (name, arguments) = argv.split_first()?;
            Some(secrets::find(bare_name(name), arguments, &judge))
        });
        let unseen = || Secrets {
            concerns: vec!["nobody could look for secret files".to_owned()],
            ..Secrets::default()
        };
        looking.await.map_or_else(|_| unseen(), Option::unwrap_or_default)
    }

    async fn repository(&self, argv: &[String]) -> Repository {
        match git_arguments(argv) {
            Some(arguments) => match self.confinement.sandbox(Purpose::Probe) {
                Ok(sandbox) => Repository::look_up(arguments, &self.env, sandbox).await,
                Err(error) => Repository { concerns: vec![error], ..Repository::default() },
            },
            None => Repository::default(),
        }
    }

    /// Finds the programs of a command line and writes down exactly what is executed.
    pub(crate) fn prepare(&self, considered: &Considered) -> Result<Prepared, String> {
        let mut repositories = considered.repositories.iter();
        let mut secrets = considered.secrets.iter();
        let mut prepare_command = |argv: &Argv| {
            let repository = repositories.next().cloned().unwrap_or_default();
            let argv = match (argv.split_first(), secrets.next()) {
                (Some((name, arguments)), Some(secrets)) => {
                    [std::slice::from_ref(name), &secrets.complete(arguments)].concat()
                }
                _ => argv.clone(),
            };
            self.invocation(&argv, &repository)
        };
        let mut steps = Vec::new();
        for step in &considered.line.steps {
            let pipeline = step.pipeline.iter().map(&mut prepare_command).collect::<Result<_, _>>()?;
            steps.push(PreparedStep { after: step.after, pipeline });
        }
        Ok(Prepared { steps })
    }

    fn invocation(&self, argv: &[String], repository: &Repository) -> Result<Invocation, String> {
        let (name, arguments) = argv.split_first().ok_or("there is a command without a program")?;
        let program = self.env.find(name)?;
        let reader = git_arguments(argv).is_some_and(git::is_reader);
        let environment = match bare_name(name) {
            "git" if reader => git::READER_ENVIRONMENT.to_vec(),
            "sort" => SORT_ENVIRONMENT.to_vec(),
            _ => Vec::new(),
        };
        let arguments = git_arguments(argv)
            .map_or_else(|| arguments.to_vec(), |arguments| git::hardened(arguments, repository.empty_tree));
        Ok(Invocation { name: name.clone(), program, arguments, environment })
    }

    /// What speaks against a command, and what a person should know about its sandbox.
    fn reason(&self, considered: &Considered) -> Option<String> {
        let asks = considered.judgment.approval == Approval::Ask;
        let loosened = self.confinement.loosened().into_iter();
        let missing = self.confinement.missing().filter(|_| asks);
        let reasons: Vec<String> =
            considered.judgment.reasons.iter().cloned().chain(loosened).chain(missing).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Tells the gate what a command text would do.
    pub(crate) fn assessment(&self, considered: &Considered) -> Assessment {
        let commands: Vec<String> = considered.line.commands().map(show).collect();
        let directory = show([&self.env.root.path().display().to_string()]);
        let mut assessment = Assessment::new(
            considered.judgment.approval,
            format!("run {} in {directory}", commands.join(" and ")),
        );
        let reasons = &considered.judgment.reasons;
        assessment.reason = self.reason(considered);
        assessment.protected = considered.protected;
        assessment.preview = self.prepare(considered).ok().map(|prepared| preview(&prepared));
        assessment.subjects = considered.line.commands().cloned().map(Subject::Command).collect();
        assessment.scopes.extend(prefixes(&assessment.subjects));
        assessment.subjects.extend(considered.secret_files().cloned().map(Subject::SecretFile));
        let allowed = considered.secrets.iter().flat_map(|secrets| &secrets.allowed);
        let secret_files: Vec<&SecretFile> = considered.secret_files().chain(allowed).collect();
        assessment.precondition = Some(match secret_files.is_empty() {
            true => json!({ "asks_because": reasons }),
            false => json!({ "asks_because": reasons, "secret_files": secret_files }),
        });
        assessment
    }
}

impl Considered {
    /// Returns whether a call still is what was approved: nothing speaks against it that was not known then.
    pub(crate) fn is_covered_by(&self, precondition: Option<&Value>) -> bool {
        if !self.secret_files().all(|file| is_approved(file, precondition)) {
            return false;
        }
        let known = precondition.and_then(|value| value["asks_because"].as_array());
        let is_known = |reason: &String| known.is_some_and(|known| known.iter().any(|other| other == reason));
        match self.judgment.approval {
            Approval::PreApproved => true,
            Approval::Ask => !self.judgment.reasons.is_empty() && self.judgment.reasons.iter().all(is_known),
            Approval::Blocked => false,
        }
    }

    /// The secret files that the line would show.
    fn secret_files(&self) -> impl Iterator<Item = &SecretFile> {
        self.secrets.iter().flat_map(|secrets| &secrets.read)
    }

    /// Says why a line is not covered by what was approved.
    pub(crate) fn reasons(&self) -> String {
        let secret = |file: &SecretFile| format!("`{}` is a secret file ({})", file.path, file.what);
        let reasons: Vec<String> =
            self.judgment.reasons.iter().cloned().chain(self.secret_files().map(secret)).collect();
        reasons.join("; ")
    }

    /// Says which secret files are left out of what the line shows.
    pub(crate) fn left_out(&self) -> Option<String> {
        let mut notes: Vec<&str> =
            self.secrets.iter().filter_map(|secrets| secrets.left_out.as_deref()).collect();
        notes.dedup();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

fn is_approved(file: &SecretFile, precondition: Option<&Value>) -> bool {
    let approved = precondition.and_then(|value| value["secret_files"].as_array());
    approved.is_some_and(|files| files.contains(&json!(file)))
}

fn git_arguments(argv: &[String]) -> Option<&[String]> {
    let (name, arguments) = argv.split_first()?;
    (bare_name(name) == "git").then_some(arguments)
}

fn bare_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// With these `sort` writes nothing that it was not told to write: what it cannot hold in memory, it refuses.
const SORT_ENVIRONMENT: [(&str, &str); 1] = [("TMPDIR", "/dev/null")];

/// The prefixes that a person may allow: the program, and its subcommand where it comes first. Of git only
/// with the subcommand, as its other flags can run anything.
fn prefixes(subjects: &[Subject]) -> Vec<Scope> {
    let Some(Subject::Command(argv)) = subjects.first() else { return Vec::new() };
    let lengths = match argv.as_slice() {
        [program, word, ..] if program == "git" && !word.starts_with('-') => 2..=2,
        [program, ..] if program == "git" => return Vec::new(),
        [_, word, ..] if !word.starts_with('-') => 1..=2,
        _ => 1..=1,
    };
    let scopes = lengths
        .rev()
        .filter_map(|length| argv.get(..length))
        .map(|prefix| Scope::CommandPrefix(prefix.to_vec()));
    scopes.filter(|scope| scope.covers(subjects)).collect()
}

/// The programs with all their arguments, as they are executed, one on each line.
fn preview(prepared: &Prepared) -> String {
    let invocations = prepared.steps.iter().flat_map(|step| &step.pipeline);
    let line = |invocation: &Invocation| {
        let program = invocation.program.display().to_string();
        let is_exclusion = |word: &&String| word.starts_with(git_secrets::EXCLUDED);
        let excluded = invocation.arguments.iter().filter(is_exclusion).count();
        let arguments = invocation.arguments.iter().filter(|word| !is_exclusion(word));
        let shown = show(std::iter::once(&program).chain(arguments));
        match excluded {
            0 => shown,
            count => format!("{shown} (and {count} pathspecs that leave secret files out)"),
        }
    };
    invocations.map(line).collect::<Vec<_>>().join("\n")
}

/// Writes words so that each can be told from the next, and nothing invisible stays invisible.
fn show<'w>(argv: impl IntoIterator<Item = &'w String>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^~{}".contains(c);
    let show = |word: &String| {
        let escaped = format!("{word:?}");
        let visible = escaped.len() == word.len() + 2;
        match visible {
            true if !word.is_empty() && word.chars().all(plain) => word.clone(),
            true if !word.contains('\'') => format!("'{word}'"),
            _ => escaped,
        }
    };
    argv.into_iter().map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(argv: &[&str]) -> String {
        show(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_shown_apart_and_nothing_invisible_stays_so() {
        assert_eq!(shown(&["ls", "-la", "a b", ""]), "ls -la 'a b' ''");
        assert_eq!(shown(&["echo", "a\u{202e}b", "it's", "x\ny"]), r#"echo "a\u{202e}b" "it's" "x\ny""#);
    }

    #[test]
    fn prefixes_cover_all_parts_or_are_not_offered() {
        let command = |argv: &[&str]| Subject::Command(argv.iter().map(|word| (*word).to_owned()).collect());
        let prefix =
            |argv: &[&str]| Scope::CommandPrefix(argv.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(
            prefixes(&[command(&["cargo", "test", "-q"])]),
            [prefix(&["cargo", "test"]), prefix(&["cargo"])]
        );
        assert_eq!(
            prefixes(&[command(&["git", "log"]), command(&["git", "log", "-1"])]),
            [prefix(&["git", "log"])]
        );
        assert_eq!(prefixes(&[command(&["git", "-c", "a=b", "log"])]), []);
        assert_eq!(prefixes(&[command(&["mv", "a", "b"]), command(&["ls"])]), []);
    }
}
