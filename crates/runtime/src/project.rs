//! Projects: agents, tools, toolsets and entries, linked by name and frozen.
//!
//! Everything that can be known before the first token is checked here, all problems in one pass.

pub(crate) mod agent_call_policy;
pub(crate) mod entry;
pub(crate) mod link_error;
pub(crate) mod outline;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod toolset_source;
pub(crate) mod toolset_subset;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{
    AgentSpec, ApprovalRule, Context, Digest, FINAL_ANSWER, ModelChoice, Name, NeedSpec, PinnedParts,
    TemplateError, Tool, ToolDefinition, Toolset, ToolsetChoice, input_fields, nearest,
};

use serde_json::Value;

use crate::descriptors::{Descriptors, READER};
use crate::project::entry::EntrySpec;
use crate::project::link_error::{LinkError, LinkErrors, NameKind};
use crate::project::plan::{CallTarget, Digests, Plan, TargetKind, ToolSource};
use crate::project::rules::{Pattern, Rules};
use crate::project::toolset_source::{SourcedToolsets, ToolsetSource};

/// Agents, tools, toolsets and entries, linked and frozen.
#[derive(Clone)]
pub struct Project {
    linked: Arc<Linked>,
}

pub(crate) struct Linked {
    pub(crate) agents: BTreeMap<Name, Arc<Plan>>,
    pub(crate) root: Arc<Plan>,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) pin: Digest,
    /// The digests by name.
    pub(crate) pinned: PinnedParts,
    /// The directory of the project.
    pub(crate) directory: Option<PathBuf>,
    /// Context values that come with the project.
    pub(crate) context: Context,
    /// What it was linked from, for agents that are created later.
    parts: ProjectBuilder,
}

/// Changes with the agent loop: a run that began under another loop is not resumed silently.
const LOOP_VERSION: &str = "loop 1";

impl Project {
    /// Begins a project in code.
    pub fn builder() -> ProjectBuilder {
        ProjectBuilder::default()
    }

    /// Returns the names of the agents.
    pub fn agents(&self) -> impl Iterator<Item = &Name> {
        self.linked.agents.keys()
    }

    /// Returns the definition of everything that can be called from outside any agent.
    pub fn callables(&self) -> Vec<Arc<ToolDefinition>> {
        self.linked.root.definitions()
    }

    pub(crate) fn linked(&self) -> &Arc<Linked> {
        &self.linked
    }
}

/// Collects the parts of a project.
#[derive(Default)]
pub struct ProjectBuilder {
    agents: Vec<AgentSpec>,
    tools: Vec<Arc<dyn Tool>>,
    toolsets: Vec<Arc<dyn Toolset>>,
    entries: Vec<EntrySpec>,
    model: Option<ModelChoice>,
    source: Option<Arc<dyn ToolsetSource>>,
    directory: Option<PathBuf>,
    context: Context,
    /// Whether approval rules may name what the project does not have.
    unchecked_rules: bool,
}

