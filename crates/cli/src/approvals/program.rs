//! Asks a program: JSON lines over a file descriptor or a Unix socket, several requests open at once.
//!
//! Requests are written as `{"type": "approval_requested", "id": .., "tool": .., ..}`, answers are read as
//! `{"id": .., "decision": "once" | "session" | "edit" | "revise" | "deny" | "stop", ..}`. A channel that breaks denies
//! whatever is open: nothing runs because nobody said no.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use llm_do::{Answer, ApprovalRequest, Approver, ApproverError, ExtensionRequest, Scope};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::output;
use crate::problem::Problem;

/// The longest answer that is read.
const LONGEST: u64 = 16 * 1024 * 1024;

/// A program that answers.
pub(crate) struct ProgramApprover {
    writer: Mutex<Box<dyn Write + Send>>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    waiting: HashMap<String, oneshot::Sender<Reply>>,
    closed: bool,
    extensions: u64,
}

/// An answer of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    id: String,
    decision: Decision,
    /// How far a session answer reaches; exactly this call where nothing is said.
    #[serde(default)]
    scope: Option<Scope>,
    /// Why it is denied.
    #[serde(default)]
    words: String,
    /// The arguments to run with.
    #[serde(default)]
    arguments: Option<Value>,
    /// By how much a budget grows.
    #[serde(default)]
    amount: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Once,
    Session,
    Edit,
    Revise,
    Deny,
    Stop,
    Extend,
}

impl ProgramApprover {
    /// Opens the channel: `3` for a descriptor both ways, `3,4` to read and to write, else a socket's path.
    pub(crate) fn open(channel: &str) -> Result<Self, Problem> {
        let (reader, writer) = streams(channel).map_err(|error| {
            Problem::with_hint(
                format!("`--approvals-from {channel}` cannot be opened: {error}"),
                "name an open descriptor (`3`), two (`3,4`), or the path of a Unix socket",
            )
        })?;
        let open = Arc::new(Mutex::new(Open::default()));
        let answers = open.clone();
        let reading = move || read_answers(BufReader::new(reader), &answers);
        let thread = std::thread::Builder::new().name("llm-do-approvals".to_owned()).spawn(reading);
        thread.map_err(|error| Problem::Other(error.into()))?;
        Ok(Self { writer: Mutex::new(writer), open })
    }

    /// Sends a request and waits for its answer. Giving the future up forgets the request.
    async fn put(&self, id: String, request: &Value) -> Result<Reply, ApproverError> {
        let closed = || ApproverError("the program that answers approvals has gone".to_owned());
        let (sender, receiver) = oneshot::channel();
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.closed {
                return Err(closed());
            }
            open.waiting.insert(id.clone(), sender);
        }
        let _forget = Forget { id, open: &self.open };
        self.write(request).map_err(|error| ApproverError(error.to_string()))?;
        receiver.await.map_err(|_| closed())
    }

    fn write(&self, request: &Value) -> std::io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = request.to_string();
        line.push('\n');
        writer.write_all(line.as_bytes())?;
        writer.flush()
    }
}

struct Forget<'a> {
    id: String,
    open: &'a Mutex<Open>,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&self.id);
    }
}

impl Approver for ProgramApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async move {
            let mut message =
                serde_json::to_value(request).map_err(|error| ApproverError(error.to_string()))?;
            message["type"] = "approval_requested".into();
            let reply = self.put(request.id.to_string(), &message).await?;
            answer(reply).map_err(ApproverError)
        })
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async move {
            let id = {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.extensions += 1;
                format!("extension-{}", open.extensions)
            };
            let exhausted = &request.exhausted;
            let message = json!({
                "type": "extension_requested", "id": id, "chain": request.path, "what": exhausted.what,
                "limit": exhausted.limit, "used": exhausted.used, "needed": exhausted.needed,
                "description": exhausted.to_string(),
            });
            let reply = self.put(id, &message).await.ok()?;
            reply.amount.filter(|_| reply.decision == Decision::Extend)
        })
    }
}

fn answer(reply: Reply) -> Result<Answer, String> {
    match reply.decision {
        Decision::Once => Ok(Answer::Once),
        Decision::Session => Ok(Answer::Session(reply.scope.unwrap_or(Scope::Exact))),
        Decision::Edit => {
            reply.arguments.map(Answer::Edit).ok_or_else(|| "`edit` without `arguments`".to_owned())
        }
        Decision::Revise => {
            reply.arguments.map(Answer::Revise).ok_or_else(|| "`revise` without `arguments`".to_owned())
        }
        Decision::Deny => Ok(Answer::Deny(reply.words)),
        Decision::Stop => Ok(Answer::Stop),
        Decision::Extend => Err("`extend` answers only a request for a larger budget".to_owned()),
    }
}

/// Reads answers until the channel ends; then whatever is open is denied.
fn read_answers(mut reader: BufReader<impl Read>, open: &Mutex<Open>) {
    loop {
        let mut line = String::new();
        match reader.by_ref().take(LONGEST).read_line(&mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) if line.trim().is_empty() => continue,
            Ok(_) => {}
        }
        match serde_json::from_str::<Reply>(&line) {
            Ok(reply) => {
                let waiting = open.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&reply.id);
                match waiting {
                    Some(sender) => drop(sender.send(reply)),
                    None => output::to_stderr(&format!("notice: no open approval has the id `{}`", reply.id)),
                }
            }
            Err(error) => {
                output::to_stderr(&format!("notice: an answer to an approval cannot be read: {error}"))
            }
        }
    }
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    open.closed = true;
    open.waiting.clear();
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
            Ok((Box::new(stream.try_clone()?), Box::new(stream)))
        }
    }
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
    // SAFETY: the number comes from the command line, stands for a descriptor that is open and above stderr, and
    // is taken once, before this process opens anything else under that number.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(File::from(owned))
}
