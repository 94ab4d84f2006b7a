//! The messages between this program and the Python process: one JSON object per line.
//!
//! What comes is read in two steps. A line is taken apart where it arrives; the values in it stay text until the
//! call that they belong to reads them, so that one large result does not keep the others waiting.

use std::borrow::Cow;
use std::io::{self, Read};

use llm_do_core::{
    Access, Approval, Attachment, CallContext, CallInfo, Context, Failure, InputPart, Name, Program,
    Remaining, RunId,
};
use llm_do_runtime::Descriptors;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// How many bytes one line may have.
pub(crate) const MAX_LINE_LEN: usize = 64 * 1024 * 1024;

/// A message to the Python process.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum ToHost<'a> {
    /// Runs files and finds what they define.
    Load {
        root: Cow<'a, str>,
        files: Vec<Cow<'a, str>>,
        classes: Vec<WireClass<'a>>,
        entry: Option<WireFunction<'a>>,
    },
    /// Calls a tool or an entry.
    Call { id: u64, target: &'a str, instance: Option<u64>, args: &'a Value, context: WireContext<'a> },
    /// Asks a toolset to judge a call.
    Assess { id: u64, target: &'a str, instance: Option<u64>, args: &'a Value, context: WireContext<'a> },
    /// Makes an instance of a toolset.
    Open { id: u64, toolset: &'a str, instance: u64, context: WireContext<'a> },
    /// Closes an instance.
    Close { id: u64, instance: u64 },
    /// Makes the prompt of an input.
    Prompt { id: u64, class: &'a str, args: &'a Value },
    /// Asks how a model is reached.
    Model { id: u64, name: &'a str },
    /// Ends a call that is running.
    Cancel { id: u64 },
    /// Answers a question of a call.
    Answer {
        id: u64,
        #[serde(flatten)]
        answer: WireAnswer,
    },
    /// Asks the process to leave.
    Exit,
}

/// The answer to a question.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireAnswer {
    Value(Value),
    Error(Failure),
}

/// A class that is wanted.
#[derive(Serialize)]
pub(crate) struct WireClass<'a> {
    pub(crate) file: Cow<'a, str>,
    pub(crate) name: &'a str,
    #[serde(rename = "use")]
    pub(crate) purpose: &'static str,
}

/// A function that is wanted.
#[derive(Serialize)]
pub(crate) struct WireFunction<'a> {
    pub(crate) file: Cow<'a, str>,
    pub(crate) name: &'a str,
}

/// What Python code sees of its call.
#[derive(Serialize)]
pub(crate) struct WireContext<'a> {
    run: RunId,
    key: &'a str,
    path: &'a str,
    agent: &'a str,
    depth: u32,
    model: Option<&'a str>,
    root: &'a str,
    input: &'a str,
    #[serde(serialize_with = "named_values")]
    values: &'a Context,
    access: Option<&'static str>,
    /// The programs that the agent can start.
    #[serde(skip_serializing_if = "<[Program]>::is_empty")]
    programs: &'a [Program],
    /// The names of the agent's toolsets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    toolsets: Vec<&'a str>,
    /// Whether the agent has descriptors.
    descriptors: bool,
    /// What is left of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Remaining>,
}

impl<'a> WireContext<'a> {
    /// The context of a call of a tool or entry.
    pub(crate) fn from_call(call: &'a CallContext, root: &'a str, input: &'a str) -> Self {
        let model = call.model().map(Name::as_str);
        let programs = call.agent().map(|agent| agent.programs.as_slice()).unwrap_or_default();
        let access = call.agent().map(|agent| call.access().unwrap_or(agent.access).as_str());
        let choices = call.agent().map(|agent| agent.toolsets.as_slice()).unwrap_or_default();
        let toolsets = choices.iter().filter(|choice| !choice.implicit).map(|choice| choice.name.as_str());
        let descriptors = call.context().get::<Descriptors>().is_some();
        let about = Self::from_info(call.info(), call.context(), root);
        let budget = Some(call.remaining());
        Self { model, input, programs, access, toolsets: toolsets.collect(), descriptors, budget, ..about }
    }

    /// The context in which a toolset is opened.
    pub(crate) fn from_info(info: &'a CallInfo, values: &'a Context, root: &'a str) -> Self {
        Self {
            run: info.run,
            key: &info.id,
            path: &info.path,
            agent: &info.agent,
            depth: info.depth,
            model: None,
            root,
            input: "",
            values,
            access: None,
            programs: &[],
            toolsets: Vec::new(),
            descriptors: false,
            budget: None,
        }
    }
}

fn named_values<S: Serializer>(context: &Context, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, value) in context.all_named() {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

impl ToHost<'_> {
    /// Writes the message as a line.
    pub(crate) fn line(&self) -> Result<Vec<u8>, String> {
        let mut line = Vec::with_capacity(512);
        serde_json::to_writer(&mut line, self).map_err(|error| error.to_string())?;
        line.push(b'\n');
        if line.len() > MAX_LINE_LEN {
            return Err(format!("{} bytes are too many for one message to Python", line.len()));
        }
        Ok(line)
    }
}

