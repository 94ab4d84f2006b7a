//! The random project and runs of one case, as plain data. [`random`] makes it up.
//!
//! Everything here is known before the runtime is built. The tools, models and approvers of the case follow
//! it, and the oracle reads it to say what must have happened.

mod random;

use std::time::Duration;

use llm_do_core::{Access, Approval, ApprovalMode, Effect, Limits, Scope, Subject};
use llm_do_runtime::AgentCallPolicy;
use serde_json::{Value, json};

use crate::random_calls::arguments::Shape;
use llm_do_testing::Chance;

/// The name of the code at the root of a run.
pub(crate) const ENTRY: &str = "entry";

/// One case: a project, a runtime and its runs.
#[derive(Debug, Clone)]
pub(crate) struct CasePlan {
    pub(crate) seed: u64,
    /// How many calls models and code may ask for in all.
    pub(crate) calls: usize,
    pub(crate) tools: Vec<ToolPlan>,
    pub(crate) toolsets: Vec<ToolsetPlan>,
    pub(crate) agents: Vec<AgentPlan>,
    pub(crate) policy: AgentCallPolicy,
    pub(crate) limits: Limits,
    /// How long a request waits for an answer, where that is limited.
    pub(crate) approver_limit: Option<Duration>,
    /// The recorded event at which the store begins to refuse, where it does.
    pub(crate) store_breaks_at: Option<usize>,
    /// Runs that go on side by side, one group after the other.
    pub(crate) waves: Vec<Vec<RunPlan>>,
}

/// A tool: its definition, its judgment and what it does.
#[derive(Debug, Clone)]
pub(crate) struct ToolPlan {
    pub(crate) name: String,
    pub(crate) toolset: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) access: Access,
    pub(crate) approval: Approval,
    pub(crate) effect: Effect,
    pub(crate) sequential: bool,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) needs_token: bool,
    pub(crate) judgment: Judgment,
    pub(crate) conduct: Conduct,
}

/// What a tool does after it has noted its effect, or around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Plain,
    Blocking,
    Fails,
    Panics,
    PanicsInBlocking,
    /// Never ends by itself.
    Hangs,
    /// Blocking code that acts after its time limit.
    Overstays,
    /// Holds the signal to stop.
    Watches,
    /// Takes samples and talks to whoever watches.
    Chats,
    CallsInTurn,
    CallsAtOnce,
    /// Gives up inner calls half-way.
    Drops,
    /// Puts inner effects to the gate.
    AsksInside,
    /// Goes on using its call after it has answered.
    Leaks,
    /// Cancels its own run.
    Cancels,
}

/// How a tool judges its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgment {
    /// As its definition says.
    None,
    Always(Approval),
    Protected(Approval),
    ByPath,
    ByCommand,
    Panics,
    /// Asks at first; blocks when it is asked about the same call again.
    Changes,
}

/// What a tool says about one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) approval: Approval,
    pub(crate) protected: bool,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) scopes: Vec<Scope>,
}

#[derive(Debug, Clone)]
pub(crate) struct ToolsetPlan {
    pub(crate) name: String,
    pub(crate) tools: Vec<ToolPlan>,
    pub(crate) stateless: bool,
    /// How many of a hundred instances cannot be opened.
    pub(crate) fails_to_open: u64,
    pub(crate) panics_on_close: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct AgentPlan {
    pub(crate) name: String,
    pub(crate) tools: Vec<String>,
    pub(crate) toolsets: Vec<String>,
    pub(crate) agents: Vec<String>,
    pub(crate) rules: Vec<(String, Approval)>,
    pub(crate) access: Access,
    pub(crate) may_call: Vec<String>,
    pub(crate) input: Shape,
    pub(crate) limits: Limits,
}

#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    pub(crate) number: usize,
    pub(crate) start: String,
    pub(crate) input: Value,
    pub(crate) mode: ApprovalMode,
    pub(crate) approver: Option<Temper>,
    pub(crate) has_token: bool,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) timeout: Option<Duration>,
    /// Whether code is called with its events.
    pub(crate) has_subscriber: bool,
}

