//! Plans: what an agent, or code outside any agent, can name, worked out once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use llm_do_core::{
    Access, AgentSpec, Approval, AttachmentPolicy, CallOrigin, Control, Digest, Effect, FINAL_ANSWER,
    Failure, FailureKind, HintAudience, Name, NeedSpec, Prompt, Schema, Tool, ToolDefinition, ToolOverride,
    Toolset, nearest,
};
use serde_json::{Value, json};

use crate::descriptors::Descriptors;
use crate::project::rules::{Pattern, Rules};

/// Descriptions that agents get from their instructions are cut at this many characters.
const DESCRIPTION: usize = 200;

/// Tools on descriptors that read none.
const OTHER_DESCRIPTOR_TOOLS: [&str; 4] = ["grep_fd", "list_fd", "close_fd", "fd_to_file"];

/// What an agent can name, and what its model is offered. Frozen.
pub(crate) struct Plan {
    pub(crate) spec: Option<Arc<AgentSpec>>,
    pub(crate) rules: Rules,
    pub(crate) slots: Vec<SlotPlan>,
    /// The tools offered to the model, in a fixed order; the last one takes a structured answer.
    pub(crate) offered: Arc<[Arc<ToolDefinition>]>,
    order: Vec<Name>,
    table: HashMap<Name, CallTarget>,
    ambiguous: HashMap<Name, Vec<String>>,
    /// Tools that are offered under another name, by their own names: code may use both.
    renamed: HashMap<Name, Name>,
    narrowing: Vec<Pattern>,
    /// Whether the model may go back to earlier messages, so that they show their number.
    pub(crate) shows_positions: bool,
    /// Whether its tools can read texts that are too long for a conversation.
    pub(crate) reads_descriptors: bool,
    /// The name of the tool by which its model reads them.
    pub(crate) reader: Option<Name>,
    /// Whether long results are cut: there would be tools for them, and none that reads.
    pub(crate) cuts_results: bool,
}

/// A toolset as one agent lists it.
pub(crate) struct SlotPlan {
    pub(crate) toolset: Arc<dyn Toolset>,
    pub(crate) settings: Value,
}

/// What a name resolves to.
#[derive(Clone)]
pub(crate) struct CallTarget {
    pub(crate) kind: TargetKind,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) digest: Digest,
    /// What the call and everything below it may do at most.
    pub(crate) ceiling: Access,
    /// Whether the input has a schema of its own, which code must keep to as well.
    pub(crate) has_own_input: bool,
    /// Which files it takes, where it is an agent.
    pub(crate) attachment_policy: Arc<AttachmentPolicy>,
    /// How the input of an agent becomes its first message, where the agent says so.
    pub(crate) prompt: Option<Prompt>,
    /// The tool's own name, where an agent is offered it under another one.
    pub(crate) own_name: Option<Name>,
}

#[derive(Clone)]
pub(crate) enum TargetKind {
    Agent,
    Tool(ToolSource),
    Entry(Arc<dyn Tool>),
}

/// Where a tool comes from.
#[derive(Clone)]
pub(crate) enum ToolSource {
    /// A single tool without state.
    Shared(Arc<dyn Tool>),
    /// A tool of a toolset, taken from the instance of the call.
    Slot { slot: usize, definition: Arc<ToolDefinition> },
}

/// Digests of definitions that many agents list, each worked out once.
#[derive(Default)]
pub(crate) struct Digests(HashMap<*const ToolDefinition, (Arc<ToolDefinition>, Digest)>);

impl Digests {
    /// The definition is kept with its digest, so that its address stays its own.
    fn get(&mut self, definition: &Arc<ToolDefinition>) -> Digest {
        let fresh = || (definition.clone(), definition.digest());
        self.0.entry(Arc::as_ptr(definition)).or_insert_with(fresh).1
    }
}

impl CallTarget {
    /// A tool under the name of its toolset, whatever its author wrote there: rules and grants go by it.
    pub(crate) fn tool(source: ToolSource, toolset: Option<&Name>, digests: &mut Digests) -> Self {
        let announced = match &source {
            ToolSource::Shared(tool) => tool.definition(),
            ToolSource::Slot { definition, .. } => definition,
        };
        let definition = if announced.toolset.as_ref() == toolset {
            announced.clone()
        } else {
            Arc::new(ToolDefinition { toolset: toolset.cloned(), ..ToolDefinition::clone(announced) })
        };
        let digest = digests.get(&definition);
        Self::code(TargetKind::Tool(source), definition, digest)
    }