impl ProjectBuilder {
    /// Adds an agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.agents.push(agent);
        self
    }

    /// Adds a single tool, which agents list under `tools`.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<Arc<dyn Tool>>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Adds a toolset.
    #[must_use]
    pub fn toolset(mut self, toolset: impl Toolset + 'static) -> Self {
        self.toolsets.push(Arc::new(toolset));
        self
    }

    /// Adds a toolset that is shared already.
    #[must_use]
    pub fn shared_toolset(mut self, toolset: Arc<dyn Toolset>) -> Self {
        self.toolsets.push(toolset);
        self
    }

    /// Adds code that can be the root of a run.
    #[must_use]
    pub fn entry(mut self, entry: EntrySpec) -> Self {
        self.entries.push(entry);
        self
    }

    /// Sets the model of agents that name none.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Lets agents list toolsets and tools that the source makes by name.
    #[must_use]
    pub fn toolset_source(mut self, source: impl ToolsetSource + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets the directory of the project, below which agents and tools may attach files.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Provides a context value to all runtimes of the project. A runtime may provide another one.
    #[must_use]
    pub fn provide<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context = self.context.with(value);
        self
    }

    /// Accepts approval rules and manual-only tools that name nothing in the project.
    #[must_use]
    pub fn with_unchecked_rules(mut self) -> Self {
        self.unchecked_rules = true;
        self
    }

    /// Links everything by name, or lists every problem.
    pub fn build(mut self) -> Result<Project, LinkErrors> {
        let mut problems = Vec::new();
        self.add_sourced_toolsets(&mut problems);
        self.check_names(&mut problems);
        let mut parts = ProjectParts {
            agents: self.agents.iter().map(|spec| (&spec.name, CallTarget::agent(spec))).collect(),
            digests: Digests::default(),
        };
        let link = |spec: &AgentSpec| {
            (spec.name.clone(), Arc::new(self.link_agent(spec, &mut parts, &mut problems)))
        };
        let agents: BTreeMap<Name, Arc<Plan>> = self.agents.iter().map(link).collect();
        if !problems.is_empty() {
            return Err(LinkErrors(problems));
        }
        let root = Arc::new(self.link_root(&mut parts));
        let (pin, pinned) = (pin(&agents, &root), pinned(&agents, &root));
        let (model, directory, context) = (self.model.clone(), self.directory.clone(), self.context.clone());
        let linked = Linked { agents, root, model, pin, pinned, directory, context, parts: self };
        Ok(Project { linked: Arc::new(linked) })
    }

    /// Adds what agents list and the source makes.
    fn add_sourced_toolsets(&mut self, problems: &mut Vec<LinkError>) {
        let Some(source) = self.source.clone() else { return };
        let mut sourced = SourcedToolsets::new(&*source);
        let mut agents = std::mem::take(&mut self.agents);
        let names: HashSet<Name> = agents.iter().map(|spec| spec.name.clone()).collect();
        for spec in &mut agents {
            self.give_sourced(&mut sourced, spec, |name| names.contains(name), problems);
        }
        self.agents = agents;
        let shared: Vec<_> = sourced.into_shared().collect();
        for choice in self.agents.iter_mut().flat_map(|spec| &mut spec.toolsets) {
            // The project has these now, so that code outside any agent finds them by their names.
            let is_shared = |own: &Arc<dyn Toolset>| shared.iter().any(|shared| Arc::ptr_eq(shared, own));
            choice.own.take_if(|own| is_shared(own));
        }
        self.toolsets.extend(shared);
    }

    fn give_sourced(
        &self,
        sourced: &mut SourcedToolsets<'_>,
        spec: &mut AgentSpec,
        is_agent: impl Fn(&Name) -> bool,
        problems: &mut Vec<LinkError>,
    ) {
        let has_tool = |name: &Name| self.tools.iter().any(|tool| tool.definition().name == *name);
        let has_toolset =
            |name: &Name| is_agent(name) || self.toolsets.iter().any(|toolset| toolset.name() == name);
        sourced.give(spec, has_tool, has_toolset, problems);
    }

    fn check_names(&self, problems: &mut Vec<LinkError>) {
        let agents = self.agents.iter().map(|agent| (NameKind::Agent, &agent.name));
        let entries = self.entries.iter().map(|entry| (NameKind::Entry, entry.name()));
        let tools = self.tools.iter().map(|tool| (NameKind::Tool, &tool.definition().name));
        let toolsets = self.toolsets.iter().map(|toolset| (NameKind::Toolset, toolset.name()));
        // An agent, entry or tool is called by its name; an agent is listed where toolsets are.
        check_unique(agents.clone().chain(entries).chain(tools), problems);
        check_unique(agents.chain(toolsets), problems);
    }

    /// A new agent takes no name that a tool, a toolset or an entry has.
    fn check_new_name(&self, spec: &AgentSpec, problems: &mut Vec<LinkError>) {
        let entries = self.entries.iter().map(|entry| (NameKind::Entry, entry.name()));
        let tools = self.tools.iter().map(|tool| (NameKind::Tool, &tool.definition().name));
        let toolsets = self.toolsets.iter().map(|toolset| (NameKind::Toolset, toolset.name()));
        let others = entries.chain(tools).chain(toolsets).filter(|(_, name)| **name == spec.name);
        check_unique(others.take(1).chain([(NameKind::Agent, &spec.name)]), problems);
    }

    fn link_agent(
        &self,
        spec: &AgentSpec,
        parts: &mut ProjectParts<'_>,
        problems: &mut Vec<LinkError>,
    ) -> Plan {
        let mut plan = Plan::new(Some(Arc::new(spec.clone())));
        for name in &spec.tools {
            match self.tools.iter().find(|tool| tool.definition().name == *name) {
                Some(tool) => add(
                    &mut plan,
                    name.clone(),
                    CallTarget::tool(ToolSource::Shared(tool.clone()), None, &mut parts.digests),
                    problems,
                ),
                None => problems.push(self.unknown_tool(spec, name)),
            }
        }
        for choice in &spec.toolsets {
            self.link_toolset(spec, choice, &mut plan, parts, problems);
        }
        link_overrides(spec, &mut plan, problems);
        if spec.output.is_some() && plan.target(FINAL_ANSWER).is_some() {
            problems.push(LinkError::ReservedName { agent: spec.name.clone(), name: FINAL_ANSWER.into() });
        }
        check_prompt(spec, problems);
        plan.rules = self.link_rules(spec, &plan, problems);
        let manual_only = link_manual_only(spec, &plan, self.unchecked_rules, problems);
        plan.mark_manual_only(&manual_only);
        plan.finish();
        plan
    }

    fn link_toolset(
        &self,
        spec: &AgentSpec,
        choice: &ToolsetChoice,
        plan: &mut Plan,
        parts: &mut ProjectParts<'_>,
        problems: &mut Vec<LinkError>,
    ) {
        if let Some(agent) = parts.agents.get(&choice.name) {
            return add(plan, choice.name.clone(), agent.clone(), problems);
        }
        let shared = || self.toolsets.iter().find(|toolset| *toolset.name() == choice.name);
        let Some(toolset) = choice.own.as_ref().or_else(shared) else {
            return problems.push(self.unknown_toolset(spec, &choice.name));
        };
        // A toolset of the agent's own was made with its settings.
        let settings = if choice.own.is_some() { Value::Null } else { choice.settings.clone() };
        // What comes by itself works on long results: where another tool has the place of that which reads them, they
        // are cut, and there is nothing to work on.
        let reads = |definition: &Arc<ToolDefinition>| definition.name == READER;
        if choice.implicit && toolset.definitions().iter().any(reads) && has_another_reader(spec, plan) {
            return;
        }
        let slot = plan.add_slot(toolset.clone(), settings);
        for definition in toolset.definitions() {
            if choice.implicit && is_taken(&definition.name, spec, plan) {
                continue;
            }
            let seen = toolset.described_for(&reworded(&definition, spec), spec);
            let target = CallTarget::tool(
                ToolSource::Slot { slot, definition },
                Some(toolset.name()),
                &mut parts.digests,
            );
            add(plan, target.definition.name.clone(), target.described(&seen), problems);
        }
    }

    fn link_rules(&self, spec: &AgentSpec, plan: &Plan, problems: &mut Vec<LinkError>) -> Rules {
        for rule in &spec.approval {
            if let Some(problem) = self.rule_problem(spec, rule, plan) {
                problems.push(problem);
            }
        }
        for pattern in &spec.agents {
            if let Err(reason) = Pattern::compile(pattern) {
                problems.push(LinkError::BadGlob { agent: spec.name.clone(), reason });
            }
        }
        match Rules::compile(&spec.approval) {
            Ok(rules) => rules,
            Err(reason) => {
                problems.push(LinkError::BadGlob { agent: spec.name.clone(), reason });
                Rules::default()
            }
        }
    }

    /// A plain name in a rule that names nothing is a misspelling. Globs may match nothing, and a dotted name
    /// may be an inner effect that only its tool knows.
    fn rule_problem(&self, spec: &AgentSpec, rule: &ApprovalRule, plan: &Plan) -> Option<LinkError> {
        let pattern = rule.pattern.as_str();
        let server_tools = spec.server_tools.iter().map(|tool| -> &str { tool.name() });
        let known = plan.names().chain(self.agents.iter().map(|agent| &*agent.name)).chain(server_tools);
        let plain = !self.unchecked_rules && !pattern.contains(['*', '?', '[', '{', '.']);
        (plain && !known.clone().any(|name| name == pattern)).then(|| LinkError::Unknown {
            agent: spec.name.clone(),
            kind: NameKind::ApprovalRule,
            name: pattern.into(),
            nearest: nearest(pattern, known).map(str::to_owned),
            advice: None,
        })
    }

    /// The plan of code outside any agent: everything by name, `toolset.tool` where a name is ambiguous.
    fn link_root(&self, parts: &mut ProjectParts<'_>) -> Plan {
        let mut plan = Plan::new(None);
        for (name, target) in &parts.agents {
            plan.add((*name).clone(), target.clone());
        }
        for entry in &self.entries {
            plan.add(entry.name().clone(), CallTarget::entry(entry.tool()));
        }
        for tool in &self.tools {
            let target = CallTarget::tool(ToolSource::Shared(tool.clone()), None, &mut parts.digests);
            plan.add(tool.definition().name.clone(), target);
        }
        self.toolsets.iter().for_each(|toolset| add_to_root(&mut plan, toolset, &mut parts.digests));
        self.link_own_toolsets(&mut plan, &mut parts.digests);
        plan.finish();
        plan
    }

    /// Toolsets that agents have with settings of their own: by name where only one agent has it.
    fn link_own_toolsets(&self, plan: &mut Plan, digests: &mut Digests) {
        let mut owners: BTreeMap<&Name, Vec<Owned<'_>>> = BTreeMap::new();
        for spec in &self.agents {
            for choice in spec.toolsets.iter().filter(|choice| !choice.implicit) {
                if let Some(toolset) = &choice.own {
                    owners.entry(&choice.name).or_default().push((&spec.name, toolset));
                }
            }
        }
        for (name, owners) in owners {
            match &owners[..] {
                [(_, toolset)] if self.toolsets.iter().all(|shared| shared.name() != name) => {
                    add_to_root(plan, toolset, digests);
                }
                several => mark_as_owned(plan, several),
            }
        }
    }

    fn unknown_tool(&self, spec: &AgentSpec, name: &Name) -> LinkError {
        let has_it = |toolset: &&Arc<dyn Toolset>| {
            toolset.definitions().iter().any(|definition| definition.name == *name)
        };
        let holder = self.toolsets.iter().find(has_it).map(|toolset| toolset.name());
        let advice = match holder {
            _ if self.toolset_names().contains(&name.as_str()) => {
                Some(format!("it is not a single tool: list it with `toolset(\"{name}\")`"))
            }
            Some(toolset) => {
                Some(format!("it belongs to a toolset: list that with `toolset(\"{toolset}\")`"))
            }
            None => None,
        };
        self.unknown(spec, NameKind::Tool, name, self.tool_names(), advice)
    }

    fn unknown_toolset(&self, spec: &AgentSpec, name: &Name) -> LinkError {
        let is_tool = self.tool_names().contains(&name.as_str());
        let advice = is_tool.then(|| format!("it is a single tool: list it with `tool(\"{name}\")`"));
        self.unknown(spec, NameKind::Toolset, name, self.toolset_names(), advice)
    }

    fn unknown(
        &self,
        spec: &AgentSpec,
        kind: NameKind,
        name: &Name,
        known: Vec<&str>,
        advice: Option<String>,
    ) -> LinkError {
        let nearest = nearest(name, known).map(str::to_owned);
        let how =
            format!("add it with `ProjectBuilder::{kind}`, or the built-in ones with `builtins(directory)`");
        let advice = advice.or_else(|| nearest.is_none().then_some(how));
        LinkError::Unknown { agent: spec.name.clone(), kind, name: name.clone(), nearest, advice }
    }

    fn tool_names(&self) -> Vec<&str> {
        let sourced = self.source.iter().flat_map(|source| source.tools());
        self.tools.iter().map(|tool| tool.definition().name.as_str()).chain(sourced).collect()
    }

    fn toolset_names(&self) -> Vec<&str> {
        let toolsets = self.toolsets.iter().map(|toolset| toolset.name().as_str());
        let sourced = self.source.iter().flat_map(|source| source.toolsets());
        toolsets.chain(self.agents.iter().map(|agent| agent.name.as_str())).chain(sourced).collect()
    }
}

