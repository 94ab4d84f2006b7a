//! What a model does: a function of the seed and of the conversation that it is sent.

use llm_do_core::{Message, ModelErrorKind, Part, Role};
use llm_do_models::{ScriptedReply, asks_all, fails, says};
use llm_do_testing::Chance;
use serde_json::{Value, json};

use crate::process_programs::plan::{KINDS, Kind, LIMIT, Plan, text};

/// One call that a model asks for.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Look { number: u64, size: usize },
    Fail { number: u64 },
    Read { fd: String, start: u64, count: u64 },
    Extract { fd: String, start: u64, count: u64 },
    List,
    Close { fd: String },
    Spawn { tag: String, kind: Kind, program: Option<&'static str>, attach: Vec<String>, prompt: String },
    Fork { children: Vec<(String, String)> },
    Goto { position: String, message: String },
    Tune { temperature: Option<f64>, max_tokens: Option<u64> },
}

/// How a model answers.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Calls { text: String, calls: Vec<Call> },
    Says(String),
    Fails,
}

impl Call {
    /// Such a call runs alone.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Self::Close { .. } | Self::Fork { .. } | Self::Goto { .. } | Self::Tune { .. })
    }

    fn asked(&self) -> (&'static str, Value) {
        match self {
            Self::Look { number, size } => ("look", json!({"number": number, "size": size})),
            Self::Fail { number } => ("fail", json!({"number": number})),
            Self::Read { fd, start, count } => {
                ("read_fd", json!({"fd": fd, "mode": "char", "start": start, "count": count}))
            }
            Self::Extract { fd, start, count } => (
                "read_fd",
                json!({"fd": fd, "mode": "char", "start": start, "count": count, "extract": true}),
            ),
            Self::List => ("list_fd", json!({})),
            Self::Close { fd } => ("close_fd", json!({"fd": fd})),
            Self::Spawn { program, attach, prompt, .. } => {
                ("spawn", json!({"program": program, "prompt": prompt, "attach_fds": attach}))
            }
            Self::Fork { children } => {
                let prompts: Vec<&String> = children.iter().map(|(_, prompt)| prompt).collect();
                ("fork", json!({"prompts": prompts}))
            }
            Self::Goto { position, message } => ("goto", json!({"position": position, "message": message})),
            Self::Tune { temperature, max_tokens } => {
                ("tune", json!({"temperature": temperature, "max_tokens": max_tokens}))
            }
        }
    }
}

impl Answer {
    pub(crate) fn reply(&self) -> ScriptedReply {
        match self {
            Self::Calls { text, calls } if text.is_empty() => asks_all(calls.iter().map(Call::asked)),
            Self::Calls { text, calls } => says(text.as_str()).and(asks_all(calls.iter().map(Call::asked))),
            Self::Says(text) => says(text.as_str()),
            Self::Fails => fails(ModelErrorKind::Invalid, "as planned"),
        }
    }

    pub(crate) fn calls(&self) -> &[Call] {
        match self {
            Self::Calls { calls, .. } => calls,
            _ => &[],
        }
    }
}

/// The name of the call that a conversation belongs to: the last one that its messages give.
pub(crate) fn tag(messages: &[impl AsRef<Message>]) -> Option<String> {
    let users = messages.iter().map(AsRef::as_ref).filter(|message| message.role == Role::User);
    users.rev().find_map(|message| {
        let text = message.parts.iter().find_map(|part| match part {
            Part::Text { text, .. } => Some(text),
            _ => None,
        })?;
        let (_, rest) = text.rsplit_once("[[job ")?;
        rest.split_once("]]").map(|(tag, _)| tag.to_owned())
    })
}

/// Writes the name of a call into a prompt.
pub(crate) fn tagged(tag: &str, words: &str) -> String {
    format!("[[job {tag}]] {words}")
}

/// Decides what to answer.
pub(crate) fn decide(plan: &Plan, kind: Kind, tag: &str, messages: &[impl AsRef<Message>]) -> Answer {
    let history: String =
        messages.iter().map(|message| serde_json::to_string(message.as_ref()).unwrap()).collect();
    let mut chance = Chance::at(plan.seed, &["model", tag, &history]);
    let depth = tag.matches('.').count();
    let is_first = messages.len() == 1;
    if !is_first && chance.percent(25 + 12 * depth as u64) || depth > 0 && chance.percent(8) {
        return match depth > 0 && chance.percent(12) {
            true => Answer::Fails,
            false => Answer::Says(said(tag, &mut chance)),
        };
    }
    let mut maker = Maker { kind, tag, names: names(&history), messages: messages.len(), depth, number: 0 };
    let count = chance.weighted(&[(5, 1), (4, 2), (3, 3), (1, 5)]);
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..count {
        let call = maker.call(&mut chance);
        // What is seen of the table while a part is taken out beside it is not settled: also a failure lists it.
        let is_extract = |call: &Call| matches!(call, Call::Extract { .. });
        let looks = |call: &Call| match call {
            Call::Spawn { attach, .. } => !attach.is_empty(),
            other => matches!(other, Call::Read { .. } | Call::Extract { .. } | Call::List),
        };
        let clashes =
            calls.iter().any(is_extract) && looks(&call) || calls.iter().any(looks) && is_extract(&call);
        calls.push(if clashes { maker.look(&mut chance) } else { call });
    }
    Answer::Calls { text: written(&mut chance), calls }
}