    /// Code: it has an input of its own, and takes no attachments as agents do.
    fn code(kind: TargetKind, definition: Arc<ToolDefinition>, digest: Digest) -> Self {
        Self {
            kind,
            digest,
            ceiling: definition.ceiling.unwrap_or(definition.access),
            definition,
            has_own_input: true,
            attachment_policy: Arc::default(),
            prompt: None,
            own_name: None,
        }
    }

    /// Returns the slot of the toolset that the tool is taken from.
    pub(crate) fn slot(&self) -> Option<usize> {
        match &self.kind {
            TargetKind::Tool(ToolSource::Slot { slot, .. }) => Some(*slot),
            TargetKind::Tool(ToolSource::Shared(_)) | TargetKind::Agent | TargetKind::Entry(_) => None,
        }
    }

    /// Describes the tool in other words.
    pub(crate) fn described(mut self, seen: &ToolDefinition) -> Self {
        self.define(ToolDefinition { toolset: self.definition.toolset.clone(), ..seen.clone() });
        self
    }

    fn mark_manual_only(&mut self) {
        self.define(ToolDefinition { manual_only: true, ..ToolDefinition::clone(&self.definition) });
    }

    /// Another definition has another digest: what was granted to one does not cover the other.
    fn define(&mut self, definition: ToolDefinition) {
        if definition != *self.definition {
            self.digest = definition.digest();
            self.definition = Arc::new(definition);
        }
    }

    /// The same tool as one agent is offered it. The definition is a copy, so that no other agent sees the change;
    /// what is opened and run is still compared with what was announced.
    pub(crate) fn offered_as(&self, change: &ToolOverride) -> Self {
        let mut definition = ToolDefinition::clone(&self.definition);
        let own_name = change.alias.as_ref().map(|_| definition.name.clone());
        definition.name = change.alias.clone().unwrap_or(definition.name);
        // A tool of a toolset has the other words already, and what its toolset adds to them.
        if let (TargetKind::Tool(ToolSource::Shared(_)), Some(message)) = (&self.kind, &change.description) {
            definition.description = message.clone();
        }
        if let Ok(input) = Schema::new(change.described(definition.input.source())) {
            definition.input = input;
        }
        // An agent cannot say of a tool that it needs less than it does, nor that its calls may do more.
        definition.ceiling = definition.ceiling.or(change.access.map(|_| definition.access));
        definition.access = change.access.map_or(definition.access, |access| access.max(definition.access));
        Self { digest: definition.digest(), definition: Arc::new(definition), own_name, ..self.clone() }
    }

    /// What it needs by itself, whatever an agent asks for more.
    pub(crate) fn own_access(&self) -> Access {
        match &self.kind {
            TargetKind::Tool(ToolSource::Shared(tool)) | TargetKind::Entry(tool) => tool.definition().access,
            TargetKind::Tool(ToolSource::Slot { definition, .. }) => definition.access,
            TargetKind::Agent => self.definition.access,
        }
    }

    /// The name by which rules and grants know a call: that which the model uses, whatever code calls it by.
    pub(crate) fn ruled_name<'a>(&'a self, called: &'a Name) -> &'a Name {
        if self.own_name.is_some() { &self.definition.name } else { called }
    }

    /// Returns what a tool is, whatever an agent calls it: its toolset and its own name.
    pub(crate) fn identity<'a>(&'a self, called: &'a Name) -> (Option<&'a Name>, &'a Name) {
        (self.definition.toolset.as_ref(), self.own_name.as_ref().unwrap_or(called))
    }

    /// The name by which the record knows a tool: `toolset.tool`, or its own name if it has no toolset.
    pub(crate) fn part_name(&self) -> Name {
        let own = self.own_name.as_ref().unwrap_or(&self.definition.name);
        match &self.definition.toolset {
            Some(toolset) => format!("{toolset}.{own}").as_str().into(),
            None => own.clone(),
        }
    }

    /// Returns whether a pattern means it: by the name that the model uses, or by its toolset and own name.
    pub(crate) fn is_meant_by(&self, pattern: &Pattern, called: &Name) -> bool {
        let name = self.ruled_name(called);
        let own = self.own_name.as_ref().unwrap_or(name);
        let toolset = self.definition.toolset.as_ref();
        pattern.is_match(name) || toolset.is_some_and(|toolset| pattern.is_match(&format!("{toolset}.{own}")))
    }

    pub(crate) fn entry(tool: Arc<dyn Tool>) -> Self {
        let definition = tool.definition().clone();
        let digest = definition.digest();
        Self::code(TargetKind::Entry(tool), definition, digest)
    }

    pub(crate) fn agent(spec: &AgentSpec) -> Self {
        let definition = Arc::new(agent_definition(spec));
        Self {
            kind: TargetKind::Agent,
            digest: spec.digest(),
            definition,
            ceiling: spec.access,
            has_own_input: spec.input.is_some(),
            attachment_policy: Arc::new(spec.attachment_policy.clone()),
            prompt: spec.prompt.clone(),
            own_name: None,
        }
    }
}

