//! Turns what the Python files define into callables.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    AgentSpec, Failure, InputPart, Name, NeedSpec, Payload, Prompt, Schema, Tool, ToolDefinition, Toolset,
};
use llm_do_project::{
    ClassPurpose, Code, CodeClass, CodeLocation, CodeModel, CodeProblem, CodeProvider, Defined, WantedCode,
};
use llm_do_runtime::EntrySpec;
use llm_do_tools::ToolsetEnv;
use serde_json::Value;

use crate::blocking::wait_for;
use crate::call::{ASSESS_LIMIT, Request};
use crate::host::Host;
use crate::native_toolsets::{self, Remark};
use crate::settings::PythonSettings;
use crate::tool::PythonTool;
use crate::toolset::PythonToolset;
use crate::wire::{
    Loaded, ToHost, ToolsetKind, WireAgent, WireDefinedClass, WireEntry, WireModel, WirePart, WireProblem,
    WireTool, WireToolset,
};

/// How long a model's factory may take.
const TIME_FOR_MODEL: Duration = Duration::from_secs(10);

/// The keys of the runtime context that the host gives to every call; the project provides the others.
const BUILT_IN_KEYS: &[&str] = &[
    "budget",
    "fd_manager",
    "file_descriptor_enabled",
    "linked_program_descriptions",
    "linked_programs",
    "process",
    "project_root",
    "stderr",
    "tool_id",
];

/// Makes callables of everything that was defined; or says everything that is wrong.
pub(crate) fn define(
    host: &Arc<Host>,
    loaded: Loaded,
    wanted: &WantedCode<'_>,
    env: &ToolsetEnv,
    settings: &PythonSettings,
) -> Result<Code, Vec<CodeProblem>> {
    let mut definer =
        Definer { host, wanted, env, settings, loaded: &loaded, problems: Vec::new(), code: Code::default() };
    definer.define();
    match definer.problems.is_empty() {
        true => Ok(definer.code),
        false => Err(definer.problems),
    }
}

struct Definer<'a> {
    host: &'a Arc<Host>,
    wanted: &'a WantedCode<'a>,
    env: &'a ToolsetEnv,
    settings: &'a PythonSettings,
    loaded: &'a Loaded,
    problems: Vec<CodeProblem>,
    code: Code,
}

impl<'a> Definer<'a> {
    fn define(&mut self) {
        let loaded = self.loaded;
        for tool in &loaded.tools {
            let location = location(&tool.file, tool.line);
            if let Some(tool) = self.tool(tool, None) {
                self.code.tools.push(Defined { value: Arc::new(tool) as Arc<dyn Tool>, location });
            }
        }
        for toolset in &loaded.toolsets {
            if let Some(value) = self.toolset(toolset) {
                self.code.toolsets.push(Defined { value, location: location(&toolset.file, toolset.line) });
            }
        }
        for agent in &loaded.agents {
            if let Some(value) = self.agent(agent) {
                self.code.agents.push(Defined { value, location: location(&agent.file, agent.line) });
            }
        }
        for entry in self.entries() {
            if let Some(value) = self.entry(entry) {
                self.code.entries.push(Defined { value, location: location(&entry.file, entry.line) });
            }
        }
        self.classes();
        self.code.providers = loaded.providers.iter().map(|name| provider(self.host, name)).collect();
        self.code.notices.extend(loaded.notices.iter().map(problem));
    }

    fn tool(&mut self, tool: &WireTool, toolset: Option<&Name>) -> Option<PythonTool> {
        let location = location(&tool.file, tool.line);
        let input = self.schema(&tool.input, &location, &tool.name)?;
        let output = match &tool.output {
            Some(source) => Some(self.schema(source, &location, &tool.name)?),
            None => None,
        };
        self.check_name(&tool.name, &location)?;
        let mut definition = ToolDefinition::new(&*tool.name, &*tool.description, input);
        definition.toolset = toolset.cloned();
        definition.output = output;
        definition.access = tool.access.unwrap_or(definition.access);
        definition.approval = tool.approval.unwrap_or(definition.approval);
        definition.judges_calls = tool.judges;
        definition.may_call = true;
        definition.sequential = tool.sequential;
        definition.needs = tool.needs.iter().map(|key| need(key)).collect();
        let limit = tool.time_limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        definition.time_limit = Some(limit.unwrap_or(self.settings.time_limit));
        Some(self.callable(definition, &tool.id))
    }

