//! How an agent comes into being: drafted from what is wanted and what its creator holds, written as a file,
//! and added to the running project.

use std::path::{Path, PathBuf};

use llm_do_core::{
    Access, AgentSpec, AttachmentPolicy, CallContext, CallableAgent, Digest, Failure, FailureKind, Name,
};
use llm_do_project::{AgentDraft, AttachmentSection, Diagnostics, LimitsSection, Workshop};
use llm_do_runtime::Runtime;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::inheritance::Inheritance;
use llm_do_tools::small_file::{self, SmallFileError};

/// Held from the last look at an agent file to its replacement, so that creations do not undo each other.
static WRITING: Mutex<()> = Mutex::new(());

/// An agent that shall be created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// The name by which it is called: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = Name::PATTERN))]
    pub name: String,
    /// What it is told to do, in full: it sees nothing of this conversation.
    pub instructions: String,
    /// What it does, for whoever may call it.
    #[serde(default)]
    pub description: String,
    /// Its model, as `provider:model`; by default that of the run or the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Single tools that it gets, of those that you have yourself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Toolsets and agents that it gets, of those that you have yourself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<String>,
    /// Names or globs of the agents that it may call; none: those that you may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The JSON Schema of its input, an object; by default a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// The JSON Schema of its answer; by default a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
}

impl NewAgent {
    /// An agent with instructions and nothing else.
    pub fn new(name: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self { name: name.into(), instructions: instructions.into(), ..Self::default() }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Lists a single tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// Lists a toolset or another agent.
    #[must_use]
    pub fn toolset(mut self, name: impl Into<String>) -> Self {
        self.toolsets.push(name.into());
        self
    }

    /// Narrows the agents that it may call, by name or glob.
    #[must_use]
    pub fn may_call(mut self, pattern: impl Into<String>) -> Self {
        self.agents.push(pattern.into());
        self
    }

    /// Sets the JSON Schema of its input, an object.
    #[must_use]
    pub fn input_schema(mut self, schema: Map<String, Value>) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of its answer, an object.
    #[must_use]
    pub fn output_schema(mut self, schema: Map<String, Value>) -> Self {
        self.output_schema = Some(schema);
        self
    }
}

/// What holds for created agents where nothing else is said. In files: the settings of `dynamic_agents`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentDefaults {
    /// The model.
    pub model: Option<String>,
    /// Toolsets and agents.
    pub toolsets: Vec<String>,
    /// The agents that may be called.
    pub agents: Vec<String>,
    /// What they may do at most.
    #[schemars(with = "Option<AccessWord>")]
    pub access: Option<Access>,
    /// Their budgets.
    pub limits: LimitsSection,
    /// Which files they take; by default what their creator takes.
    pub attachments: AttachmentSection,
}

/// The words of [`Access`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum AccessWord {
    Read,
    Write,
    Admin,
}

/// An agent that was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CreatedAgent {
    /// The name by which it can be called.
    pub agent: Name,
    /// Its file, relative to the project.
    pub file: PathBuf,
    /// Where the text of the agent is kept that it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<PathBuf>,
    /// The whole definition.
    #[serde(skip)]
    pub definition: String,
}

/// Creates an agent, or replaces a generated one by force. An existing name is an error otherwise, and so is the
/// name of an agent that a person wrote. Nobody is asked: that is for the program that embeds the runtime.
///
/// The runtime must be one for a project from files, as `llm_do::runtime_of` makes it.
pub fn create_agent(
    runtime: &Runtime,
    new: &NewAgent,
    defaults: &AgentDefaults,
    force: bool,
) -> Result<CreatedAgent, Failure> {
    let workshop = runtime.provided::<Workshop>().ok_or_else(no_workshop)?;
    let agents = runtime.agents();
    let creation = Creation::plan(&workshop, new, defaults, None, &agents)?;
    creation.check_force(&workshop, &agents, force)?;
    let refuse = |error: llm_do_runtime::LinkErrors| Failure::new(FailureKind::Arguments, error.to_string());
    creation.make(&workshop, |spec| runtime.add_agent(spec).map_err(refuse))
}