impl CallTarget {
    /// The same agent, taking a text instead of what it usually takes.
    pub(crate) fn taking_text(self) -> Self {
        let definition = ToolDefinition { input: prompt_schema(), ..ToolDefinition::clone(&self.definition) };
        Self { definition: Arc::new(definition), has_own_input: false, prompt: None, ..self }
    }
}

/// An agent as a tool: its name, description and input schema.
fn agent_definition(spec: &AgentSpec) -> ToolDefinition {
    let input = spec.input.clone().unwrap_or_else(prompt_schema);
    let mut definition = ToolDefinition::new(spec.name.clone(), agent_description(spec), input);
    definition.access = Access::Read;
    definition.approval = Approval::PreApproved;
    definition.effect = Effect::Calls;
    definition.time_limit = spec.limits.time;
    definition
}

fn agent_description(spec: &AgentSpec) -> String {
    if !spec.description.is_empty() {
        return spec.description.clone();
    }
    let instructions = spec.instructions.trim();
    match instructions.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}...", &instructions[..end]),
        None => instructions.to_owned(),
    }
}

/// The field that holds an answer which is not an object: what a tool takes always is one.
pub(crate) const WRAPPED: &str = "value";

/// Returns whether an answer of that schema is given in a field of an object.
pub(crate) fn is_wrapped(schema: &Schema) -> bool {
    schema.source().get("type").and_then(Value::as_str) != Some("object")
}

fn answer_schema(output: Schema) -> Schema {
    if !is_wrapped(&output) {
        return output;
    }
    let mut inner = output.source().clone();
    let mut wrapper = json!({"type": "object", "required": [WRAPPED], "additionalProperties": false});
    // References are read from the root.
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = inner.as_object_mut().and_then(|inner| inner.shift_remove(key)) {
            wrapper[key] = definitions;
        }
    }
    wrapper["properties"] = json!({WRAPPED: inner});
    Schema::new(wrapper).unwrap_or(output)
}

/// The input of an agent without a schema: a text, and paths of files.
pub(crate) fn prompt_schema() -> Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(make_prompt_schema).clone()
}

fn make_prompt_schema() -> Schema {
    let input = json!({"type": "string", "description": "What the agent shall do"});
    let attachments =
        json!({"type": "array", "items": {"type": "string"}, "description": "Paths of files to attach"});
    Schema::object([("input".into(), input), ("attachments".into(), attachments)], ["input".into()])
}

impl Plan {
    pub(crate) fn new(spec: Option<Arc<AgentSpec>>) -> Self {
        let patterns = spec.as_ref().map(|spec| spec.agents.as_slice()).unwrap_or_default();
        // A pattern that is not a glob matches nothing, which narrows more and not less.
        let narrowing = patterns.iter().filter_map(|pattern| Pattern::compile(pattern).ok()).collect();
        Self {
            spec,
            rules: Rules::default(),
            slots: Vec::new(),
            offered: Arc::new([]),
            order: Vec::new(),
            table: HashMap::new(),
            ambiguous: HashMap::new(),
            renamed: HashMap::new(),
            narrowing,
            shows_positions: false,
            reads_descriptors: false,
            reader: None,
            cuts_results: false,
        }
    }

    /// The name of the agent, or of the code outside any.
    pub(crate) fn owner(&self) -> Name {
        self.spec.as_ref().map_or_else(|| Name::from(""), |spec| spec.name.clone())
    }

    pub(crate) fn add_slot(&mut self, toolset: Arc<dyn Toolset>, settings: Value) -> usize {
        self.slots.push(SlotPlan { toolset, settings });
        self.slots.len() - 1
    }

    pub(crate) fn add(&mut self, name: Name, target: CallTarget) {
        self.order.push(name.clone());
        self.table.insert(name, target);
    }

