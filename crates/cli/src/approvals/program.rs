//! Asks a program: JSON lines over a file descriptor or a Unix socket, several requests open at once.
//!
//! Requests are written as `{"type": "approval_requested", "id": .., "tool": .., ..}`, answers are read as
//! `{"id": .., "decision": "once" | "session" | "edit" | "revise" | "deny" | "stop", ..}`.
//!
//! Every request ends: a line with its id answers it, and denies if the rest of the line cannot be read. What is wrong
//! with a line is written back as `{"type": "answer_refused", ..}`. A channel that breaks, or that carries one unusable
//! line after the other, denies whatever is open and everything after it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do::approval::{Answer, ApprovalRequest, Approver, ApproverError, ExtensionRequest, Scope};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::command_error::CommandError;
use crate::output;
use crate::text::shortened;

/// The longest answer that is read.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// How many lines in a row may answer nothing. Whatever writes more of them is not an approver.
const MAX_STRAY_LINES: u32 = 32;
/// How much of a problem is reported: an unknown key may be as long as its line.
const MAX_PROBLEM_CHARS: usize = 300;
/// How long the end of the answers may take to be noticed after the program reads no more.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Why requests end when the channel does.
pub(super) const GONE: &str = "the program that answers approvals has gone";

/// A program that answers.
pub(crate) struct ProgramApprover(Arc<Channel>);

struct Channel {
    writer: Mutex<Box<dyn Write + Send>>,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    open: HashMap<String, OpenRequest>,
    /// Every id so far: an answer that comes too late differs from one that nobody asked for.
    asked: HashSet<String>,
    /// Why nothing is asked any more.
    closed: Option<String>,
    extensions: u64,
    stray_lines: u32,
}

/// A request without an answer.
struct OpenRequest {
    question: RequestKind,
    answer: oneshot::Sender<Result<ApproverAnswer, String>>,
}

#[derive(Debug, Clone, Copy)]
enum RequestKind {
    Approval,
    Extension,
}

/// What the program decided.
enum ApproverAnswer {
    Call(Answer),
    /// By how much a budget grows, if it does.
    Extension(Option<u64>),
}

/// The part of an answer that says which request it is about.
#[derive(Deserialize)]
struct ReplyId {
    id: String,
}

/// An answer of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproverReply {
    #[serde(rename = "id")]
    _id: String,
    decision: ReplyDecision,
    /// How far a session answer reaches; exactly this call if nothing is said.
    #[serde(default)]
    scope: Option<Scope>,
    /// Why it is denied.
    #[serde(default)]
    message: String,
    /// The arguments to run with.
    #[serde(default)]
    arguments: Option<Value>,
    /// By how much a budget grows.
    #[serde(default)]
    amount: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplyDecision {
    Once,
    Session,
    Edit,
    Revise,
    Deny,
    Stop,
    /// Leaves the question open.
    Park,
    Extend,
}

impl ProgramApprover {
    /// Opens the channel: `3` for a descriptor both ways, `3,4` to read and to write, else a socket's path.
    pub(crate) fn open(channel: &str) -> Result<Self, CommandError> {
        let (reader, writer) = streams(channel).map_err(|error| {
            CommandError::with_hint(
                format!("`--approvals-from {channel}` cannot be opened: {error}"),
                "name an open descriptor (`3`), two (`3,4`), or the path of a Unix socket",
            )
        })?;
        Self::over(reader, writer, || GONE.to_owned()).map_err(|error| CommandError::Other(error.into()))
    }

    /// Asks over two streams. Another function says why, when answers end.
    pub(super) fn over(
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        describe_end: impl FnOnce() -> String + Send + 'static,
    ) -> std::io::Result<Self> {
        let channel = Arc::new(Channel { writer: Mutex::new(writer), requests: Mutex::default() });
        let reading = channel.clone();
        let thread = std::thread::Builder::new().name("llm-do-approvals".to_owned());
        thread.spawn(move || reading.read_answers(BufReader::new(reader), describe_end))?;
        Ok(Self(channel))
    }
}

