//! Approvals: levels, assessments, requests, answers and the approver that gives them.

use std::fmt;
use std::future::Future;
use std::path::{Component, Path};

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Access, Digest, Failure, Key, Money, Name, Payload, visible_line};

/// What a definition, rule or assessment says about a call.
///
/// Ordered from loose to strict, so the strictest of several is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Runs without a question.
    PreApproved,
    /// Waits for an approval.
    Ask,
    /// Never runs.
    Blocked,
}

impl Approval {
    /// Returns the name that files use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreApproved => "pre_approved",
            Self::Ask => "ask",
            Self::Blocked => "blocked",
        }
    }
}

/// How a run treats what must ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Asks the approver; without one, denies.
    #[default]
    Prompt,
    /// Allows what must ask. Never lifts a block.
    ApproveAll,
    /// Denies what must ask and ignores rules that loosen.
    RejectAll,
    /// Asks the approver; a question that nobody answers is left open. The run ends where it waits for the answer, and is
    /// resumed once there is one.
    Park,
}

/// A tool's own judgment of one call: what would it do?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Stricter or looser than the definition, but never looser than a block.
    pub approval: Approval,
    /// Why, where the approval needs words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the call would do, for a person.
    pub description: String,
    /// A preview such as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// What the call touches, for scopes to be matched against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
    /// Scopes that a person may grant instead of exactly this call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// What must still hold when the call runs (the digest of the old file, for instance).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Value>,
    /// Asks each time: no rule loosens it, no grant covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Why the call cannot be done, if that is known before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Assessment {
    /// An assessment that says no more than a level and what the call would do.
    pub fn new(approval: Approval, description: impl Into<String>) -> Self {
        Self {
            approval,
            reason: None,
            description: description.into(),
            preview: None,
            subjects: Vec::new(),
            scopes: vec![Scope::Tool],
            precondition: None,
            protected: false,
            failure: None,
        }
    }

    /// The assessment of a call that cannot be done. Nobody is asked about it: the tool sees to it that the call fails.
    pub fn cannot(failure: Failure) -> Self {
        let assessment = Self::new(Approval::PreApproved, format!("nothing: {}", failure.message));
        Self { failure: Some(failure), ..assessment }
    }

    /// Returns the secret files that the call reads.
    pub fn secret_files(&self) -> impl Iterator<Item = &SecretFile> {
        secret_files(&self.subjects)
    }
}

/// Something that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A path, as the tool understands it.
    Path(String),
    /// A command with its arguments.
    Command(Vec<String>),
    /// A secret file that the call reads. Such a call asks, whatever rules say, and no mode answers for a person.
    SecretFile(SecretFile),
}

/// A file that holds a secret, as it was when the call was judged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretFile {
    /// The path, as the tool understands it.
    pub path: String,
    /// What is secret about it, such as `private key`.
    pub what: String,
    /// The digest of its content.
    pub content: Digest,
}

/// How much a grant covers. Scopes are data, matched by the gate and not by the tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Exactly this call.
    Exact,
    /// Every call of this tool by this agent.
    Tool,
    /// Calls of this tool whose paths all lie in this directory.
    Directory(String),
    /// Calls of this tool whose commands all begin with these words.
    CommandPrefix(Vec<String>),
    /// Calls of this tool that read no other secrets than these files with this content.
    SecretFiles(Vec<SecretFile>),
}

impl Scope {
    /// Returns whether a call that touches these subjects lies within the scope. [`Scope::Exact`] is compared
    /// by digest, not here.
    pub fn covers(&self, subjects: &[Subject]) -> bool {
        match self {
            Self::Exact => false,
            Self::Tool => secret_files(subjects).next().is_none(),
            Self::Directory(directory) => {
                !subjects.is_empty() && subjects.iter().all(|subject| is_path_below(subject, directory))
            }
            Self::CommandPrefix(prefix) => {
                !subjects.is_empty()
                    && !prefix.is_empty()
                    && subjects.iter().all(|subject| begins_with(subject, prefix))
            }
            Self::SecretFiles(granted) => {
                let mut read = secret_files(subjects).peekable();
                read.peek().is_some() && read.all(|file| granted.contains(file))
            }
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exactly this call"),
            Self::Tool => f.write_str("every call of this tool"),
            Self::Directory(directory) => write!(f, "this tool below `{directory}`"),
            Self::CommandPrefix(message) => write!(f, "commands that begin with `{}`", message.join(" ")),
            Self::SecretFiles(files) => {
                let paths: Vec<String> = files.iter().map(|file| format!("`{}`", file.path)).collect();
                write!(f, "reading {} with this tool, while the content stays the same", paths.join(" and "))
            }
        }
    }
}