    fn callable(&self, definition: ToolDefinition, target: &str) -> PythonTool {
        let name = definition.name.as_str().into();
        let definition = Arc::new(definition);
        PythonTool { host: self.host.clone(), definition, target: target.into(), name, instance: None }
    }

    fn toolset(&mut self, toolset: &WireToolset) -> Option<Arc<dyn Toolset>> {
        let location = location(&toolset.file, toolset.line);
        if toolset.kind != ToolsetKind::Python {
            return self.native_toolset(toolset, &location);
        }
        let name = Name::from(&*toolset.name);
        let tools: Option<Vec<PythonTool>> =
            toolset.tools.iter().map(|tool| self.tool(tool, Some(&name))).collect();
        let (host, id) = (self.host.clone(), toolset.id.as_str().into());
        Some(Arc::new(PythonToolset { host, name, id, tools: tools? }))
    }

    fn native_toolset(&mut self, toolset: &WireToolset, location: &CodeLocation) -> Option<Arc<dyn Toolset>> {
        let said = |remark: Remark| CodeProblem {
            location: Some(location.clone()),
            message: remark.message,
            hint: Some(remark.hint),
        };
        match native_toolsets::make(toolset, self.wanted, self.env) {
            Ok(made) => {
                self.code.notices.extend(made.notices.into_iter().map(said));
                Some(made.toolset)
            }
            Err(remark) => {
                self.problems.push(said(remark));
                None
            }
        }
    }

    fn agent(&mut self, agent: &WireAgent) -> Option<AgentSpec> {
        let location = location(&agent.file, agent.line);
        self.check_name(&agent.name, &location)?;
        let mut spec = AgentSpec::new(&*agent.name, &*agent.instructions);
        spec.description = agent.description.clone().unwrap_or_default();
        spec.model = agent.model.as_deref().map(Into::into);
        spec.tools = agent.tools.iter().map(|name| Name::from(&**name)).collect();
        spec = agent.toolsets.iter().fold(spec, |spec, name| spec.toolset(&**name));
        if let Some(source) = &agent.output {
            spec.output = Some(self.schema(source, &location, &agent.name)?);
        }
        if let Some(id) = &agent.class {
            let Some(class) = self.loaded.classes.iter().find(|class| class.id == *id) else {
                self.refuse(
                    &location,
                    format!("the class of the input of `{}` was not found", agent.name),
                    None,
                );
                return None;
            };
            spec.input = Some(self.schema(&class.schema, &location, &agent.name)?);
            spec.prompt = Some(prompt(self.host, class));
        }
        Some(spec)
    }

    /// The entries: only the wanted one, where the project wants one.
    fn entries(&self) -> Vec<&'a WireEntry> {
        let is_wanted = |entry: &&WireEntry| self.wanted.entry.is_none() || entry.manifest;
        self.loaded.entries.iter().filter(is_wanted).collect()
    }

    fn entry(&mut self, entry: &WireEntry) -> Option<EntrySpec> {
        let location = location(&entry.file, entry.line);
        self.check_name(&entry.name, &location)?;
        let input = self.schema(&entry.input, &location, &entry.name)?;
        let definition = ToolDefinition::new(&*entry.name, &*entry.description, input);
        Some(EntrySpec::from_tool(Arc::new(self.callable(definition, &entry.id))))
    }

    fn classes(&mut self) {
        let loaded = self.loaded;
        for (number, wanted) in self.wanted.classes.iter().enumerate() {
            let id = format!("c{}", number + 1);
            let Some(class) = loaded.classes.iter().find(|class| class.id == id) else {
                let message = format!("the class `{}` was not found", wanted.name);
                let location = Some(CodeLocation { file: wanted.file.clone(), line: None });
                self.problems.push(CodeProblem { location, message, hint: None });
                continue;
            };
            let Some(schema) = self.schema(&class.schema, &location(&class.file, None), &class.name) else {
                continue;
            };
            let makes_prompt = wanted.purpose == ClassPurpose::Input;
            let prompt = makes_prompt.then(|| prompt(self.host, class));
            self.code.classes.push(CodeClass { schema, prompt });
        }
    }

    fn schema(&mut self, source: &Value, location: &CodeLocation, name: &str) -> Option<Schema> {
        let made = Schema::new(source.clone());
        made.map_err(|error| self.refuse(location, format!("`{name}`: {error}"), None)).ok()
    }

    fn check_name(&mut self, name: &str, location: &CodeLocation) -> Option<()> {
        if Name::is_valid(name) {
            return Some(());
        }
        let hint = "a name has up to 64 letters, digits, `_` and `-`";
        self.refuse(location, format!("`{name}` is not a name that can be called"), Some(hint));
        None
    }

    fn refuse(&mut self, location: &CodeLocation, message: String, hint: Option<&str>) {
        let hint = hint.map(str::to_owned);
        self.problems.push(CodeProblem { location: Some(location.clone()), message, hint });
    }
}