impl Linked {
    /// Returns the agent with the toolsets that it lists and the source makes.
    pub(crate) fn with_sourced_toolsets(
        &self,
        spec: &AgentSpec,
        is_created: impl Fn(&Name) -> bool,
    ) -> Result<AgentSpec, LinkErrors> {
        let mut spec = spec.clone();
        let mut problems = Vec::new();
        if let Some(source) = &self.parts.source {
            let is_agent = |name: &Name| self.agents.contains_key(name) || is_created(name);
            self.parts.give_sourced(&mut SourcedToolsets::new(&**source), &mut spec, is_agent, &mut problems);
        }
        if problems.is_empty() { Ok(spec) } else { Err(LinkErrors(problems)) }
    }

    /// Links one more agent against the same parts, and against agents that were created before it.
    pub(crate) fn link_more<'a>(
        &'a self,
        spec: &'a AgentSpec,
        created: impl Iterator<Item = (&'a Name, CallTarget)>,
    ) -> Result<Plan, LinkErrors> {
        let mut problems = Vec::new();
        self.parts.check_new_name(spec, &mut problems);
        let frozen = self.parts.agents.iter().map(|spec| (&spec.name, CallTarget::agent(spec)));
        let agents = frozen.chain(created).chain([(&spec.name, CallTarget::agent(spec))]).collect();
        let mut parts = ProjectParts { agents, digests: Digests::default() };
        let plan = self.parts.link_agent(spec, &mut parts, &mut problems);
        if problems.is_empty() { Ok(plan) } else { Err(LinkErrors(problems)) }
    }
}

