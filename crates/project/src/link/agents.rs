//! Links one agent: its schemas, templates, settings, toolsets and preamble.

use llm_do_core::{Access, AgentSpec, ApprovalRule, DEFAULT_TEMPLATE_BYTES, DescriptorSettings, Schema};
use serde_json::{Map, Value};

use super::toolsets::{Listed, Toolsets};
use super::{embedding_program, offered, programs, python, template};
use crate::catalog::Catalog;
use crate::code::ClassPurpose;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::front_matter::{FileDescriptors, OutputSchema};
use crate::format::manifest::LimitsSection;
use crate::format::{attachment_policy, input_schema, model_settings, tuning};
use crate::globs::glob_problem;
use crate::preamble;
use crate::read::agent::Agent;
use crate::read::agent_file::AgentFile;

/// Reads one agent. Problems are said, and what is wrong is left out.
pub(crate) fn agent_spec(
    agent: &Agent,
    project: Listed<'_>,
    toolsets: &mut Toolsets<'_>,
    out: &mut Diagnostics,
) -> AgentSpec {
    let header = &agent.header;
    let mut spec = AgentSpec::new(header.name.as_str(), agent.file.instructions.clone());
    spec.description = header.description.clone().unwrap_or_default();
    spec.model = header.model.as_deref().map(Into::into);
    spec.compatible_models = compatible_models(agent, out);
    spec.fallback_models = header.fallback_models.iter().map(|model| model.as_str().into()).collect();
    spec.settings = header.model_settings.clone().unwrap_or_default();
    spec.access = header.access.map_or(Access::Admin, Access::from);
    spec.limits = header.limits.as_ref().map(LimitsSection::limits).unwrap_or_default();
    spec.agents = header.agents.clone();
    spec.generated = agent.is_generated();
    spec.locked = header.locked;
    spec.server_tools = header.server_side_tools.clone();
    spec.manual_only = header.manual_only.clone();
    let rules = header.approval.iter();
    let rules =
        rules.map(|(pattern, level)| ApprovalRule { pattern: pattern.clone(), approval: (*level).into() });
    spec.approval = rules.collect();
    let general = project.manifest.and_then(|file| file.manifest.runtime.attachment_policy.as_ref());
    spec.attachment_policy = attachment_policy::policy(header.attachment_policy.as_ref(), general);
    add_schemas(agent, project, toolsets.catalog(), &mut spec, out);
    add_templates(agent, project, &mut spec, out);
    model_settings::check(agent.document(), out);
    offered::check_server_tools(agent.document(), out);
    attachment_policy::check_agent(agent.document(), out);
    spec.programs = programs::programs(agent, project.linked, out);
    spec.descriptors = descriptors(header.file_descriptors.as_ref());
    toolsets.add_to(agent, &mut spec, out);
    spec.preamble = preamble::preamble(agent, project.root, project.files, toolsets.catalog().shared(), out);
    spec.tuning = tuning::tuning(agent.document(), out);
    notice_later_keys(agent, out);
    spec
}

fn compatible_models(agent: &Agent, out: &mut Diagnostics) -> Vec<String> {
    let Some(globs) = &agent.header.compatible_models else { return Vec::new() };
    let span = span_of(&agent.file.header, "compatible_models");
    let mut refuse = |message: String, hint: &str| {
        out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint(hint));
        !out.is_full()
    };
    if globs.is_empty() {
        refuse(
            "`compatible_models` is empty, so no model matches".to_owned(),
            "write `[\"*\"]` for any model",
        );
    }
    if agent.header.model.is_some() {
        refuse("`compatible_models` has no effect together with `model`".to_owned(), "keep one of them");
    }
    for glob in globs {
        let Some(problem) = glob_problem(glob) else { continue };
        let message = format!("`compatible_models`: `{glob}` is not a glob: {problem}");
        if !refuse(message, "write names with `*`, such as `anthropic:claude-*`") {
            break;
        }
    }
    globs.clone()
}