fn secret_files(subjects: &[Subject]) -> impl Iterator<Item = &SecretFile> {
    subjects.iter().filter_map(|subject| match subject {
        Subject::SecretFile(file) => Some(file),
        Subject::Path(_) | Subject::Command(_) => None,
    })
}

fn is_path_below(subject: &Subject, directory: &str) -> bool {
    let Subject::Path(path) = subject else { return false };
    let plain = |path: &Path| path.components().all(|part| !matches!(part, Component::ParentDir));
    let (path, directory) = (Path::new(path), Path::new(directory));
    plain(path) && plain(directory) && path.starts_with(directory)
}

fn begins_with(subject: &Subject, prefix: &[String]) -> bool {
    matches!(subject, Subject::Command(message) if message.starts_with(prefix))
}

/// A question to a person: may this call run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id, unique in its run: the key of the call.
    pub id: Key,
    /// The chain of callers, such as `main > organize() > namer > write_file`. Written as `chain`, as the
    /// event that carries the request has a `path` of its own.
    #[serde(rename = "chain")]
    pub path: String,
    /// The agent in whose name the call is made.
    #[serde(rename = "caller")]
    pub agent: Name,
    /// The tool, agent or inner effect.
    #[serde(rename = "tool")]
    pub name: Name,
    /// The tool's own name, where the agent calls it by an alias: the name that says what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<Name>,
    /// The toolset, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Name>,
    /// The final arguments: exactly these run.
    pub arguments: Payload,
    /// What the callable may do at most.
    pub access: Access,
    /// What the call would do.
    pub description: String,
    /// Why it asks.
    pub reason: String,
    /// A preview such as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// What the call touches, by which [`Scope::covers`] tells whether a scope would cover it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
    /// The files that an agent is given, as they were when they were looked at: only these are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<ShownAttachment>,
    /// Scopes that may be granted for the session, besides exactly this call. Empty where nothing may be granted.
    pub scopes: Vec<Scope>,
    /// What was wrong with the arguments of the previous answer, where it edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_problem: Option<String>,
    /// What exactly is asked about: arguments, files and what the tool found. An answer that is given elsewhere, or later,
    /// holds for this and nothing else. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Until when it can be answered. Afterwards the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// Written for a terminal: control and invisible characters of the model are shown as escapes, so that a call cannot
/// hide what it does.
impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wants to {}", visible_line(&self.path), visible_line(&self.description))?;
        let arguments = self.arguments.text();
        let preview = self.preview.as_deref().unwrap_or_default();
        for line in arguments.lines().chain(preview.lines()) {
            write!(f, "\n  {}", visible_line(line))?;
        }
        Ok(())
    }
}

/// A file that a call is given, as a person is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAttachment {
    /// Where it lies, links resolved; its name where the bytes were given. Nothing in it is written out.
    pub name: String,
    /// The media type, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The size in bytes.
    pub bytes: u64,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Allows this one call.
    Once,
    /// Allows this call and, until the session ends, what the scope covers.
    Session(Scope),
    /// Allows the call with other arguments.
    Edit(Value),
    /// Asks again, with other arguments: whoever answers sees first what the call would do with them.
    Revise(Value),
    /// Denies it, with words that the model reads.
    Deny(String),
    /// Stops the run.
    Stop,
    /// Leaves the question open. The run ends where it waits for the answer, and is resumed once there is one.
    Park,
}

/// A question about money: may the budget grow?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtensionRequest {
    /// The chain of callers that ran out.
    pub path: String,
    /// What ran out.
    pub exhausted: Exhausted,
}