/// Checks a prompt that is a template against the fields of the input.
fn check_prompt(spec: &AgentSpec, problems: &mut Vec<LinkError>) {
    let schema = spec.input.as_ref().and_then(|schema| schema.source().as_object());
    if let Some(Err(error)) = spec.prompt.as_ref().map(|prompt| prompt.check(schema)) {
        let nearest = match &error {
            TemplateError::UnknownName { name } => nearest(name, input_fields(schema)).map(str::to_owned),
            _ => None,
        };
        problems.push(LinkError::BadPrompt { agent: spec.name.clone(), error, nearest });
    }
}

/// Offers tools to an agent as it says: under other names, in other words. All names are free before the first is
/// given, so that two tools may change theirs.
fn link_overrides(spec: &AgentSpec, plan: &mut Plan, problems: &mut Vec<LinkError>) {
    let unknown = |kind, name: &str, known: Vec<&str>| {
        let nearest = nearest(name, known).map(str::to_owned);
        LinkError::Unknown { agent: spec.name.clone(), kind, name: name.into(), nearest, advice: None }
    };
    let mut taken = Vec::new();
    for change in &spec.overrides {
        let Some((position, target)) = plan.take_tool(&change.tool) else {
            problems.push(unknown(NameKind::ChangedTool, &change.tool, plan.tool_names().collect()));
            continue;
        };
        let parameters = parameters(&target.definition);
        for (name, _) in change.parameters.iter().filter(|(name, _)| !parameters.contains(&name.as_str())) {
            problems.push(unknown(NameKind::Parameter, name, parameters.clone()));
        }
        taken.push((position, target.offered_as(change)));
    }
    for (position, target) in taken {
        let name = &target.definition.name;
        if !Name::is_valid(name) {
            problems.push(LinkError::BadName { kind: NameKind::Tool, name: name.clone() });
        }
        if let Some(other) = plan.target(name) {
            problems.push(LinkError::Collision {
                agent: spec.name.clone(),
                name: name.clone(),
                first: origin_of(other),
                second: origin_of(&target),
            });
        }
        plan.put_tool(position, target);
    }
}