fn add_schemas(
    agent: &Agent,
    project: Listed<'_>,
    catalog: &dyn Catalog,
    spec: &mut AgentSpec,
    out: &mut Diagnostics,
) {
    let header = &agent.header;
    if header.input_model_ref.is_some() && header.input_schema.is_some() {
        let span = span_of(&agent.file.header, "input_schema");
        let message = "`input_schema` and `input_model_ref` cannot be used together";
        out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("keep one of them"));
    }
    let AgentFile { source, header: node, .. } = &agent.file;
    let input = header.input_schema.as_ref().map(|schema| input_schema::object(source, node, schema, out));
    spec.input = schema(agent, "input_schema", input.as_ref(), out);
    if let Some(OutputSchema::Inline(inline)) = &header.output_schema {
        spec.output = schema(agent, "output_schema", Some(inline), out);
    }
    if let Some(given) = embedding_program::input_of(agent, catalog, out) {
        (spec.input, spec.prompt) = (Some(given.schema.clone()), Some(given.prompt.clone()));
    }
    for (key, reference, purpose) in header.classes() {
        let wanted = python::class_of(agent, key, reference, purpose, project.root, out);
        let Some(class) = wanted.and_then(|wanted| project.code.class(&wanted)) else { continue };
        match purpose {
            ClassPurpose::Input => {
                (spec.input, spec.prompt) = (Some(class.schema.clone()), class.prompt.clone())
            }
            ClassPurpose::Output => spec.output = Some(class.schema.clone()),
        }
    }
}

fn schema(
    agent: &Agent,
    key: &str,
    schema: Option<&Map<String, Value>>,
    out: &mut Diagnostics,
) -> Option<Schema> {
    let result = Schema::new(Value::Object(schema?.clone()));
    let span = span_of(&agent.file.header, key);
    result
        .map_err(|error| {
            out.push(Diagnostic::error_at(&agent.file.source, &span, format!("`{key}` is {error}")))
        })
        .ok()
}

fn add_templates(agent: &Agent, project: Listed<'_>, spec: &mut AgentSpec, out: &mut Diagnostics) {
    let (header, code) = (&agent.header, project.code);
    let limit = project.manifest.and_then(|file| file.manifest.runtime.max_template_bytes);
    let limit = limit.unwrap_or(DEFAULT_TEMPLATE_BYTES);
    // What the fields are is unknown until the code was run, or if the reference is wrong, which is reported.
    if header.input_model_ref.is_some() && (code.has_not_run() || spec.input.is_none()) {
        return;
    }
    let of_class = spec.input.as_ref().and_then(|input| input.source().as_object().cloned());
    let schema = header.input_schema.as_ref().or(of_class.as_ref());
    let source = &agent.file.source;
    if let Some(prompt) = &header.prompt {
        match template::compile("prompt", prompt, schema) {
            Ok(prompt) => spec.prompt = Some(prompt.max_bytes(limit).into()),
            Err(problem) => {
                out.push(problem.at(source, &span_of(&agent.file.header, "prompt")));
            }
        }
    }
    if header.template {
        match template::compile("the instructions", &agent.file.instructions, schema) {
            Ok(template) => spec.template = Some(template.max_bytes(limit)),
            Err(problem) => {
                out.push(problem.at(source, &span_of(&agent.file.header, "template")));
            }
        }
    }
}

/// Keys that are part of the format and wait for what they are about.
fn notice_later_keys(agent: &Agent, out: &mut Diagnostics) {
    if !agent.header.tests.is_empty() {
        let span = span_of(&agent.file.header, "tests");
        out.push(Diagnostic::without_effect(&agent.file.source, &span, "tests"));
    }
}

/// What becomes of texts that are too long: what is written, over the usual.
fn descriptors(written: Option<&FileDescriptors>) -> DescriptorSettings {
    let usual = DescriptorSettings::default();
    match written {
        None => usual,
        Some(FileDescriptors::Enabled(enabled)) => DescriptorSettings { enabled: *enabled, ..usual },
        Some(FileDescriptors::Section(section)) => DescriptorSettings {
            enabled: section.enabled.unwrap_or(usual.enabled),
            limit: section.limit.unwrap_or(usual.limit),
            page_size: section.page_size.unwrap_or(usual.page_size),
            input_limit: section.input_limit.or(usual.input_limit),
            page_user_input: section.page_user_input.unwrap_or(usual.page_user_input),
            references: section.references.unwrap_or(usual.references),
            most: usual.most,
        },
    }
}