/// A budget that does not suffice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    /// What is limited.
    pub what: Quantity,
    /// Who set the limit: an agent's name, or the run.
    pub owner: String,
    /// The limit.
    pub limit: u64,
    /// What is used already.
    pub used: u64,
    /// What the next step would need.
    pub needed: u64,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Tokens.
    Tokens,
    /// Billionths of a dollar.
    Cost,
    /// Tool and agent calls.
    ToolCalls,
    /// Requests to models.
    Requests,
}

impl Quantity {
    /// Writes an amount of it for a person.
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Cost => Money(amount).to_string(),
            Self::ToolCalls if amount == 1 => "1 tool call".to_owned(),
            Self::ToolCalls => format!("{amount} tool calls"),
            Self::Requests if amount == 1 => "1 model request".to_owned(),
            Self::Requests => format!("{amount} model requests"),
        }
    }

    /// What a person counts it in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "US dollars",
            Self::ToolCalls => "calls",
            Self::Requests => "requests",
        }
    }

    /// The key of `limits`, in a manifest or an agent file, that limits it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::ToolCalls => "tool_calls",
            Self::Requests => "requests",
        }
    }

    /// Reads an amount of it that a person wrote; nothing where it is none, or not more than nothing.
    pub fn read(self, text: &str) -> Option<u64> {
        let text = text.trim().trim_start_matches('$');
        let amount = match self {
            Self::Cost => text.parse().ok().map(|dollars| Money::from_dollars(dollars).0),
            Self::Tokens | Self::ToolCalls | Self::Requests => text.parse().ok(),
        };
        amount.filter(|amount| *amount > 0)
    }
}

impl Exhausted {
    /// The owner of the limits that hold for the whole run.
    pub const THE_RUN: &str = "the run";

    /// Names the key that changes the limit.
    pub fn setting(&self) -> String {
        let owner = if self.owner == Self::THE_RUN { "runtime." } else { "" };
        format!("`{owner}limits.{}` sets the limit", self.what.key())
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |amount| self.what.show(amount);
        let (owner, limit, used) = (&self.owner, show(self.limit), show(self.used));
        // A limit can be too low for the first step: then nothing was used up.
        let state = if self.used == 0 { "too low" } else { "used up" };
        let needed = show(self.needed);
        write!(f, "the limit of {limit} set by {owner} is {state} ({used} used, {needed} more needed)")
    }
}

/// Who answered a question about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnsweredBy {
    /// Where the answer came from.
    pub via: AnsweredVia,
    /// Who gave it, where that is known: for an answer from another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

impl AnsweredBy {
    /// An answer of an approver of this process.
    pub fn approver(via: AnsweredVia) -> Self {
        Self { via, who: None }
    }

    /// An answer that another process gave.
    pub fn other_process(who: impl Into<String>) -> Self {
        Self { via: AnsweredVia::OtherProcess, who: Some(who.into()) }
    }
}

impl fmt::Display for AnsweredBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.via, &self.who) {
            (AnsweredVia::Terminal, None) => f.write_str("a person at the terminal"),
            (AnsweredVia::Tui, None) => f.write_str("a person in the terminal UI"),
            (AnsweredVia::Program, None) => f.write_str("a program"),
            (AnsweredVia::OtherProcess, None) => f.write_str("somebody in another process"),
            (_, Some(who)) => f.write_str(who),
        }
    }
}

/// Where the answer to a question came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnsweredVia {
    /// The question was put at the terminal of the run.
    Terminal,
    /// It was put in the terminal UI.
    Tui,
    /// A program decided: the code that embeds the runtime, or one that the user named.
    Program,
    /// Another process answered it.
    OtherProcess,
}

/// Answers approval requests: a person at a terminal, a program, a test.
///
/// An approver that fails or panics denies. A function that takes the request and returns an [`Answer`], or a future of
/// one, is an approver. One that waits for a person should be async: a function that blocks holds up a thread of the
/// executor.
pub trait Approver: Send + Sync {
    /// Returns what it is, for the record.
    fn via(&self) -> AnsweredVia {
        AnsweredVia::Program
    }

    /// Answers a request. Several requests may be open at once.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>>;

    /// Answers whether a budget may grow, and by how much. Only a person may say yes, so the default is no.
    fn extend<'a>(&'a self, _request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(None))
    }
}

/// Why an approver could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ApproverError(pub String);