/// The definition in the words of an agent, to which its toolset may add what holds for that agent.
fn reworded(definition: &Arc<ToolDefinition>, spec: &AgentSpec) -> Arc<ToolDefinition> {
    let change = spec.overrides.iter().find(|change| change.tool == definition.name);
    match change.and_then(|change| change.description.clone()) {
        Some(description) => Arc::new(ToolDefinition { description, ..ToolDefinition::clone(definition) }),
        None => definition.clone(),
    }
}

fn parameters(definition: &ToolDefinition) -> Vec<&str> {
    let properties = definition.input.source().get("properties").and_then(Value::as_object);
    properties.map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// Compiles the patterns of manual-only tools. A plain name that names no tool is a misspelling.
fn link_manual_only(
    spec: &AgentSpec,
    plan: &Plan,
    unchecked: bool,
    problems: &mut Vec<LinkError>,
) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for written in &spec.manual_only {
        match Pattern::compile(written) {
            Err(reason) => problems.push(LinkError::BadGlob { agent: spec.name.clone(), reason }),
            Ok(pattern) if !unchecked && pattern.is_plain() && !plan.has_tool(&pattern) => {
                problems.push(LinkError::Unknown {
                    agent: spec.name.clone(),
                    kind: NameKind::ManualOnlyTool,
                    name: written.as_str().into(),
                    nearest: nearest(written, plan.tool_names()).map(str::to_owned),
                    advice: None,
                });
            }
            Ok(pattern) => patterns.push(pattern),
        }
    }
    patterns
}