    /// Adds a name unless another toolset has it too; then only the qualified names work. What belongs to no toolset
    /// has no other name, and keeps it.
    pub(crate) fn add_or_mark_ambiguous(&mut self, name: Name, target: CallTarget, qualified: &str) {
        match self.table.get(&name).map(|other| other.definition.toolset.clone()) {
            Some(None) => {}
            None if !self.ambiguous.contains_key(&name) => self.add(name, target),
            other => {
                let first = other.flatten().map(|toolset| format!("{toolset}.{name}"));
                first.into_iter().for_each(|first| self.mark_ambiguous(&name, first));
                self.mark_ambiguous(&name, qualified.to_owned());
            }
        }
    }

    /// Takes a name of toolsets out, and remembers what can be named instead.
    pub(crate) fn mark_ambiguous(&mut self, name: &Name, choice: String) {
        if self.table.get(name).is_some_and(|other| other.definition.toolset.is_none()) {
            return;
        }
        self.ambiguous.entry(name.clone()).or_default().push(choice);
        self.table.remove(name);
        self.order.retain(|other| other != name);
    }

    /// Takes a tool out to offer it in another form, and returns its index.
    pub(crate) fn take_tool(&mut self, name: &Name) -> Option<(usize, CallTarget)> {
        let is_tool = self.table.get(name).is_some_and(|target| matches!(target.kind, TargetKind::Tool(_)));
        let position = self.order.iter().position(|other| is_tool && other == name)?;
        Some((position, self.table.remove(name)?))
    }

    /// Puts a tool back as it is offered now.
    pub(crate) fn put_tool(&mut self, position: usize, target: CallTarget) {
        let name = target.definition.name.clone();
        if let Some(own) = &target.own_name {
            self.renamed.insert(own.clone(), name.clone());
        }
        self.order[position] = name.clone();
        self.table.insert(name, target);
    }

    /// Returns what a name means for code: a tool that the model is offered under another name keeps its own there.
    pub(crate) fn target_for_code(&self, name: &str) -> Option<&CallTarget> {
        self.table.get(name).or_else(|| self.table.get(self.renamed.get(name)?))
    }

    /// Marks the tools that match as manual-only. A definition that says so itself stays so.
    pub(crate) fn mark_manual_only(&mut self, patterns: &[Pattern]) {
        if patterns.is_empty() {
            return;
        }
        for (name, target) in &mut self.table {
            let is_tool = matches!(target.kind, TargetKind::Tool(_));
            if is_tool && patterns.iter().any(|pattern| target.is_meant_by(pattern, name)) {
                target.mark_manual_only();
            }
        }
    }

    /// Fixes what the model is offered.
    pub(crate) fn finish(&mut self) {
        let is_tunable = self.spec.as_ref().is_some_and(|spec| !spec.tuning.is_empty());
        let has_use = |target: &&CallTarget| is_tunable || target.definition.control != Some(Control::Tune);
        let named = self.order.iter().filter(|name| self.is_for_models(name));
        let mut offered: Vec<_> = named
            .filter_map(|name| self.table.get(name))
            .filter(has_use)
            .map(|target| target.definition.clone())
            .collect();
        if let Some(output) = self.spec.as_ref().and_then(|spec| spec.output.clone()) {
            let description = "Gives the final answer. Call it alone, once, when everything else is done.";
            offered.push(Arc::new(ToolDefinition::new(FINAL_ANSWER, description, answer_schema(output))));
        }
        self.shows_positions = offered.iter().any(|definition| definition.control == Some(Control::Goto));
        self.offered = offered.into();
        self.find_reader();
    }

    /// Finds the tool that reads long texts, under whatever name the model is offered it.
    fn find_reader(&mut self) {
        let need = NeedSpec::typed::<Descriptors>();
        let works_on_them = |definition: &ToolDefinition| definition.needs.contains(&need);
        self.reads_descriptors = self.offered.iter().any(|definition| works_on_them(definition));
        let own_name = |definition: &ToolDefinition| {
            let target = self.table.get(&definition.name);
            target.and_then(|target| target.own_name.clone()).unwrap_or_else(|| definition.name.clone())
        };
        let reads = |definition: &&Arc<ToolDefinition>| {
            works_on_them(definition)
                && definition.pages_itself
                && !OTHER_DESCRIPTOR_TOOLS.contains(&&*own_name(definition))
        };
        self.reader = self.offered.iter().find(reads).map(|definition| definition.name.clone());
        let implicit = self.spec.iter().flat_map(|spec| &spec.toolsets).any(|choice| choice.implicit);
        let listed = self.table.values().any(|target| works_on_them(&target.definition));
        self.cuts_results = self.reader.is_none() && (implicit || listed);
    }