impl Approver for ProgramApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async move {
            let mut message =
                serde_json::to_value(request).map_err(|error| ApproverError(error.to_string()))?;
            message["type"] = "approval_requested".into();
            match self.0.ask(request.id.to_string(), RequestKind::Approval, &message).await {
                Ok(ApproverAnswer::Call(answer)) => Ok(answer),
                Ok(ApproverAnswer::Extension(_)) => Err(ApproverError(GONE.to_owned())),
                Err(reason) => Err(ApproverError(reason)),
            }
        })
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async move {
            let id = {
                let mut requests = self.0.requests();
                requests.extensions += 1;
                format!("extension-{}", requests.extensions)
            };
            let exhausted = &request.exhausted;
            let message = json!({
                "type": "extension_requested", "id": id, "chain": request.path, "what": exhausted.what,
                "limit": exhausted.limit, "used": exhausted.used, "needed": exhausted.needed,
                "description": exhausted.to_string(),
            });
            match self.0.ask(id, RequestKind::Extension, &message).await {
                Ok(ApproverAnswer::Extension(amount)) => amount,
                Ok(ApproverAnswer::Call(_)) | Err(_) => None,
            }
        })
    }
}

impl Channel {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock()
    }

    /// Sends a request and waits for its answer. Giving the future up forgets the request.
    async fn ask(
        &self,
        id: String,
        question: RequestKind,
        request: &Value,
    ) -> Result<ApproverAnswer, String> {
        let (answer, answered) = oneshot::channel();
        {
            let mut requests = self.requests();
            if let Some(reason) = &requests.closed {
                return Err(reason.clone());
            }
            requests.asked.insert(id.clone());
            requests.open.insert(id.clone(), OpenRequest { question, answer });
        }
        let _forget = ForgetOnDrop { id, channel: self };
        let answered = match self.write(request) {
            Ok(()) => answered.await,
            // A program that does not read any more has mostly ended: its answers end too, and say why.
            Err(error) => match tokio::time::timeout(END_LIMIT, answered).await {
                Ok(answered) => answered,
                Err(_) => return Err(error.to_string()),
            },
        };
        match answered {
            Ok(decided) => decided,
            Err(_closed) => Err(self.requests().closed.clone().unwrap_or_else(|| GONE.to_owned())),
        }
    }

    fn write(&self, message: &Value) -> std::io::Result<()> {
        let mut writer = self.writer.lock();
        let mut line = message.to_string();
        line.push('\n');
        writer.write_all(line.as_bytes())?;
        writer.flush()
    }

    /// Reads answers until the channel ends; then whatever is open is denied.
    fn read_answers(&self, mut reader: BufReader<impl Read>, describe_end: impl FnOnce() -> String) {
        let reason = loop {
            let mut line = Vec::new();
            match reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break describe_end(),
                Ok(read) if read as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") => {
                    break "the program that answers approvals wrote a line of more than 16 MiB".to_owned();
                }
                Ok(_) => {}
            }
            if !line.trim_ascii().is_empty() {
                self.take_line(&line);
            }
            if self.requests().stray_lines >= MAX_STRAY_LINES {
                break format!(
                    "the program that answers approvals wrote {MAX_STRAY_LINES} lines in a row that answer nothing"
                );
            }
        };
        self.close(reason);
    }

    fn close(&self, reason: String) {
        if reason != GONE {
            output::to_stderr(&format!("notice: {reason}; every call that must ask is denied"));
        }
        let mut requests = self.requests();
        requests.closed = Some(reason);
        requests.open.clear();
    }

    /// Answers the request that a line is about, or says what is wrong with the line.
    fn take_line(&self, line: &[u8]) {
        let id = match parse::<ReplyId>(line) {
            Ok(addressed) => addressed.id,
            Err(problem) => {
                return self.refuse_stray(None, &format!("the line has no readable `id`: {problem}"));
            }
        };
        let open = self.requests().open.remove(&id);
        let Some(OpenRequest { question, answer }) = open else { return self.refuse_unasked(&id) };
        let decided = parse_reply(line).and_then(|reply| decided(reply, question));
        match &decided {
            Ok(_) => self.requests().stray_lines = 0,
            Err(problem) => self.report(Some(&id), problem, true),
        }
        // Whoever gave the request up needs no answer.
        let _ = answer.send(decided.map_err(|problem| format!("its answer could not be read: {problem}")));
    }

    /// An answer to a request that has ended may be late, which is nobody's mistake.
    fn refuse_unasked(&self, id: &str) {
        let problem = format!("no open approval has the id `{id}`");
        if self.requests().asked.contains(id) {
            return notice(&problem);
        }
        self.refuse_stray(Some(id), &problem);
    }

    fn refuse_stray(&self, id: Option<&str>, problem: &str) {
        self.requests().stray_lines += 1;
        self.report(id, problem, false);
    }

    /// Says what is wrong with a line, to the person and to the program that wrote it.
    fn report(&self, id: Option<&str>, problem: &str, denied: bool) {
        notice(problem);
        let problem: String = problem.chars().take(MAX_PROBLEM_CHARS).collect();
        let open: Vec<String> = self.requests().open.keys().cloned().collect();
        let id = id.filter(|id| id.len() <= MAX_PROBLEM_CHARS);
        let report =
            json!({"type": "answer_refused", "id": id, "error": problem, "denied": denied, "open": open});
        // A program that is gone is noticed when its answers end.
        let _ = self.write(&report);
    }
}