/// How an approver is inclined to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Mixed,
    Trusting,
    Granting,
    Editing,
    Denying,
    Broken,
}

/// When a run is cancelled from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    Never,
    /// When a reader sees this event.
    AtEvent(u64),
    /// By dropping the handle after so many turns of the scheduler.
    Drop(usize),
}

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    Tool(&'a ToolPlan),
    Agent(&'a AgentPlan),
    Entry,
}

impl CasePlan {
    /// Returns all runs in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &RunPlan> {
        self.waves.iter().flatten()
    }

    pub(crate) fn agent(&self, name: &str) -> Option<&AgentPlan> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn tool(&self, name: &str) -> Option<&ToolPlan> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn toolset(&self, name: &str) -> Option<&ToolsetPlan> {
        self.toolsets.iter().find(|toolset| toolset.name == name)
    }

    /// Says what a name stands for: a model may name what its agent lists, code also any agent, unless the
    /// agent narrows that; code outside any agent sees everything.
    pub(crate) fn resolve(
        &self,
        agent: Option<&AgentPlan>,
        name: &str,
        by_model: bool,
    ) -> Option<Target<'_>> {
        let Some(agent) = agent else { return self.resolve_outside(name) };
        if let Some(called) = self.agent(name) {
            let listed = !by_model || agent.agents.iter().any(|listed| listed == name);
            let permitted =
                agent.may_call.is_empty() || agent.may_call.iter().any(|pattern| matches(pattern, name));
            return (listed && permitted).then_some(Target::Agent(called));
        }
        let single = agent.tools.iter().find(|listed| *listed == name).and_then(|listed| self.tool(listed));
        let toolsets = agent.toolsets.iter().filter_map(|listed| self.toolset(listed));
        let grouped = || toolsets.flat_map(|toolset| &toolset.tools).find(|tool| tool.name == name);
        single.or_else(grouped).map(Target::Tool)
    }

    fn resolve_outside(&self, name: &str) -> Option<Target<'_>> {
        if name == ENTRY {
            return Some(Target::Entry);
        }
        if let Some(agent) = self.agent(name) {
            return Some(Target::Agent(agent));
        }
        if let Some((toolset, tool)) = name.split_once('.') {
            let tools = &self.toolset(toolset)?.tools;
            return tools.iter().find(|other| other.name == tool).map(Target::Tool);
        }
        let mut grouped =
            self.toolsets.iter().flat_map(|toolset| &toolset.tools).filter(|tool| tool.name == name);
        let found = self.tool(name).or_else(|| grouped.next());
        // A name that two toolsets have means nothing without the toolset.
        found.filter(|_| grouped.next().is_none()).map(Target::Tool)
    }

    /// Returns names that a model or code of an agent, or code outside any, may try.
    pub(crate) fn names_to_try(&self, agent: Option<&AgentPlan>) -> Vec<String> {
        let agents = self.agents.iter().map(|agent| agent.name.clone());
        let mut names: Vec<String> = match agent {
            Some(agent) => {
                let toolsets = agent.toolsets.iter().filter_map(|name| self.toolset(name));
                let grouped = toolsets.flat_map(|toolset| &toolset.tools).map(|tool| tool.name.clone());
                // Tools stand three times: calls of agents shall not crowd out everything else.
                let tools: Vec<String> = agent.tools.iter().cloned().chain(grouped).collect();
                tools.iter().chain(&tools).chain(&tools).chain(&agent.agents).cloned().collect()
            }
            None => {
                let grouped = self.toolsets.iter().flat_map(|toolset| &toolset.tools);
                let qualified = grouped.clone().filter_map(|tool| {
                    tool.toolset.as_ref().map(|toolset| format!("{toolset}.{}", tool.name))
                });
                let single = self.tools.iter().chain(grouped).map(|tool| tool.name.clone());
                single.chain(qualified).chain(agents.clone()).collect()
            }
        };
        names.extend(self.tools.first().map(|tool| tool.name.clone()));
        names.extend(self.agents.last().map(|agent| agent.name.clone()));
        names.push("nonsense".to_owned());
        names
    }

    /// Returns whether a toolset can be opened for a call. Decided by the place, so that it stays decided.
    pub(crate) fn opens(&self, toolset: &ToolsetPlan, run: usize, opener: &str) -> bool {
        let place = ["open", &toolset.name, &run.to_string(), opener];
        toolset.stateless || !Chance::at(self.seed, &place).percent(toolset.fails_to_open)
    }

    /// Returns whether the toolset of a tool can be opened by code outside any agent.
    pub(crate) fn opens_outside(&self, tool: &ToolPlan, run: usize) -> bool {
        let toolset = tool.toolset.as_ref().and_then(|name| self.toolset(name));
        toolset.is_none_or(|toolset| self.opens(toolset, run, ""))
    }
}