/// Creates an agent from the code of a tool, in the name of the agent that called the tool: it holds no more than
/// that one. The whole definition passes the gate as the inner effect `agent_create`.
pub async fn create_agent_within(
    call: &CallContext,
    new: &NewAgent,
    defaults: &AgentDefaults,
    force: bool,
) -> Result<CreatedAgent, Failure> {
    let workshop = call.context().get::<Workshop>().ok_or_else(no_workshop)?;
    let agents = call.agents();
    let creation = Creation::plan(&workshop, new, defaults, call.agent(), &agents)?;
    creation.check_force(&workshop, &agents, force)?;
    call.check_agent(&creation.spec)?;
    let payload = json!({"file": creation.file, "definition": creation.definition});
    let allowed = call.approve("agent_create", payload.clone(), creation.describe()).await?;
    if *allowed.value() != payload {
        let message = "a person changed the definition: create the agent as they want it";
        return Err(Failure::new(FailureKind::Denied, message).with_hint(allowed.text().to_owned()));
    }
    creation.make(&workshop, |spec| call.add_agent(spec))
}

pub(super) fn no_workshop() -> Failure {
    Failure::new(FailureKind::Tool, "agents can be created only in a project that was read from files")
        .with_hint("make the runtime with `llm_do::runtime_of`, or provide a `Workshop`")
}

/// A creation that was thought through and not made yet.
pub(super) struct Creation {
    pub(super) spec: AgentSpec,
    pub(super) file: PathBuf,
    pub(super) definition: String,
    pub(super) before: Option<String>,
}

impl Creation {
    /// Drafts the agent, and reads it as the project would.
    pub(super) fn plan(
        workshop: &Workshop,
        new: &NewAgent,
        defaults: &AgentDefaults,
        creator: Option<&AgentSpec>,
        agents: &[CallableAgent],
    ) -> Result<Self, Failure> {
        if !Name::is_valid(&new.name) {
            let message = format!("`{}` is not a name for an agent", new.name);
            return Err(wrong(message).with_hint("use 1 to 64 letters, digits, `_` and `-`"));
        }
        if new.instructions.trim().is_empty() {
            return Err(wrong("`instructions` is empty".to_owned()));
        }
        let names: Vec<Name> = agents.iter().map(|agent| agent.definition.name.clone()).collect();
        let read = |draft: &AgentDraft| {
            let text = draft.text().map_err(|error| wrong(error.to_string()))?;
            let spec = workshop.read(&draft.name, &text, &names).map_err(|problems| unreadable(&problems))?;
            Ok((text, spec))
        };
        let mut draft = draft(new, defaults, creator);
        let (_, spec) = read(&draft)?;
        let files = attachments(defaults, creator, &spec);
        draft.attachment_policy = (files != spec.attachment_policy).then_some(files);
        if let Some(creator) = creator {
            // Only a spec knows which tools its toolsets have, and so which rules of the creator concern it.
            let inherited = Inheritance::new(creator, &spec);
            draft.approval = inherited.approval(&names);
            draft.manual_only = inherited.manual_only();
            draft.tool_access = inherited.tool_access();
        }
        let (definition, spec) = read(&draft)?;
        let file = workshop.path_of(&new.name);
        let before = small_file::read(workshop.root(), &file).map_err(|error| error.into_failure())?;
        if before.as_ref().is_some_and(|text| !workshop.is_generated(text)) {
            let message = format!("`{}` was not created by an agent, and is never replaced", file.display());
            return Err(wrong(message).with_hint("choose another name"));
        }
        Ok(Self { spec, file, definition, before })
    }

    /// Says what the creation would do, for a person.
    pub(super) fn describe(&self) -> String {
        let verb = if self.before.is_some() { "replace" } else { "create" };
        format!("{verb} the agent `{}` in {}", self.spec.name, self.file.display())
    }

    pub(super) fn digests(&self) -> (Option<Digest>, Digest) {
        (self.before.as_ref().map(Digest::hash), Digest::hash(&self.definition))
    }

    /// Returns whether the agent that would be replaced is locked.
    pub(super) fn replaces_locked(&self, workshop: &Workshop) -> bool {
        self.before.as_ref().is_some_and(|text| workshop.is_locked(text))
    }

    fn check_force(&self, workshop: &Workshop, agents: &[CallableAgent], force: bool) -> Result<(), Failure> {
        let exists =
            self.before.is_some() || agents.iter().any(|agent| agent.definition.name == self.spec.name);
        match exists && !force {
            true if self.replaces_locked(workshop) => Err(locked(&self.spec.name)),
            true => {
                let message = format!("there is an agent `{}` already", self.spec.name);
                Err(wrong(message).with_hint("choose another name, or create it by force"))
            }
            false => Ok(()),
        }
    }