/// A message from the Python process.
#[derive(Debug)]
pub(crate) enum FromHost {
    /// A file is imported; none when all are.
    Loading(Option<String>),
    /// The files were run.
    Loaded(Box<Loaded>),
    /// The files cannot be used.
    Refused(Vec<WireProblem>),
    /// What was asked for is done.
    Done { id: u64, reply: CallReply },
    /// Code of a call wants something.
    Ask { call: u64, ask: Ask },
    /// Code says something.
    Say { call: Option<u64>, kind: SayKind, text: String },
}

/// What a request came to.
#[derive(Debug, Default)]
pub(crate) struct CallReply {
    pub(crate) value: Option<Box<RawValue>>,
    pub(crate) attachments: Option<Box<RawValue>>,
    pub(crate) error: Option<WireError>,
}

/// What code of a call wants.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) what: String,
    pub(crate) name: String,
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) reason: String,
    pub(crate) agents_only: bool,
}

/// A piece of a prompt, or of an input that is a list.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WirePart {
    Text(String),
    Attachment(Attachment),
}

impl From<WirePart> for InputPart {
    fn from(part: WirePart) -> Self {
        match part {
            WirePart::Text(text) => Self::Text(text),
            WirePart::Attachment(attachment) => Self::Attachment(attachment),
        }
    }
}

/// How something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SayKind {
    Stderr,
    Notice,
    Progress,
}

/// Why a request failed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WireError {
    pub(crate) kind: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

/// Any line that comes, as far as it is read where it arrives.
#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    id: Option<u64>,
    call: Option<u64>,
    file: Option<String>,
    kind: Option<SayKind>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    attachments: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    what: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    reason: Option<String>,
    #[serde(default)]
    agents_only: bool,
    #[serde(default)]
    problems: Vec<WireProblem>,
}

/// The words of a text that holds what no text may hold.
const UNREADABLE: &str = "(a text that is not valid Unicode)";

impl FromHost {
    /// Reads a line, or says why it is not a message.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let parts: WireLine<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if parts.op == "loaded" {
            let loaded = serde_json::from_slice(line).map_err(|error| error.to_string())?;
            return Ok(Self::Loaded(Box::new(loaded)));
        }
        parts.message()
    }
}

impl WireLine<'_> {
    fn message(self) -> Result<FromHost, String> {
        match &*self.op {
            "done" => Ok(FromHost::Done { id: self.id.ok_or("`done` without `id`")?, reply: self.reply() }),
            "ask" => {
                let call = self.call.ok_or("`ask` without `call`")?;
                let ask = Ask {
                    id: self.id.ok_or("`ask` without `id`")?,
                    what: self.what.unwrap_or_default(),
                    name: self.name.unwrap_or_default(),
                    input: self.input.map(ToOwned::to_owned),
                    payload: self.payload.map(ToOwned::to_owned),
                    reason: self.reason.unwrap_or_default(),
                    agents_only: self.agents_only,
                };
                Ok(FromHost::Ask { call, ask })
            }
            "say" => {
                let kind = self.kind.unwrap_or(SayKind::Stderr);
                let text = self.text.and_then(|text| serde_json::from_str(text.get()).ok());
                Ok(FromHost::Say { call: self.call, kind, text: text.unwrap_or_else(|| UNREADABLE.into()) })
            }
            "loading" => Ok(FromHost::Loading(self.file)),
            "refused" => Ok(FromHost::Refused(self.problems)),
            other => Err(format!("there is no message `{other}`")),
        }
    }

    fn reply(&self) -> CallReply {
        let error = self.error.map(|error| {
            serde_json::from_str(error.get()).unwrap_or_else(|_| WireError {
                kind: "tool".to_owned(),
                message: UNREADABLE.to_owned(),
                hint: None,
            })
        });
        let value = self.value.map(ToOwned::to_owned);
        CallReply { value, attachments: self.attachments.map(ToOwned::to_owned), error }
    }
}

/// What the files of a project define.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) python: String,
    #[serde(default)]
    pub(crate) tools: Vec<WireTool>,
    #[serde(default)]
    pub(crate) toolsets: Vec<WireToolset>,
    #[serde(default)]
    pub(crate) agents: Vec<WireAgent>,
    #[serde(default)]
    pub(crate) entries: Vec<WireEntry>,
    #[serde(default)]
    pub(crate) classes: Vec<WireDefinedClass>,
    #[serde(default)]
    pub(crate) providers: Vec<String>,
    #[serde(default)]
    pub(crate) notices: Vec<WireProblem>,
    #[serde(default)]
    pub(crate) imported: Imported,
}

/// Which files of the project were imported, and where Python looks for modules.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Imported {
    pub(crate) files: Vec<String>,
    pub(crate) search: Vec<String>,
}