impl Target<'_> {
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::Tool(tool) => tool.shape,
            Self::Agent(agent) => agent.input,
            Self::Entry => Shape::Entry,
        }
    }
}

impl AgentPlan {
    /// Returns the strictest rule that matches a name or `toolset.name`.
    pub(crate) fn rule(&self, name: &str, toolset: Option<&str>) -> Option<Approval> {
        let qualified = toolset.map(|toolset| format!("{toolset}.{name}"));
        let hits = |pattern: &str| {
            matches(pattern, name) || qualified.as_deref().is_some_and(|name| matches(pattern, name))
        };
        self.rules.iter().filter(|(pattern, _)| hits(pattern)).map(|(_, approval)| *approval).max()
    }
}

impl ToolPlan {
    /// Says what the tool says about a call that it has judged so often before; nothing where it panics.
    pub(crate) fn judge(&self, arguments: &Value, earlier: usize) -> Option<Verdict> {
        let plain = |approval| Verdict {
            approval,
            protected: false,
            subjects: Vec::new(),
            scopes: vec![Scope::Tool],
        };
        match self.judgment {
            Judgment::None => Some(plain(self.approval)),
            Judgment::Always(approval) => Some(plain(approval)),
            Judgment::Protected(approval) => Some(Verdict { protected: true, ..plain(approval) }),
            Judgment::ByPath => Some(judge_path(arguments["path"].as_str().unwrap_or_default())),
            Judgment::ByCommand => Some(judge_command(&arguments["n"])),
            Judgment::Panics => None,
            Judgment::Changes => Some(plain(if earlier == 0 { Approval::Ask } else { Approval::Blocked })),
        }
    }
}

fn judge_path(path: &str) -> Verdict {
    let directory = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let approval = match directory {
        "danger" => Approval::Blocked,
        "notes" => Approval::PreApproved,
        _ => Approval::Ask,
    };
    Verdict {
        approval,
        protected: directory == "secret",
        subjects: vec![Subject::Path(path.to_owned())],
        scopes: vec![Scope::Tool, Scope::Exact, Scope::Directory(directory.to_owned())],
    }
}

fn judge_command(number: &Value) -> Verdict {
    let words = vec!["git".to_owned(), if number.as_i64() < Some(3) { "log" } else { "push" }.to_owned()];
    let mut command = words.clone();
    command.push(number.to_string());
    Verdict {
        approval: Approval::Ask,
        protected: false,
        subjects: vec![Subject::Command(command)],
        scopes: vec![Scope::CommandPrefix(words)],
    }
}

/// Matches a name against a pattern with `*`, `?` and `{a,b}`, written without any library.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if let Some((before, rest)) = pattern.split_once('{')
        && let Some((choices, after)) = rest.split_once('}')
    {
        return choices.split(',').any(|choice| matches(&format!("{before}{choice}{after}"), name));
    }
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            matches(&pattern[1..], name) || name.chars().next().is_some_and(|_| matches(pattern, &name[1..]))
        }
        (Some('?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(wanted), Some(found)) if wanted == found => matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}

/// The payload of a random inner effect.
pub(crate) fn inner_payload(chance: &mut Chance) -> Value {
    json!({ "branch": *chance.one_of(&["main", "next", "\u{202e}niam"]), "force": chance.percent(30) })
}
