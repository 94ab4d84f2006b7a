//! Agents: prompts that can be called.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{
    Access, AgentArgs, Approval, AttachmentPolicy, DescriptorSettings, Digest, Limits, ModelChoice,
    ModelSettings, Name, Payload, Preamble, Program, Prompt, Schema, ServerTool, Template, ToolOverride,
    Toolset, Tuning,
};

/// Everything that is known about an agent before it is called. Frozen: no call changes it.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// The name by which it is called.
    pub name: Name,
    /// What it does, for whoever may call it.
    pub description: String,
    /// Its instructions.
    pub instructions: Arc<str>,
    /// How an input becomes the instructions, where they are a template.
    pub template: Option<Template>,
    /// Its model; otherwise that of the run or the project.
    pub model: Option<ModelChoice>,
    /// Globs that the model of the run or project must match, where the agent names none; empty: any.
    pub compatible_models: Vec<String>,
    /// Models to use when the first one is down.
    pub fallback_models: Vec<ModelChoice>,
    /// Settings of its requests.
    pub settings: ModelSettings,
    /// Single tools that it lists.
    pub tools: Vec<Name>,
    /// Toolsets and other agents (or itself) that it lists, with settings of its own.
    pub toolsets: Vec<ToolsetChoice>,
    /// Tools that the provider runs.
    pub server_tools: Vec<ServerTool>,
    /// The schema of its input; by default a text with attachments.
    pub input: Option<Schema>,
    /// How an input becomes the prompt; by default its text, or its JSON.
    pub prompt: Option<Prompt>,
    /// The schema of its answer; without one it answers with text.
    pub output: Option<Schema>,
    /// Its approval rules, by name or glob.
    pub approval: Vec<ApprovalRule>,
    /// What it and everything below it may do at most.
    pub access: Access,
    /// Its budgets.
    pub limits: Limits,
    /// The agents that it and the code of its tools may call, by name or glob; empty: all.
    pub agents: Vec<String>,
    /// Whether an agent or code created it, and not a person.
    pub generated: bool,
    /// Whether it may be replaced only by force, where it is generated.
    pub locked: bool,
    /// Tools that only a person or the code of other tools may call, by name or glob: its model is not offered them.
    pub manual_only: Vec<String>,
    /// Which files it takes.
    pub attachment_policy: AttachmentPolicy,
    /// Agents that it can start as programs.
    pub programs: Vec<Program>,
    /// What becomes of texts that are too long for its conversation.
    pub descriptors: DescriptorSettings,
    /// Text before its instructions.
    pub preamble: Option<Preamble>,
    /// How single tools are offered to it.
    pub overrides: Vec<ToolOverride>,
    /// Which of its own settings its calls may change.
    pub tuning: Tuning,
}

/// A toolset, or another agent, as one agent lists it.
#[derive(Clone)]
pub struct ToolsetChoice {
    /// The name.
    pub name: Name,
    /// Settings for this agent alone.
    pub settings: Value,
    /// A factory for this agent alone, made with its settings; otherwise the project's of that name.
    pub own: Option<Arc<dyn Toolset>>,
    /// Whether the agent did not list it: it comes with every agent that has tools, and gives way to others.
    pub implicit: bool,
}

impl fmt::Debug for ToolsetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.settings)
    }
}

/// What an agent says about the approval of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// A tool's name, `toolset.tool`, or a glob over either.
    pub pattern: String,
    /// The approval.
    pub approval: Approval,
}