fn notice(problem: &str) {
    let problem = shortened(problem, MAX_PROBLEM_CHARS);
    output::to_stderr(&format!("notice: an answer to an approval cannot be used: {problem}"));
}

/// Reads an object. A list would be read as the values of its fields in order.
fn parse<T: for<'a> Deserialize<'a>>(line: &[u8]) -> Result<T, String> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err("expected a JSON object".to_owned());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Reads a whole answer. Edited arguments must be JSON in which no number is rounded; the id alone need not be.
fn parse_reply(line: &[u8]) -> Result<ApproverReply, String> {
    let text = str::from_utf8(line).map_err(|error| error.to_string())?;
    llm_do_core::parse_strict(text.trim()).map_err(|error| error.to_string())?;
    parse(line)
}

fn decided(reply: ApproverReply, question: RequestKind) -> Result<ApproverAnswer, String> {
    match question {
        RequestKind::Approval => call_answer(reply).map(ApproverAnswer::Call),
        RequestKind::Extension => extension(&reply).map(ApproverAnswer::Extension),
    }
}

fn call_answer(reply: ApproverReply) -> Result<Answer, String> {
    let arguments =
        |name: &str| reply.arguments.clone().ok_or_else(|| format!("`{name}` without `arguments`"));
    match reply.decision {
        ReplyDecision::Once => Ok(Answer::Once),
        ReplyDecision::Session => Ok(Answer::Session(reply.scope.unwrap_or(Scope::Exact))),
        ReplyDecision::Edit => arguments("edit").map(Answer::Edit),
        ReplyDecision::Revise => arguments("revise").map(Answer::Revise),
        ReplyDecision::Deny => Ok(Answer::Deny(reply.message)),
        ReplyDecision::Stop => Ok(Answer::Stop),
        ReplyDecision::Park => Ok(Answer::Park),
        ReplyDecision::Extend => Err("`extend` answers only a request for a larger budget".to_owned()),
    }
}