    /// Writes the file and adds the agent. Where it cannot be added, the file is as it was before.
    pub(super) fn make(
        self,
        workshop: &Workshop,
        add: impl FnOnce(AgentSpec) -> Result<(), Failure>,
    ) -> Result<CreatedAgent, Failure> {
        let _alone = WRITING.lock();
        let root = workshop.root();
        let failure = SmallFileError::into_failure;
        let now = small_file::read(root, &self.file).map_err(failure)?;
        if now != self.before {
            let message = format!("`{}` has changed meanwhile; nothing was written", self.file.display());
            return Err(Failure::new(FailureKind::Tool, message).with_hint("look at it and try again"));
        }
        let differs = self.before.as_ref().is_some_and(|before| *before != self.definition);
        let old = self.before.as_ref().filter(|_| differs);
        let replaced = old.map(|text| keep_old(root, &self.file, text)).transpose().map_err(failure)?;
        small_file::write(root, &self.file, &self.definition, self.before.as_deref()).map_err(failure)?;
        let agent = self.spec.name.clone();
        if let Err(failure) = add(self.spec) {
            let undone = match &self.before {
                Some(text) => small_file::write(root, &self.file, text, Some(&self.definition)),
                None => small_file::remove(root, &self.file, &self.definition),
            };
            return Err(match undone {
                Ok(()) => failure,
                Err(error) => failure.with_hint(format!("its file could not be taken away: {error}")),
            });
        }
        Ok(CreatedAgent { agent, file: self.file, replaced, definition: self.definition })
    }
}

pub(super) fn locked(name: &Name) -> Failure {
    Failure::new(FailureKind::Blocked, format!("the agent `{name}` is locked"))
        .with_hint("a person must take `locked: true` out of its file first")
}

fn wrong(message: String) -> Failure {
    Failure::new(FailureKind::Arguments, message)
}

fn unreadable(problems: &Diagnostics) -> Failure {
    wrong(format!("the agent would not be valid:\n{problems}"))
}

/// What is wanted, with the defaults, as far as the creator holds it.
fn draft(new: &NewAgent, defaults: &AgentDefaults, creator: Option<&AgentSpec>) -> AgentDraft {
    let mut draft = AgentDraft::new(new.name.clone(), new.instructions.clone());
    draft.generated = true;
    let settings = |name: &String| {
        let held = creator.and_then(|creator| creator.toolsets.iter().find(|held| *held.name == **name));
        held.map_or(Value::Null, |held| held.settings.clone())
    };
    let toolsets = if new.toolsets.is_empty() { &defaults.toolsets } else { &new.toolsets };
    let narrowed = creator.map(|creator| creator.agents.as_slice()).unwrap_or_default();
    let ceiling = creator.map_or(Access::Admin, |creator| creator.access);
    draft.description = new.description.clone();
    draft.model = new.model.clone().or_else(|| defaults.model.clone());
    draft.tools = new.tools.clone();
    draft.toolsets = toolsets.iter().map(|name| (name.clone(), settings(name))).collect();
    draft.agents = [new.agents.as_slice(), &defaults.agents, narrowed]
        .into_iter()
        .find(|agents| !agents.is_empty())
        .unwrap_or_default()
        .to_vec();
    draft.access = defaults.access.unwrap_or(Access::Admin).min(ceiling);
    draft.limits = defaults.limits.limits();
    draft.input_schema = new.input_schema.clone();
    draft.output_schema = new.output_schema.clone();
    draft
}

/// Which files the new agent takes: no more than its creator.
fn attachments(defaults: &AgentDefaults, creator: Option<&AgentSpec>, new: &AgentSpec) -> AttachmentPolicy {
    let usual =
        || creator.map_or_else(|| new.attachment_policy.clone(), |creator| creator.attachment_policy.clone());
    let wanted = match defaults.attachments == AttachmentSection::default() {
        true => usual(),
        false => defaults.attachments.policy(),
    };
    creator.map_or_else(|| wanted.clone(), |creator| wanted.within(&creator.attachment_policy))
}

/// Keeps the text of an agent that is replaced beside its file, under the first free number.
fn keep_old(root: &Path, file: &Path, text: &str) -> Result<PathBuf, SmallFileError> {
    for number in 1_u32.. {
        let mut old = file.as_os_str().to_owned();
        old.push(format!(".old-{number}"));
        let old = PathBuf::from(old);
        if small_file::read(root, &old)?.is_some() {
            continue;
        }
        match small_file::write(root, &old, text, None) {
            Ok(()) => return Ok(old),
            // Another process took the number meanwhile.
            Err(error) if error.is_changed() => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there are fewer files than numbers")
}