impl AgentSpec {
    /// An agent with instructions and the defaults for everything else.
    pub fn new(name: impl Into<Name>, instructions: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            instructions: instructions.into(),
            template: None,
            model: None,
            compatible_models: Vec::new(),
            fallback_models: Vec::new(),
            settings: ModelSettings::default(),
            tools: Vec::new(),
            toolsets: Vec::new(),
            server_tools: Vec::new(),
            input: None,
            prompt: None,
            output: None,
            approval: Vec::new(),
            access: Access::Admin,
            limits: Limits::default(),
            agents: Vec::new(),
            generated: false,
            locked: false,
            manual_only: Vec::new(),
            attachment_policy: AttachmentPolicy::default(),
            programs: Vec::new(),
            descriptors: DescriptorSettings::default(),
            preamble: None,
            overrides: Vec::new(),
            tuning: Tuning::default(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Adds a glob that the model of the run or project must match.
    #[must_use]
    pub fn compatible_model(mut self, pattern: impl Into<String>) -> Self {
        self.compatible_models.push(pattern.into());
        self
    }

    /// Adds a model to turn to when the others are down.
    #[must_use]
    pub fn fallback_model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.fallback_models.push(model.into());
        self
    }

    /// Lists a single tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<Name>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// Lists a toolset or another agent.
    #[must_use]
    pub fn toolset(self, name: impl Into<Name>) -> Self {
        self.toolset_with(name, Value::Null)
    }

    /// Lists a toolset with settings for this agent alone.
    #[must_use]
    pub fn toolset_with(mut self, name: impl Into<Name>, settings: Value) -> Self {
        self.toolsets.push(ToolsetChoice { name: name.into(), settings, own: None, implicit: false });
        self
    }

    /// Adds an approval rule for a tool's name or a glob.
    #[must_use]
    pub fn rule(mut self, pattern: impl Into<String>, approval: Approval) -> Self {
        self.approval.push(ApprovalRule { pattern: pattern.into(), approval });
        self
    }

    /// Adds a tool that the provider runs.
    #[must_use]
    pub fn server_tool(mut self, tool: ServerTool) -> Self {
        self.server_tools.push(tool);
        self
    }

    /// Sets the schema of the input.
    #[must_use]
    pub fn input(mut self, schema: Schema) -> Self {
        self.input = Some(schema);
        self
    }

    /// Takes a typed input: its schema, and what the model reads.
    #[must_use]
    pub fn input_of<T: AgentArgs>(self) -> Self {
        self.input(Schema::for_input::<T>()).prompt(Prompt::from_args::<T>())
    }

    /// Sets how an input becomes the prompt. A text is a template over the fields of the input, such as
    /// `Pitch of {{ company }}`.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<Prompt>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Sets the schema of the answer.
    #[must_use]
    pub fn output(mut self, schema: Schema) -> Self {
        self.output = Some(schema);
        self
    }

    /// Answers with a value of a type.
    #[must_use]
    pub fn output_of<T: JsonSchema>(self) -> Self {
        self.output(Schema::from_type::<T>())
    }

    /// Sets the ceiling of access.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the budgets.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the settings of its requests.
    #[must_use]
    pub fn settings(mut self, settings: ModelSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Narrows the agents that may be called from here, by name or glob.
    #[must_use]
    pub fn may_call(mut self, pattern: impl Into<String>) -> Self {
        self.agents.push(pattern.into());
        self
    }

    /// Keeps tools from its model, by name, `toolset.tool` or a glob over either.
    #[must_use]
    pub fn manual_only(mut self, pattern: impl Into<String>) -> Self {
        self.manual_only.push(pattern.into());
        self
    }

    /// Adds an agent that it can start as a program, by a name of its own.
    #[must_use]
    pub fn program(
        mut self,
        name: impl Into<Name>,
        agent: impl Into<Name>,
        description: impl Into<String>,
    ) -> Self {
        let (name, agent, description) = (name.into(), agent.into(), description.into());
        self.programs.push(Program { name, agent, description });
        self
    }

    /// Sets which of its own settings its calls may change.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Sets what becomes of texts that are too long for its conversation.
    #[must_use]
    pub fn descriptors(mut self, settings: DescriptorSettings) -> Self {
        self.descriptors = settings;
        self
    }

    /// Sets which files it takes.
    #[must_use]
    pub fn attachment_policy(mut self, policy: AttachmentPolicy) -> Self {
        self.attachment_policy = policy;
        self
    }

    /// The digest that a run is bound to: everything that changes what the agent does.
    pub fn digest(&self) -> Digest {
        let toolsets = self.toolsets.iter().map(|choice| json!([choice.name, choice.settings]));
        let rules = self.approval.iter().map(|rule| json!([rule.pattern, rule.approval]));
        let everything = json!([
            self.name,
            self.description,
            self.instructions,
            self.model.as_ref().map(ModelChoice::name),
            self.compatible_models,
            self.fallback_models.iter().map(ModelChoice::name).collect::<Vec<_>>(),
            self.settings,
            self.tools,
            toolsets.collect::<Vec<_>>(),
            self.server_tools,
            self.template.as_ref().map(Template::digest),
            self.input,
            self.output,
            self.prompt.as_ref().map(Prompt::digest),
            rules.collect::<Vec<_>>(),
            self.access,
            self.limits,
            self.agents,
            self.manual_only,
            self.attachment_policy,
            self.programs,
            self.descriptors,
            self.preamble.as_ref().map(Preamble::digest),
            self.overrides,
            self.tuning,
        ]);
        Payload::new(everything).digest()
    }
}