fn extension(reply: &ApproverReply) -> Result<Option<u64>, String> {
    match (reply.decision, reply.amount) {
        (ReplyDecision::Extend, Some(amount)) => Ok(Some(amount)),
        (ReplyDecision::Extend, None) => Err("`extend` without `amount`".to_owned()),
        (ReplyDecision::Deny, _) => Ok(None),
        _ => Err("a request for a larger budget is answered by `extend` or `deny`".to_owned()),
    }
}

struct ForgetOnDrop<'a> {
    id: String,
    channel: &'a Channel,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.channel.requests().open.remove(&self.id);
    }
}

type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

fn streams(channel: &str) -> std::io::Result<Streams> {
    let descriptors: Option<Vec<RawFd>> = channel.split(',').map(|part| part.trim().parse().ok()).collect();
    match descriptors.as_deref() {
        Some([read, write]) if read != write => {
            Ok((Box::new(descriptor(*read)?), Box::new(descriptor(*write)?)))
        }
        Some([both] | [both, _]) => {
            let stream = descriptor(*both)?;
            Ok((Box::new(stream.try_clone()?), Box::new(stream)))
        }
        _ => {
            let stream = UnixStream::connect(channel)?;
            check_peer(&stream)?;
            Ok((Box::new(stream.try_clone()?), Box::new(stream)))
        }
    }
}

/// Refuses a socket at which another user answers: who approves calls acts for this user.
fn check_peer(stream: &UnixStream) -> std::io::Result<()> {
    may_approve(peer_user(stream)?, rustix::process::geteuid().as_raw())
}

fn may_approve(peer: u32, user: u32) -> std::io::Result<()> {
    if peer == user || peer == 0 {
        return Ok(());
    }
    Err(std::io::Error::other(format!(
        "another user (id {peer}) answers at this socket; only you (id {user}) and root may approve calls"
    )))
}

#[cfg(target_os = "linux")]
fn peer_user(stream: &UnixStream) -> std::io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Without the credentials of the peer, the owner of the socket is taken for it.
#[cfg(not(target_os = "linux"))]
fn peer_user(stream: &UnixStream) -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    let address = stream.peer_addr()?;
    let path = address.as_pathname().ok_or_else(|| std::io::Error::other("the socket has no path"))?;
    Ok(std::fs::symlink_metadata(path)?.uid())
}