impl<F, A> Approver for F
where
    F: Fn(ApprovalRequest) -> A + Send + Sync,
    A: IntoAnswer,
{
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let answer = self(request.clone()).into_answer();
        Box::pin(async move { Ok(answer.await) })
    }
}

/// What a function that approves may return: an [`Answer`], or a future of one.
pub trait IntoAnswer {
    /// Returns the future of the answer.
    fn into_answer(self) -> BoxFuture<'static, Answer>;
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> BoxFuture<'static, Answer> {
        Box::pin(std::future::ready(self))
    }
}

impl<F: Future<Output = Answer> + Send + 'static> IntoAnswer for F {
    fn into_answer(self) -> BoxFuture<'static, Answer> {
        Box::pin(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_scope_never_reaches_beyond_its_directory() {
        let scope = Scope::Directory("notes".into());
        let path = |text: &str| [Subject::Path(text.into())];
        assert!(scope.covers(&path("notes/a.txt")));
        for outside in ["notes/../secret", "notesx/a", "../notes/a", "/notes/a", ""] {
            assert!(!scope.covers(&path(outside)), "{outside}");
        }
        assert!(!scope.covers(&[]));
        assert!(!scope.covers(&[Subject::Path("notes/a".into()), Subject::Path("b".into())]));
    }

    #[test]
    fn a_request_that_is_printed_hides_nothing() {
        let request = ApprovalRequest {
            id: Key::root(),
            path: "main > clean\u{1b}[2Jer".to_owned(),
            agent: "cleaner".into(),
            name: "delete_file".into(),
            own_name: None,
            toolset: None,
            arguments: Payload::new(serde_json::json!({"path": "notes.txt"})),
            access: Access::Write,
            description: "delete \u{202e}notes.txt\ny".to_owned(),
            reason: String::new(),
            preview: Some("- one\n- two\r".to_owned()),
            subjects: Vec::new(),
            attachments: Vec::new(),
            scopes: Vec::new(),
            edit_problem: None,
            digest: None,
            expires: None,
        };
        let printed = request.to_string();
        let lines: Vec<&str> = printed.split('\n').collect();
        assert_eq!(lines[0], r"main > clean\u{1b}[2Jer wants to delete \u{202e}notes.txt\ny");
        assert_eq!(lines[1..], [r#"  {"path":"notes.txt"}"#, "  - one", r"  - two\r"]);
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!(Quantity::Cost.read(" $0.50 "), Some(Money::from_dollars(0.5).0));
        assert_eq!(Quantity::Tokens.read("1000"), Some(1_000));
        for nothing in ["", "0", "-1", "many", "1.5"] {
            assert_eq!(Quantity::ToolCalls.read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn only_a_grant_for_the_same_content_covers_a_secret_file() {
        let file = |path: &str, content: &str| SecretFile {
            path: path.into(),
            what: "password".into(),
            content: Digest::hash(content),
        };
        let reads = |files: &[SecretFile]| -> Vec<Subject> {
            files.iter().cloned().map(Subject::SecretFile).collect()
        };
        let (key, other) = (file("d/.env", "A=1"), file("d/key.pem", "x"));
        let scope = Scope::SecretFiles(vec![key.clone()]);
        assert!(scope.covers(&reads(std::slice::from_ref(&key))));
        assert!(!scope.covers(&reads(&[key.clone(), other.clone()])));
        assert!(!scope.covers(&reads(&[file("d/.env", "A=2")])));
        assert!(!scope.covers(&[Subject::Path("d/.env".into())]));
        for wide in [Scope::Tool, Scope::Directory("d".into()), Scope::CommandPrefix(vec!["cat".into()])] {
            assert!(!wide.covers(&reads(std::slice::from_ref(&key))), "{wide}");
        }
    }

    #[test]
    fn a_command_prefix_compares_whole_message() {
        let scope = Scope::CommandPrefix(vec!["git".into(), "log".into()]);
        let command =
            |message: &[&str]| [Subject::Command(message.iter().map(|word| (*word).to_owned()).collect())];
        assert!(scope.covers(&command(&["git", "log", "-1"])));
        assert!(!scope.covers(&command(&["git", "logs"])));
        assert!(!scope.covers(&command(&["git"])));
    }
}