    /// Returns what a call that may do so much is offered: what it may not use is not shown.
    pub(crate) fn offered_within(&self, access: Access) -> Arc<[Arc<ToolDefinition>]> {
        let is_usable = |definition: &&Arc<ToolDefinition>| {
            definition.access <= access || definition.name == FINAL_ANSWER
        };
        if self.offered.iter().all(|definition| is_usable(&definition)) {
            return self.offered.clone();
        }
        self.offered.iter().filter(is_usable).cloned().collect()
    }

    pub(crate) fn target(&self, name: &str) -> Option<&CallTarget> {
        self.table.get(name)
    }

    /// Returns a tool of another plan as it is held here, under whatever name.
    pub(crate) fn same_tool(&self, called: &Name, other: &CallTarget) -> Option<(&Name, &CallTarget)> {
        let is_tool = |target: &CallTarget| matches!(target.kind, TargetKind::Tool(_));
        let is_same = |(name, target): &(&Name, &CallTarget)| target.identity(name) == other.identity(called);
        self.entries().filter(|(_, target)| is_tool(target)).find(is_same)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.order.iter().map(Name::as_str)
    }

    /// The names of tools, in order.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| !self.is_agent(name))
    }

    /// Returns whether there is a tool that a pattern means.
    pub(crate) fn has_tool(&self, pattern: &Pattern) -> bool {
        let is_tool = |target: &CallTarget| matches!(target.kind, TargetKind::Tool(_));
        let mut tools = self.entries().filter(|(_, target)| is_tool(target));
        tools.any(|(name, target)| target.is_meant_by(pattern, name))
    }

    /// What can be named, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Name, &CallTarget)> {
        self.order.iter().filter_map(|name| self.table.get(name).map(|target| (name, target)))
    }

    pub(crate) fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.order
            .iter()
            .filter_map(|name| self.table.get(name))
            .map(|target| target.definition.clone())
            .collect()
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = &CallTarget> {
        self.table.values()
    }

    /// Returns whether the agent and the code of its tools may call an agent of this name.
    pub(crate) fn may_call_agent(&self, name: &str) -> bool {
        let narrowed = self.spec.as_ref().is_some_and(|spec| !spec.agents.is_empty());
        !narrowed || self.narrowing.iter().any(|glob| glob.is_match(name))
    }

    /// Returns whether a model may name it: a manual-only tool and an agent out of reach are not for models.
    fn is_for_models(&self, name: &str) -> bool {
        let is_manual = self.table.get(name).is_some_and(|target| target.definition.manual_only);
        !is_manual && (self.may_call_agent(name) || !self.is_agent(name))
    }

    /// Returns whether a name means a tool or an entry here.
    pub(crate) fn has_tool_named(&self, name: &str) -> bool {
        self.ambiguous.contains_key(name)
            || self.table.get(name).is_some_and(|target| !matches!(target.kind, TargetKind::Agent))
    }

    fn is_agent(&self, name: &str) -> bool {
        self.table.get(name).is_some_and(|target| matches!(target.kind, TargetKind::Agent))
    }

    /// Returns the names that the asker may call, and others that it may call besides.
    pub(crate) fn callable_names<'a>(&'a self, origin: CallOrigin, others: &[&'a str]) -> Vec<&'a str> {
        let callable = |name: &&str| match origin {
            CallOrigin::Model => self.is_for_models(name),
            CallOrigin::Code | CallOrigin::Embedder => !self.is_agent(name) || self.may_call_agent(name),
        };
        self.names().filter(callable).chain(others.iter().copied()).collect()
    }

    /// Explains that a name means nothing here, with the nearest one that the asker may name.
    pub(crate) fn unknown(&self, name: &str, origin: CallOrigin, others: &[&str]) -> Failure {
        if let Some(choices) = self.ambiguous.get(name) {
            let message = format!("`{name}` is ambiguous");
            return Failure::new(FailureKind::Unknown, message)
                .with_hint(format!("name one of {}", choices.join(", ")));
        }
        let known = self.callable_names(origin, others);
        let failure =
            Failure::new(FailureKind::Unknown, format!("there is no tool or agent `{name}` to call here"));
        match nearest(name, known.iter().copied()) {
            Some(near) => {
                failure.with_hint(format!("did you mean `{near}`? available: {}", known.join(", ")))
            }
            None if known.is_empty() => failure
                .with_hint_for(HintAudience::Caller, "nothing can be called here; answer without calling"),
            None => failure.with_hint(format!("available: {}", known.join(", "))),
        }
    }
}
