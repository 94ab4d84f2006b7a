//! What an entry can touch before it ever runs: by which path, behind which approval, how deep.
//!
//! The reach is an upper bound. A tool may judge single calls more strictly than its definition, and code may
//! call fewer agents than it is free to call.

mod text;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use llm_do_core::{Access, Approval, CallKind, Effect, ModelChoice, Name};
use llm_do_runtime::{DEFAULT_DEPTH, Outline, OutlinedCallable};
use serde::Serialize;

use crate::format::run_settings::RunSettings;
use crate::loaded::LoadedProject;

/// Everything that can be reached from the entry of a project.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reach {
    /// Where a run starts.
    pub entry: Name,
    /// How many agents may be on one path.
    pub max_depth: u32,
    /// How many agents are on one path in the worst case.
    pub worst_depth: u32,
    /// The agents that can be reached, nearest first.
    pub agents: Vec<ReachedAgent>,
    /// What they can call, in the order of the agents.
    pub calls: Vec<ReachedCall>,
    /// The providers that the project declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ReachedProvider>,
    /// The files of code that are run when the project is loaded: nothing asks before that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<String>,
    /// The variables with keys of model providers that this code sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_variables: Vec<String>,
}

/// A provider that the project declares: where conversations go, and with which key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReachedProvider {
    /// The prefix of its models.
    pub name: String,
    /// Its address.
    pub base_url: String,
    /// The variable whose value is sent to that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The reached agents whose models, or the models that they fall back to, are its.
    pub agents: Vec<Name>,
}

/// An agent that can be reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReachedAgent {
    /// Its name.
    pub name: Name,
    /// The shortest way to it.
    pub path: String,
    /// How many agents are on that path.
    pub depth: u32,
    /// What it may do at most, on the way that allows most.
    pub access: Access,
    /// The model that it names; otherwise that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it can call itself again, directly or through others.
    pub recursive: bool,
}

/// A call that an agent can make.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReachedCall {
    /// What is called.
    pub name: Name,
    /// What it is.
    pub kind: ReachedKind,
    /// The toolset, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Name>,
    /// The agent that can call it.
    pub agent: Name,
    /// The shortest way to it.
    pub path: String,
    /// Which approval it needs.
    pub approval: Approval,
    /// Whether the tool judges each call, so that single ones may run freely or be blocked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged_by_tool: bool,
    /// What a person should know about the tool, such as a limit that its settings lift.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What decided that: `definition`, `rule`, `mode` or `policy`.
    pub decided_by: &'static str,
    /// What it may do at most.
    pub access: Access,
    /// What happens when it is begun twice; none for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether a call of the agent with attachments asks, though one without does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_with_attachments: bool,
    /// Whether the code of a tool makes the call, and not the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_code: bool,
    /// Whether only a person or code may make the call, and not the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_only: bool,
    /// Whether the called agent is already on the path to the call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    /// Why the call is refused whatever anybody answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReachedKind {
    /// Another agent, or the same.
    Agent,
    /// Code.
    Tool,
    /// A tool that the provider runs.
    ServerTool,
}

impl LoadedProject {
    /// Works out what the entry can touch. Nothing is called.
    pub fn reach(&self) -> Reach {
        let outlines = self.project.outline();
        let function = self.entry_outline();
        let table =
            outlines.iter().filter_map(|outline| Some((outline.agent.as_ref()?.name.clone(), outline)));
        let mut table: BTreeMap<Name, &Outline> = table.collect();
        table.entry(self.entry.clone()).or_insert(&function);
        let search = ReachSearch {
            outlines: table,
            settings: &self.settings,
            max_depth: self.settings.limits.depth.unwrap_or(DEFAULT_DEPTH),
        };
        let mut reach = search.from(&self.entry);
        reach.providers = self.providers_for(&reach.agents, &search);
        reach.code = self.code_files().iter().map(|file| file.display().to_string()).collect();
        reach.code_variables = self.code_variables().to_vec();
        reach
    }