fn said(tag: &str, chance: &mut Chance) -> String {
    let size = chance.weighted(&[(4, 0), (3, 100), (2, LIMIT), (1, 900)]);
    format!("answer of {tag}{}", " and more".repeat(size / 9))
}

/// What a model writes beside its calls: nothing, or something with a name.
fn written(chance: &mut Chance) -> String {
    match chance.below(5) {
        0 => String::new(),
        1 | 2 => {
            let name = *chance.one_of(&["plan", "note"]);
            let words = "a word of ".repeat(chance.between(1, 60));
            format!("<ref id=\"{name}\">{words}{}</ref>", chance.below(1_000))
        }
        _ => "Going on.".to_owned(),
    }
}

/// The names of descriptors that a history shows.
fn names(history: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for mark in ["fd=\\\"", "<ref id=\\\""] {
        for part in history.split(mark).skip(1) {
            let name = part.split('\\').next().unwrap_or_default();
            let name = if mark.starts_with("<ref") { format!("ref:{name}") } else { name.to_owned() };
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Makes calls up.
struct Maker<'a> {
    kind: Kind,
    tag: &'a str,
    names: Vec<String>,
    messages: usize,
    depth: usize,
    number: usize,
}

impl Maker<'_> {
    fn call(&mut self, chance: &mut Chance) -> Call {
        let reads = if self.kind.has_descriptors() { 1 } else { 0 };
        let process = if self.kind.is_process() { 1 } else { 0 };
        let children = process * 4_u32.saturating_sub(self.depth as u32);
        match chance.weighted(&[
            (6, 0),
            (2, 1),
            (4 * reads, 2),
            (2 * reads, 3),
            (2 * reads, 4),
            (reads, 5),
            (2 * children, 6),
            (2 * children, 7),
            (4 * process, 8),
            (2 * process, 9),
        ]) {
            0 => self.look(chance),
            1 => Call::Fail { number: chance.bits() % 100_000 },
            2 => Call::Read {
                fd: self.fd(chance),
                start: chance.between(1, 200) as u64,
                count: chance.between(1, 400) as u64,
            },
            3 => Call::Extract {
                fd: self.fd(chance),
                start: chance.between(1, 50) as u64,
                count: chance.between(1, 400) as u64,
            },
            4 => Call::List,
            5 => Call::Close { fd: self.fd(chance) },
            6 => self.spawn(chance),
            7 => self.fork(chance),
            8 => self.goto(chance),
            _ => Call::Tune {
                temperature: chance.percent(70).then(|| chance.below(15) as f64 / 10.0),
                max_tokens: chance.percent(50).then(|| chance.between(10, 250) as u64),
            },
        }
    }

    fn look(&self, chance: &mut Chance) -> Call {
        let size = chance.weighted(&[(4, 20), (2, LIMIT), (2, LIMIT + 1), (4, 700), (1, 3_000)]);
        Call::Look { number: chance.bits() % 100_000, size }
    }

    fn fd(&self, chance: &mut Chance) -> String {
        match self.names.is_empty() || chance.percent(8) {
            true => (*chance.one_of(&["fd:1.0", "fd:a1", "fd:9.9", "ref:none", "fd:input"])).to_owned(),
            false => chance.one_of(&self.names).clone(),
        }
    }

    fn child(&mut self, chance: &mut Chance) -> String {
        self.number += 1;
        format!("{}.{}_{}", self.tag, self.number, chance.bits() % 1_000_000)
    }

    fn spawn(&mut self, chance: &mut Chance) -> Call {
        let program = chance.percent(75).then(|| chance.one_of(&KINDS).name());
        let kind =
            program.map_or(self.kind, |name| KINDS.into_iter().find(|kind| kind.name() == name).unwrap());
        let attach = (0..chance.weighted(&[(4, 0), (4, 1), (2, 2)])).map(|_| self.fd(chance)).collect();
        let tag = self.child(chance);
        let size = if chance.percent(15) { 600 } else { 10 };
        let prompt = tagged(&tag, &text(7, chance.bits() % 1_000, size));
        Call::Spawn { tag, kind, program, attach, prompt }
    }

    fn fork(&mut self, chance: &mut Chance) -> Call {
        let count = chance.between(1, 3);
        let child = |_| {
            let tag = self.child(chance);
            let prompt = tagged(&tag, "do your part");
            (tag, prompt)
        };
        Call::Fork { children: (0..count).map(child).collect() }
    }

    fn goto(&self, chance: &mut Chance) -> Call {
        let position = match chance.below(8) {
            0 => format!("msg_{}", self.messages + chance.below(3)),
            1 => (*chance.one_of(&["3", "msg_x", "msg_1", "", "msg_-1"])).to_owned(),
            _ => format!("msg_{}", chance.below(self.messages.div_ceil(2)) * 2),
        };
        let words = format!("learned {}", chance.bits() % 1_000_000);
        let message = if chance.percent(4) { " ".to_owned() } else { tagged(self.tag, &words) };
        Call::Goto { position, message }
    }
}