/// Something wrong with the files, or worth knowing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireProblem {
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireTool {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) access: Option<Access>,
    pub(crate) approval: Option<Approval>,
    #[serde(default)]
    pub(crate) judges: bool,
    #[serde(default)]
    pub(crate) sequential: bool,
    pub(crate) time_limit: Option<f64>,
    #[serde(default)]
    pub(crate) needs: Vec<String>,
}

/// A toolset: of Python code, or one that this program makes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireToolset {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) kind: ToolsetKind,
    #[serde(default)]
    pub(crate) config: Value,
    #[serde(default)]
    pub(crate) read_only: bool,
    #[serde(default)]
    pub(crate) tools: Vec<WireTool>,
}

/// Whose toolset it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolsetKind {
    Python,
    Filesystem,
    Shell,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireAgent {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) instructions: String,
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) toolsets: Vec<String>,
    pub(crate) class: Option<String>,
    pub(crate) output: Option<Value>,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
}

/// A function that a run can start with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    #[serde(default)]
    pub(crate) manifest: bool,
}

/// A class of inputs or answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WireDefinedClass {
    pub(crate) id: String,
    pub(crate) file: String,
    pub(crate) name: String,
    #[serde(rename = "use")]
    pub(crate) purpose: Option<String>,
    pub(crate) schema: Value,
}

/// How a model is reached, as a factory of the project says it.
#[derive(Deserialize)]
pub(crate) struct WireModel {
    pub(crate) api: String,
    pub(crate) base_url: String,
    #[serde(default)]
    pub(crate) api_key: Option<String>,
    #[serde(default)]
    pub(crate) headers: serde_json::Map<String, Value>,
    pub(crate) model: String,
}

/// What a toolset says about a call.
#[derive(Deserialize)]
pub(crate) struct WireAssessment {
    pub(crate) approval: Approval,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// Reads lines of bounded length.
pub(crate) struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// What of the buffer was given out.
    given: usize,
    /// How far the buffer holds no end of a line.
    searched: usize,
}

/// How much is asked for at once.
const CHUNK: usize = 64 * 1024;

impl<R: Read> LineReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), given: 0, searched: 0 }
    }

    /// Returns the next line without its end; nothing at the end of the source. What follows the last line is
    /// left out: whoever wrote it did not come to its end.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let fresh = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(length) = fresh.iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.given, self.searched + length);
                self.given = end + 1;
                self.searched = end + 1;
                return Ok(self.buffer.get(start..end));
            }
            self.searched = self.buffer.len();
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Reads more, and says whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.given);
        self.searched -= self.given;
        self.given = 0;
        if self.buffer.len() > MAX_LINE_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line has more than 64 MB"));
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
            self.buffer = Vec::new();
        }
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let count = loop {
            match self.source.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(length + count.as_ref().copied().unwrap_or_default());
        Ok(count? > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Gives its bytes in small pieces.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let text = b"one\n\n{\"three\": 3}\nbroken off";
        for piece in [1, 2, 5, 100] {
            let mut lines = LineReader::new(Dripping(text, piece));
            let mut seen = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(seen, ["one", "", "{\"three\": 3}"], "pieces of {piece}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = LineReader::new(io::repeat(b'x'));
        assert!(lines.next().unwrap_err().to_string().contains("64 MB"));
    }

    #[test]
    fn a_result_is_read_where_it_belongs_and_not_before() {
        let line = br#"{"op":"done","id":7,"value":{"odd":"\ud800"},"attachments":[]}"#;
        let Ok(FromHost::Done { id: 7, reply }) = FromHost::read(line) else { panic!("no result") };
        assert_eq!(reply.value.unwrap().get(), r#"{"odd":"\ud800"}"#);
        let null = FromHost::read(br#"{"op":"done","id":7,"value":null}"#);
        assert!(matches!(null, Ok(FromHost::Done { reply: CallReply { value: None, error: None, .. }, .. })));
    }

    #[test]
    fn what_is_no_message_is_said() {
        for line in [
            &b"hello"[..],
            b"{}",
            b"{\"op\":\"dance\"}",
            b"{\"op\":\"done\"}",
            b"[1]",
            b"\xff",
            b"{\"op\":\"loaded\"}",
        ] {
            assert!(FromHost::read(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn messages_are_written_as_one_line() {
        let answer = WireAnswer::Error(Failure::new(llm_do_core::FailureKind::Denied, "no\nway"));
        let line = ToHost::Answer { id: 3, answer }.line().unwrap();
        let expected =
            "{\"op\":\"answer\",\"id\":3,\"error\":{\"kind\":\"denied\",\"message\":\"no\\nway\"}}\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
        let answer = ToHost::Answer { id: 4, answer: WireAnswer::Value(json!(null)) };
        assert_eq!(answer.line().unwrap(), b"{\"op\":\"answer\",\"id\":4,\"value\":null}\n");
        assert_eq!(ToHost::Exit.line().unwrap(), b"{\"op\":\"exit\"}\n");
    }
}