    /// Returns the declared providers of whose models no agent names one. Somebody who runs the project may.
    pub fn unnamed_providers(&self) -> Vec<&str> {
        let outlines = self.project.outline();
        let agents = outlines.iter().filter_map(|outline| outline.agent.as_ref());
        let own = agents.flat_map(|agent| agent.model.iter().chain(&agent.fallback_models));
        let named: HashSet<String> = own
            .map(|model| model.name().to_string())
            .chain(self.model.clone())
            .map(|model| provider_of(&model).to_owned())
            .collect();
        self.providers.keys().map(String::as_str).filter(|name| !named.contains(*name)).collect()
    }

    /// What a function can call that a run starts with: everything, by its plain name.
    fn entry_outline(&self) -> Outline {
        let mut outline = self.project.root_outline();
        outline.callables.retain(|callable| callable.name != self.entry && !callable.name.contains('.'));
        outline
    }

    fn providers_for(&self, agents: &[ReachedAgent], search: &ReachSearch<'_>) -> Vec<ReachedProvider> {
        let users = |name: &str| {
            let uses = |agent: &&ReachedAgent| {
                search
                    .models(&agent.name, self.model.as_deref())
                    .iter()
                    .any(|model| provider_of(model) == name)
            };
            agents.iter().filter(uses).map(|agent| agent.name.clone()).collect()
        };
        let shown = self.providers.iter().map(|(name, provider)| ReachedProvider {
            name: name.clone(),
            base_url: provider.base_url.clone(),
            api_key_env: provider.api_key_env.clone(),
            agents: users(name),
        });
        shown.collect()
    }
}

/// An agent with the access that its callers leave it.
type AgentAccess = (Name, Access);

struct ReachSearch<'a> {
    outlines: BTreeMap<Name, &'a Outline>,
    settings: &'a RunSettings,
    max_depth: u32,
}

/// How a state is reached first.
struct Way {
    depth: u32,
    path: String,
    agents: Vec<Name>,
}

impl<'a> ReachSearch<'a> {
    fn from(&self, entry: &Name) -> Reach {
        let ways = self.ways(entry);
        let recursive = self.recursive();
        let mut agents: Vec<ReachedAgent> = Vec::new();
        let mut calls: Vec<ReachedCall> = Vec::new();
        let mut indices: HashMap<(Name, Name, bool), usize> = HashMap::new();
        for ((name, access), way) in &ways {
            // The first way is the shortest; a later one may allow more.
            match agents.iter_mut().find(|agent| agent.name == *name) {
                Some(agent) => agent.access = agent.access.max(*access),
                None => agents.push(self.reached(name, *access, way, &recursive)),
            }
            for call in self.calls(name, *access, way) {
                let index = *indices
                    .entry((call.agent.clone(), call.name.clone(), call.by_code))
                    .or_insert(calls.len());
                match calls.get_mut(index) {
                    Some(known) if known.refused.is_some() && call.refused.is_none() => *known = call,
                    Some(_) => {}
                    None => calls.push(call),
                }
            }
        }
        Reach {
            entry: entry.clone(),
            max_depth: self.max_depth,
            worst_depth: self.worst_depth(entry),
            agents,
            calls,
            providers: Vec::new(),
            code: Vec::new(),
            code_variables: Vec::new(),
        }
    }

    /// The models that an agent may ask: its own or that of the project, then those that it falls back to.
    fn models(&self, agent: &Name, general: Option<&str>) -> Vec<String> {
        let Some(spec) = self.outlines.get(agent).and_then(|outline| outline.agent.as_ref()) else {
            return Vec::new();
        };
        let own = spec.model.as_ref().map(|model| model.name().to_string());
        let first = own.or_else(|| general.map(str::to_owned));
        first.into_iter().chain(spec.fallback_models.iter().map(|model| model.name().to_string())).collect()
    }

    fn reached(&self, name: &Name, access: Access, way: &Way, recursive: &HashSet<Name>) -> ReachedAgent {
        let spec = self.outlines.get(name).and_then(|outline| outline.agent.as_ref());
        ReachedAgent {
            name: name.clone(),
            path: way.path.clone(),
            depth: way.depth,
            access,
            model: spec
                .and_then(|spec| spec.model.as_ref())
                .map(|model: &ModelChoice| model.name().to_string()),
            recursive: recursive.contains(name),
        }
    }