fn location(file: &str, line: Option<u32>) -> CodeLocation {
    CodeLocation { file: PathBuf::from(file), line }
}

/// A problem as the process tells it.
pub(crate) fn problem(problem: &WireProblem) -> CodeProblem {
    CodeProblem {
        location: problem.file.as_ref().map(|file| location(file, problem.line)),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    }
}

/// How the class of an input makes the prompt.
fn prompt(host: &Arc<Host>, class: &WireDefinedClass) -> Prompt {
    let (host, id) = (host.clone(), Arc::<str>::from(&*class.id));
    let name: Arc<str> = format!("{}.prompt_messages", class.name).into();
    // The digest of the whole file identifies the function, which may use anything in it.
    let source = [std::fs::read(&class.file).unwrap_or_default(), class.name.clone().into_bytes()].concat();
    Prompt::made_by(source, move |input: &Payload| {
        let (host, id, name, input) = (host.clone(), id.clone(), name.clone(), input.clone());
        Box::pin(async move {
            let current = host.current().await?;
            let request =
                Request { name: &name, call: None, notices: None, counts: false, limit: Some(ASSESS_LIMIT) };
            let message = |number| ToHost::Prompt { id: number, class: &id, args: input.value() }.line();
            let reply = request.run(&host, &current, message).await?;
            let parts: Vec<WirePart> = reply.into_value()?;
            Ok(parts.into_iter().map(InputPart::from).collect())
        })
    })
}

/// A provider whose models a factory of the project knows.
fn provider(host: &Arc<Host>, provider: &str) -> CodeProvider {
    let (host, prefix) = (host.clone(), provider.to_owned());
    let reach = move |model: &str| {
        let name = format!("{prefix}:{model}");
        let slow = || {
            let message =
                format!("the factory of `{prefix}` took longer than {} seconds", TIME_FOR_MODEL.as_secs());
            Failure::new(llm_do_core::FailureKind::Model, message)
        };
        let asked = wait_for(ask_for_model(&host, &name), TIME_FOR_MODEL);
        asked.unwrap_or_else(|| Err(slow())).map(code_model)
    };
    CodeProvider { name: Name::from(provider), reach: Arc::new(reach) }
}

async fn ask_for_model(host: &Arc<Host>, name: &str) -> Result<WireModel, Failure> {
    let current = host.current().await?;
    let shown: Arc<str> = format!("the factory of {name}").into();
    let request = Request { name: &shown, call: None, notices: None, counts: false, limit: None };
    let reply = request.run(host, &current, |id| ToHost::Model { id, name }.line()).await?;
    reply.into_value()
}

fn code_model(model: WireModel) -> CodeModel {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    CodeModel {
        api: model.api,
        base_url: model.base_url,
        key: model.api_key,
        headers: model.headers.into_iter().map(|(name, value)| (name, text(value))).collect(),
        model: model.model,
    }
}

/// A key of the runtime context that a tool requires.
fn need(key: &str) -> NeedSpec {
    if BUILT_IN_KEYS.contains(&key) { NeedSpec::built_in(key) } else { NeedSpec::named(key) }
}
