//! The calls of a case: changes with a mark, looks without one, and attempts that must come to nothing.

use llm_do::approval::Approval;
use llm_do::testing::{ScriptedReply, asks_all};
use llm_do_testing::Chance;
use serde_json::{Value, json};

/// What the entry's rule says about `write_file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    None,
    PreApproved,
    Blocked,
}

impl Rule {
    pub(crate) fn approval(self) -> Option<Approval> {
        match self {
            Self::None => None,
            Self::PreApproved => Some(Approval::PreApproved),
            Self::Blocked => Some(Approval::Blocked),
        }
    }

    /// The line of the agent file.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::None => "",
            Self::PreApproved => "approval: {write_file: pre_approved}\n",
            Self::Blocked => "approval: {write_file: blocked}\n",
        }
    }
}

/// Tools in Python, each declared in another way.
pub(crate) const PYTHON: &str = r#"
from pathlib import Path

from llm_do.runtime import CallContext
from llm_do.toolsets.approval import set_toolset_approval_config
from llmproc import register_tool
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset


def keep(mark):
    (Path(__file__).parent / f"py-{mark}.txt").write_text("kept")
    return "kept"


def note_plain(mark: str) -> str:
    return keep(mark)


@register_tool(name="note_registered", description="Keeps a mark", access="write")
def registered(mark: str) -> str:
    return keep(mark)


def made(ctx: RunContext[CallContext]) -> FunctionToolset:
    tools = FunctionToolset()

    @tools.tool
    async def note_made(ctx: RunContext[CallContext], mark: str) -> str:
        return keep(mark)

    @tools.tool
    async def relay(ctx: RunContext[CallContext], mark: str) -> str:
        return await ctx.deps.call("note_plain", {"mark": mark})

    set_toolset_approval_config(tools, {"relay": {"pre_approved": True}})
    return tools


shared = FunctionToolset()


@shared.tool
def note_shared(ctx: RunContext[CallContext], mark: str) -> str:
    return keep(mark)


TOOLS = [note_plain, registered]
TOOLSETS = {"made": made, "shared": shared}
"#;

/// A call that a model makes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The kind: the tool, or `mv` for a command that moves.
    pub(crate) name: &'static str,
    tool: String,
    arguments: Value,
    /// Found in the folder when the call was carried out.
    pub(crate) mark: String,
    /// Must come to nothing whoever allows it.
    pub(crate) is_hostile: bool,
    /// Asks whatever a rule says.
    pub(crate) is_protected: bool,
}

/// Makes up the calls of a case.
pub(crate) fn random(chance: &mut Chance, seed: u64) -> Vec<Call> {
    let count = chance.between(3, 25);
    (0..count).map(|number| one(chance, number, format!("mark{seed}x{number}m"))).collect()
}

fn one(chance: &mut Chance, number: usize, mark: String) -> Call {
    let call = |name, tool: &str, arguments| Call {
        name,
        tool: tool.to_owned(),
        arguments,
        mark: mark.clone(),
        is_hostile: false,
        is_protected: false,
    };
    match chance.below(19) {
        0..=2 => {
            let path = *chance.one_of(&["a.txt", "d/b.txt", "d/new/c.txt", "./a.txt", "d/../e.txt"]);
            call("write_file", "write_file", json!({"path": path, "content": mark}))
        }
        3 => {
            let path = *chance.one_of(&[
                ".git/hooks/x",
                "x.agent.txt/../y.worker",
                "main.agent.bak/../.env",
                ".gitattributes",
            ]);
            Call {
                is_protected: true,
                ..call("write_file", "write_file", json!({"path": path, "content": mark}))
            }
        }
        4 => {
            let path =
                *chance.one_of(&["../o/x.txt", "link/x.txt", "/tmp/../o.txt", "d/../../o/x", "out.txt"]);
            Call {
                is_hostile: true,
                ..call("write_file", "write_file", json!({"path": path, "content": mark}))
            }
        }
        5 | 6 => {
            let edits = json!([{"old": "BASE", "new": format!("BASE {mark}")}]);
            call("edit_file", "edit_file", json!({"path": "seed.txt", "edits": edits}))
        }
        7 | 8 => call("mv", "shell", json!({"command": format!("mv m{number}.txt moved-{mark}.txt")})),
        9 => {
            let command = chance
                .one_of(&[
                    "touch {}",
                    "ls > {}",
                    "mv m1.txt {}; rm m2.txt",
                    "find . -fprint {}",
                    "mv m1.txt $HOME/{}",
                    "sh -c 'touch {}'",
                ])
                .replace("{}", &mark);
            Call { is_hostile: true, ..call("hostile command", "shell", json!({"command": command})) }
        }
        10 => call(
            "agent_create",
            "agent_create",
            json!({"name": format!("made{number}"), "instructions": mark}),
        ),
        11 => call("look", "shell", json!({"command": "ls -la d"})),
        14 => call("note_plain", "note_plain", json!({"mark": mark})),
        15 => call("note_made", "note_made", json!({"mark": mark})),
        16 => call("note_shared", "note_shared", json!({"mark": mark})),
        17 => call("note_registered", "note_registered", json!({"mark": mark})),
        // It runs freely and calls another tool, which must ask.
        18 => call("note_plain", "relay", json!({"mark": mark})),
        12 => call(
            "look",
            "read_file",
            json!({"path": *chance.one_of(&["a.txt", "link/secret.txt", "../o/secret.txt"])}),
        ),
        _ => {
            let agent = *chance.one_of(&["helper", "main"]);
            call("agent", agent, json!({"input": "go on"}))
        }
    }
}

/// Puts the calls into answers of a model: alone, or several at once.
pub(crate) fn replies(chance: &mut Chance, calls: &[Call]) -> Vec<ScriptedReply> {
    let mut replies = Vec::new();
    let mut rest = calls;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(chance.between(1, 3).min(rest.len()));
        replies.push(asks_all(now.iter().map(|call| (call.tool.as_str(), call.arguments.clone()))));
        rest = later;
    }
    replies
}