    /// Every agent with every access it can have, nearest first.
    fn ways(&self, entry: &Name) -> Vec<(AgentAccess, Way)> {
        let mut found: Vec<(AgentAccess, Way)> = Vec::new();
        let mut seen: HashSet<AgentAccess> = HashSet::new();
        let mut open: VecDeque<(AgentAccess, Way)> = VecDeque::new();
        // A function at the start is not an agent on the path.
        let is_agent = self.outlines.get(entry).is_none_or(|outline| outline.agent.is_some());
        let first = Way { depth: u32::from(is_agent), path: entry.to_string(), agents: vec![entry.clone()] };
        open.push_back(((entry.clone(), self.access_of(entry)), first));
        while let Some((state, way)) = open.pop_front() {
            if way.depth > self.max_depth || !seen.insert(state.clone()) {
                continue;
            }
            for edge in self.edges(&state.0) {
                let access = state.1.min(self.access_of(&edge.agent));
                let agents = way.agents.iter().chain([&edge.agent]).cloned().collect();
                let next = Way { depth: way.depth + 1, path: edge.path_from(&way.path), agents };
                open.push_back(((edge.agent, access), next));
            }
            found.push((state, way));
        }
        found
    }

    fn access_of(&self, agent: &Name) -> Access {
        let spec = self.outlines.get(agent).and_then(|outline| outline.agent.as_ref());
        spec.map_or(Access::Admin, |spec| spec.access)
    }

    /// The agents that an agent can call, itself or through the code of its tools. What is blocked leads nowhere.
    fn edges(&self, agent: &Name) -> Vec<Edge> {
        let Some(outline) = self.outlines.get(agent) else { return Vec::new() };
        let allowed = |callable: &&OutlinedCallable| self.settings.judged(callable).0 != Approval::Blocked;
        let listed =
            outline.callables.iter().filter(|callable| callable.kind == CallKind::Agent).filter(allowed);
        let mut edges: Vec<Edge> =
            listed.map(|callable| Edge { agent: callable.name.clone(), through: None }).collect();
        let calling = |callable: &&OutlinedCallable| {
            callable.kind == CallKind::Tool
                && (callable.definition.effect == Effect::Calls || callable.definition.may_call)
                && !callable.definition.manual_only
        };
        for tool in outline.callables.iter().filter(calling).filter(allowed) {
            let agents = outline.agents_by_code.iter();
            edges.extend(agents.map(|name| Edge { agent: name.clone(), through: Some(tool.name.clone()) }));
        }
        edges
    }

    fn calls(&self, agent: &Name, access: Access, way: &Way) -> Vec<ReachedCall> {
        let Some(outline) = self.outlines.get(agent) else { return Vec::new() };
        let mut calls: Vec<ReachedCall> =
            outline.callables.iter().map(|callable| self.call(agent, access, way, callable)).collect();
        for edge in self.edges(agent).into_iter().filter(|edge| edge.through.is_some()) {
            calls.push(self.call_by_code(agent, way, &edge));
        }
        for (tool, approval) in &outline.server_tools {
            let by = if *approval == Approval::PreApproved { "definition" } else { "rule" };
            let judged = self.settings.under_mode(*approval, by);
            calls.push(server_call(agent, way, tool.name(), judged));
        }
        calls
    }

    fn call(&self, agent: &Name, access: Access, way: &Way, callable: &OutlinedCallable) -> ReachedCall {
        let is_agent = callable.kind == CallKind::Agent;
        let (approval, decided_by) = self.settings.judged(callable);
        let needed = callable.definition.access;
        let refused = match is_agent {
            true => self.too_deep(way),
            false if needed > access => Some(format!(
                "it needs {} access, but has only {} access here",
                needed.as_str(),
                access.as_str()
            )),
            false => None,
        };
        ReachedCall {
            name: callable.name.clone(),
            kind: if is_agent { ReachedKind::Agent } else { ReachedKind::Tool },
            toolset: callable.definition.toolset.clone(),
            agent: agent.clone(),
            path: format!("{} > {}", way.path, callable.name),
            approval,
            judged_by_tool: callable.definition.judges_calls && approval == Approval::Ask,
            notes: callable.definition.notes.clone(),
            decided_by,
            access: needed,
            effect: (!is_agent).then_some(callable.definition.effect),
            asks_with_attachments: is_agent && self.asks_with_attachments(&callable.name, approval),
            by_code: false,
            manual_only: callable.definition.manual_only,
            recursive: is_agent && way.agents.contains(&callable.name),
            refused,
        }
    }