/// Takes over a descriptor that the calling program opened for this one.
#[expect(unsafe_code, reason = "a descriptor by its number has no owner in this process")]
fn descriptor(number: RawFd) -> std::io::Result<File> {
    if number <= 2 {
        return Err(std::io::Error::other("0, 1 and 2 are stdin, stdout and stderr"));
    }
    if !std::path::Path::new(&format!("/proc/self/fd/{number}")).exists()
        && !std::path::Path::new(&format!("/dev/fd/{number}")).exists()
    {
        return Err(std::io::Error::other(format!("descriptor {number} is not open")));
    }
    // SAFETY: the number comes from the command line, refers to a descriptor that is open and above stderr, and
    // is taken once, before this process opens anything else under that number.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(File::from(owned))
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use llm_do::Payload;
    use llm_do::approval::{Exhausted, Quantity};
    use llm_do::tools::Access;
    use llm_do::value::Key;
    use llm_do_testing::Chance;

    use super::*;

    fn request(number: u32) -> ApprovalRequest {
        ApprovalRequest {
            id: Key::root().child(number),
            path: "main > write_file".to_owned(),
            agent: "main".into(),
            name: "write_file".into(),
            own_name: None,
            toolset: None,
            arguments: Payload::new(json!({})),
            access: Access::Write,
            description: String::new(),
            reason: String::new(),
            preview: None,
            subjects: Vec::new(),
            attachments: Vec::new(),
            scopes: Vec::new(),
            edit_problem: None,
            digest: None,
            expires: None,
        }
    }

    /// A line about a request, which may have any form as long as its id can be read.
    fn addressed(id: &str, chance: &mut Chance) -> Vec<u8> {
        let rest = chance.one_of(&[
            r#""decision": "once""#,
            r#""decision": "once", "note": "x""#,
            r#""decision": "yes""#,
            r#""decision": "edit""#,
            r#""decision": "extend", "amount": -1"#,
            r#""decision": "deny", "words": 1"#,
            r#""decision": "once", "decision": "once""#,
            r#""decision": "session", "scope": "all""#,
            r#""decision": null"#,
            r#""type": "approval_requested""#,
        ]);
        format!("{{\"id\": \"{id}\", {rest}}}\n").into_bytes()
    }

    /// A line about nothing.
    fn stray(chance: &mut Chance) -> Vec<u8> {
        let text =
            chance.one_of(&["no json", "{", "[]", "null", r#"{"id": 1}"#, r#"{"id": "x"}"#, "  ", "\u{7f}"]);
        let mut line = text.as_bytes().to_vec();
        if chance.below(4) == 0 {
            line.push(0xff);
        }
        line.push(b'\n');
        line
    }

    /// Reads the requests, then writes stray lines and at last one line about each request, if it does not close before.
    fn play(stream: UnixStream, count: usize, mut chance: Chance) -> UnixStream {
        let mut lines = BufReader::new(&stream).lines();
        let mut ids: Vec<String> = (0..count)
            .map(|_| serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap())
            .map(|request| request["id"].as_str().unwrap().to_owned())
            .collect();
        let closes = chance.below(3) == 0;
        while !ids.is_empty() {
            for _ in 0..chance.below(8) {
                (&stream).write_all(&stray(&mut chance)).unwrap();
            }
            let id = ids.swap_remove(chance.below(ids.len()));
            if closes && chance.below(2) == 0 {
                stream.shutdown(std::net::Shutdown::Both).unwrap();
                break;
            }
            (&stream).write_all(&addressed(&id, &mut chance)).unwrap();
        }
        stream
    }

    #[test]
    fn only_the_user_and_root_answer_at_a_socket() {
        assert!(may_approve(1000, 1000).is_ok() && may_approve(0, 1000).is_ok());
        let refused = may_approve(1001, 1000).unwrap_err().to_string();
        assert!(refused.contains("another user (id 1001) answers"), "{refused}");
        assert!(may_approve(1000, 0).is_err(), "root does not take the word of a user");
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(peer_user(&ours).unwrap(), rustix::process::geteuid().as_raw());
    }

    #[test]
    fn every_request_ends_whatever_the_program_writes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for seed in 0..200 {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let approver = ProgramApprover::over(Box::new(ours.try_clone().unwrap()), Box::new(ours), || {
                GONE.to_owned()
            })
            .unwrap();
            let program = std::thread::spawn(move || play(theirs, 4, Chance::new(seed)));
            let requests: Vec<_> = (1..4).map(request).collect();
            let exhausted = Exhausted {
                what: Quantity::Tokens,
                owner: Exhausted::THE_RUN.to_owned(),
                limit: 1,
                used: 1,
                needed: 1,
            };
            let larger = ExtensionRequest { path: "main".to_owned(), exhausted };
            let all = async {
                let decided = join_all(requests.iter().map(|request| approver.decide(request)));
                futures::join!(decided, approver.extend(&larger))
            };
            let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), all).await });
            assert!(ended.is_ok(), "a request stays open with seed {seed}");
            // It stayed open until here: nothing ended because the stream did.
            drop(program.join().unwrap());
        }
    }

    #[test]
    fn an_answer_is_an_object_with_known_keys() {
        for wrong in [r#"["1", "once"]"#, r#""1""#, r#"{"id": "1", "decision": "once", "sope": "tool"}"#, ""]
        {
            assert!(parse_reply(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let rounded =
            br#"{"id": "1", "decision": "edit", "arguments": {"n": 123456789012345678901234567890}}"#;
        assert!(parse_reply(rounded).is_err());
        assert!(parse_reply(br#" {"id": "1", "decision": "once"}"#).is_ok());
    }
}