/// What is worked out once for all agents that list it.
struct ProjectParts<'a> {
    agents: BTreeMap<&'a Name, CallTarget>,
    digests: Digests,
}

/// A toolset that an agent has for itself, after the agent's name.
type Owned<'a> = (&'a Name, &'a Arc<dyn Toolset>);

/// Adds the tools of a toolset: as `toolset.tool`, and alone where that is not ambiguous.
fn add_to_root(plan: &mut Plan, toolset: &Arc<dyn Toolset>, digests: &mut Digests) {
    let slot = plan.add_slot(toolset.clone(), Value::Null);
    for definition in toolset.definitions() {
        let qualified = format!("{}.{}", toolset.name(), definition.name);
        let target = CallTarget::tool(
            ToolSource::Slot { slot, definition: definition.clone() },
            Some(toolset.name()),
            digests,
        );
        plan.add(qualified.as_str().into(), target.clone());
        plan.add_or_mark_ambiguous(definition.name.clone(), target, &qualified);
    }
}

/// Several agents have the toolset, each with settings of its own: nobody can say whose is meant.
fn mark_as_owned(plan: &mut Plan, owners: &[Owned<'_>]) {
    for (agent, toolset) in owners {
        for definition in toolset.definitions() {
            plan.mark_ambiguous(&definition.name, format!("it in the name of the agent `{agent}`"));
        }
    }
}

fn check_unique<'a>(names: impl Iterator<Item = (NameKind, &'a Name)>, problems: &mut Vec<LinkError>) {
    let mut seen: BTreeMap<&Name, NameKind> = BTreeMap::new();
    for (kind, name) in names {
        if !Name::is_valid(name) {
            let problem = LinkError::BadName { kind, name: name.clone() };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        if let Some(other) = seen.insert(name, kind) {
            let problem = LinkError::Duplicate { name: name.clone(), first: other, second: kind };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
}

fn add(plan: &mut Plan, name: Name, target: CallTarget, problems: &mut Vec<LinkError>) {
    if let Some(other) = plan.target(&name) {
        let (agent, first, second) = (plan.owner(), origin_of(other), origin_of(&target));
        problems.push(LinkError::Collision { agent, name, first, second });
    } else {
        plan.add(name, target);
    }
}

/// Returns whether an agent has something of its own under a name, or will have.
fn is_taken(name: &Name, spec: &AgentSpec, plan: &Plan) -> bool {
    plan.target(name).is_some() || spec.overrides.iter().any(|change| change.alias.as_ref() == Some(name))
}

/// Returns whether the name of the tool that reads long results means something else here.
fn has_another_reader(spec: &AgentSpec, plan: &Plan) -> bool {
    let need = NeedSpec::typed::<Descriptors>();
    let other = plan.target(READER).is_some_and(|target| !target.definition.needs.contains(&need));
    let is_alias = spec.overrides.iter().any(|change| change.alias.as_deref() == Some(READER));
    other || is_alias
}

/// Says where something comes from, and its own name.
fn origin_of(target: &CallTarget) -> String {
    let name = target.own_name.as_ref().unwrap_or(&target.definition.name);
    match (&target.kind, &target.definition.toolset) {
        (TargetKind::Agent, _) => format!("the agent `{name}`"),
        (_, Some(toolset)) => format!("`{name}` of the toolset `{toolset}`"),
        (_, None) => format!("the tool `{name}`"),
    }
}

/// The digest of everything that persons wrote. Agents that agents create come and go while a run lasts, and
/// are not a change of its project.
fn pin(agents: &BTreeMap<Name, Arc<Plan>>, root: &Plan) -> Digest {
    let is_generated =
        |name: &Name| agents.get(name).and_then(|plan| plan.spec.as_ref()).is_some_and(|spec| spec.generated);
    let specs = agents.values().filter_map(|plan| plan.spec.as_ref());
    let agents = specs.filter(|spec| !spec.generated).map(|spec| spec.digest());
    let definitions = root.definitions().into_iter().filter(|definition| !is_generated(&definition.name));
    let definitions = definitions.map(|definition| definition.digest());
    let loop_version = Digest::hash(LOOP_VERSION);
    agents.chain(definitions).fold(loop_version, |pin, digest| pin.then(&digest))
}

/// The same by name. Agents may hold the same tool in different words: then all of them count.
fn pinned(agents: &BTreeMap<Name, Arc<Plan>>, root: &Plan) -> PinnedParts {
    let by_people = |plan: &&Arc<Plan>| plan.spec.as_ref().is_some_and(|spec| !spec.generated);
    let plans: Vec<&Arc<Plan>> = agents.values().filter(by_people).collect();
    let specs = plans.iter().filter_map(|plan| plan.spec.as_ref());
    let agents = specs.map(|spec| (spec.name.clone(), spec.digest())).collect();
    let mut tools: BTreeMap<Name, BTreeSet<Digest>> = BTreeMap::new();
    let targets = plans.iter().flat_map(|plan| plan.entries()).chain(root.entries());
    for (_, target) in targets.filter(|(_, target)| !matches!(target.kind, TargetKind::Agent)) {
        tools.entry(target.part_name()).or_default().insert(target.digest);
    }
    let together = |digests: BTreeSet<Digest>| digests.into_iter().reduce(|all, digest| all.then(&digest));
    let tools = tools.into_iter().filter_map(|(name, digests)| Some((name, together(digests)?))).collect();
    PinnedParts { agents, tools, agent_loop: LOOP_VERSION.to_owned() }
}