    fn call_by_code(&self, agent: &Name, way: &Way, edge: &Edge) -> ReachedCall {
        let (approval, decided_by) = self.settings.judged_agent(&edge.agent, Approval::PreApproved, false);
        ReachedCall {
            name: edge.agent.clone(),
            kind: ReachedKind::Agent,
            toolset: None,
            agent: agent.clone(),
            path: edge.path_from(&way.path),
            approval,
            judged_by_tool: false,
            notes: Vec::new(),
            decided_by,
            access: Access::Read,
            effect: None,
            asks_with_attachments: self.asks_with_attachments(&edge.agent, approval),
            by_code: true,
            manual_only: false,
            recursive: way.agents.contains(&edge.agent),
            refused: self.too_deep(way),
        }
    }

    fn asks_with_attachments(&self, agent: &Name, approval: Approval) -> bool {
        let policy = &self.settings.policy;
        approval == Approval::PreApproved
            && self.settings.mode != llm_do_core::ApprovalMode::ApproveAll
            && policy.must_ask(agent, true)
            && !policy.must_ask(agent, false)
    }

    fn too_deep(&self, way: &Way) -> Option<String> {
        (way.depth >= self.max_depth).then(|| format!("`max_depth` is {}", self.max_depth))
    }

    /// The agents that can come back to themselves.
    fn recursive(&self) -> HashSet<Name> {
        let edges: HashMap<&Name, Vec<Name>> = self
            .outlines
            .keys()
            .map(|agent| (agent, self.edges(agent).into_iter().map(|edge| edge.agent).collect()))
            .collect();
        let returns = |start: &Name| {
            let mut seen: HashSet<&Name> = HashSet::new();
            let mut open: Vec<&Name> = edges.get(start).into_iter().flatten().collect();
            while let Some(agent) = open.pop() {
                if agent == start {
                    return true;
                }
                if seen.insert(agent) {
                    open.extend(edges.get(agent).into_iter().flatten());
                }
            }
            false
        };
        self.outlines.keys().filter(|agent| returns(agent)).cloned().collect()
    }

    /// The longest path of agents, cut where the depth is.
    fn worst_depth(&self, entry: &Name) -> u32 {
        let mut level: HashSet<Name> = HashSet::from([entry.clone()]);
        for depth in 1..self.max_depth {
            level = level.iter().flat_map(|agent| self.edges(agent)).map(|edge| edge.agent).collect();
            if level.is_empty() {
                return depth;
            }
        }
        self.max_depth
    }
}

/// Returns the part of a model's name before the first colon or slash.
fn provider_of(model: &str) -> &str {
    model.split([':', '/']).next().unwrap_or_default()
}

fn server_call(
    agent: &Name,
    way: &Way,
    name: &'static str,
    (approval, decided_by): (Approval, &'static str),
) -> ReachedCall {
    ReachedCall {
        name: name.into(),
        kind: ReachedKind::ServerTool,
        toolset: None,
        agent: agent.clone(),
        path: format!("{} > {name}", way.path),
        approval,
        judged_by_tool: false,
        notes: Vec::new(),
        decided_by,
        access: Access::Read,
        effect: None,
        asks_with_attachments: false,
        by_code: false,
        manual_only: false,
        recursive: false,
        refused: None,
    }
}

/// A call of an agent, perhaps through a tool.
struct Edge {
    agent: Name,
    through: Option<Name>,
}

impl Edge {
    fn path_from(&self, path: &str) -> String {
        match &self.through {
            Some(tool) => format!("{path} > {tool}() > {}", self.agent),
            None => format!("{path} > {}", self.agent),
        }
    }
}
