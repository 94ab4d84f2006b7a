//! The agent of a random conversation, its tools and its approver.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do::approval::{Answer, Approval, ApprovalRequest, Approver, ApproverError};
use llm_do::model::{Environment, RetryPolicy, ServerTool, StandardModels, providers};
use llm_do::tools::{Tool, ToolReply};
use llm_do::value::{Attachment, Schema};
use llm_do::{AgentSpec, Limits, Output, Project, Runtime, ToolError};
use llm_do_core::Tuning;
use llm_do_testing::{Chance, FunctionTool, StrictProvider};
use llm_do_tools::{Process, ProcessSettings};
use serde_json::{Value, json};

use crate::strict_providers::plan::{Feature, Plan};

/// The tools that the agent may have, besides those of the toolset `process`.
pub(crate) const TOOLS: &[&str] = &["look", "write", "fail", "blank", "picture", "unusual"];

/// An image of one pixel.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\
    \xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
const PDF: &[u8] = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n";

/// Builds the runtime of a conversation.
pub(crate) fn runtime(plan: &Plan, network: &StrictProvider) -> Runtime {
    let keys = providers().iter().flat_map(|provider| provider.key_env);
    let environment: Environment = keys.map(|name| ((*name).to_owned(), "key".to_owned())).collect();
    let models = StandardModels::new(".").environment(environment).transport(Arc::new(network.clone()));
    let agent = agent(plan);
    let mut project =
        Project::builder().toolset(Process::new("process", ProcessSettings::default()).unwrap());
    for name in TOOLS {
        project = project.tool(tool(name, plan));
    }
    let project = project.agent(agent).build().unwrap_or_else(|errors| panic!("{errors}"));
    let retry = RetryPolicy { attempts: 3, first_wait: Duration::from_millis(1), ..RetryPolicy::default() };
    Runtime::builder(project)
        .models(models)
        .retry(retry)
        .approver(RandomApprover::new(plan))
        .build()
        .unwrap_or_else(|errors| panic!("{errors}"))
}

fn agent(plan: &Plan) -> AgentSpec {
    let limits = Limits { turns: Some(8), depth: Some(3), ..Limits::default() };
    let mut agent = AgentSpec::new("main", "You work.")
        .model(plan.model("model"))
        .settings(plan.settings())
        .limits(limits);
    let conditions = [
        ("look", Feature::Tools),
        ("write", Feature::DeniedCalls),
        ("fail", Feature::FailingTools),
        ("blank", Feature::BlankTexts),
        ("picture", Feature::ResultAttachments),
        ("unusual", Feature::UnusualSchemas),
    ];
    if plan.has_tools() {
        let offered = |feature: Feature| feature == Feature::Tools || plan.feature(feature, 50).is_some();
        for (name, _) in conditions.into_iter().filter(|(_, feature)| offered(*feature)) {
            agent = agent.tool(name);
        }
    }
    if [Feature::Tune, Feature::Goto, Feature::Fork]
        .iter()
        .any(|feature| plan.feature(*feature, 20).is_some())
    {
        let tuning = Tuning {
            temperature: Some((0.0, 2.0)),
            max_tokens: Some((1, 500_000)),
            models: vec!["*".into()],
        };
        agent = agent.toolset("process").tuning(tuning);
    }
    if let Some(mut chance) = plan.feature(Feature::ServerTools, 25) {
        agent = agent.server_tool(server_tool(&mut chance)).rule("*", Approval::PreApproved);
    }
    if let Some(mut chance) = plan.feature(Feature::OutputSchema, 30) {
        agent = agent.output(chance.one_of(output_schemas()).clone());
    }
    if let Some(mut chance) = plan.feature(Feature::Fallbacks, 40) {
        for n in 0..chance.between(1, 2) {
            agent = agent.fallback_model(plan.model(&format!("fallback {n}")));
        }
    }
    agent
}

fn server_tool(chance: &mut Chance) -> ServerTool {
    let domains = |is_given: bool| if is_given { vec!["a.example".to_owned()] } else { Vec::new() };
    let (allowed_domains, blocked_domains) = (domains(chance.percent(30)), Vec::new());
    match chance.below(3) {
        0 => ServerTool::WebSearch { max_uses: Some(2), allowed_domains, blocked_domains },
        1 => ServerTool::WebSearch { max_uses: None, allowed_domains, blocked_domains },
        _ => ServerTool::CodeExecution {},
    }
}

fn tool(name: &'static str, plan: &Plan) -> Arc<dyn Tool> {
    let mut chance = plan.chance("tool");
    let tool = FunctionTool::new(name, move |_, _| async move { reply(name) });
    let schema = match name {
        "unusual" => chance.one_of(unusual_schemas()).clone(),
        _ => plain_schema().clone(),
    };
    let approval = if name == "write" { Approval::Ask } else { Approval::PreApproved };
    tool.define(|definition| (definition.input, definition.approval) = (schema, approval)).shared()
}

fn reply(name: &str) -> ToolReply {
    match name {
        "fail" => Err(ToolError::new("that did not work")),
        "blank" => Ok(Output::text("\n")),
        "picture" => Ok(Output::text("see").with_attachment(image()).with_attachment(document())),
        _ => Ok(Output::text("42")),
    }
}

pub(crate) fn image() -> Attachment {
    Attachment::bytes("a.png", "image/png", PIXEL)
}

pub(crate) fn document() -> Attachment {
    Attachment::bytes("a.pdf", "application/pdf", PDF)
}

fn schema(value: Value) -> Schema {
    Schema::new(value).unwrap()
}

fn plain_schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let properties = json!({"n": {"type": "integer", "description": "A number."}});
        schema(json!({"type": "object", "properties": properties, "required": ["n"], "additionalProperties": false}))
    })
}

/// Schemas of tools with what one provider or another does not take.
fn unusual_schemas() -> &'static [Schema] {
    static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let node = json!({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}});
        let many: serde_json::Map<String, Value> = (0..30).map(|n| (format!("p{n}"), json!({"type": ["string", "null"]}))).collect();
        let schemas = [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}}}),
            json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^a", "minLength": 1, "format": "regex"}}}),
            json!({"type": "object", "properties": {"c": {"const": 1}, "e": {"enum": [1, "a", null]}, "d": {"default": 3}}}),
            json!({"type": "object", "properties": {"u": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}),
            json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 3, "uniqueItems": true}}}),
            json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}),
            json!({"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {"type": "string"}}}}),
            json!({"type": "object", "properties": {"any": true, "not": {"not": {"type": "string"}}}}),
            json!({"type": "object", "properties": many}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object", "properties": {"naïve key": {"type": "string"}, "x/y": {"type": "string"}}}),
        ];
        schemas.into_iter().map(schema).collect()
    })
}

/// Schemas of answers. All of them take `{"n": 1}`.
fn output_schemas() -> &'static [Schema] {
    static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let n = json!({"type": "integer"});
        let small = json!({"type": "object", "properties": {"n": n}, "required": ["n"], "additionalProperties": false});
        let ranged = json!({"type": "integer", "minimum": 0, "maximum": 10});
        let optional = json!({"n": n, "s": {"type": "string", "minLength": 2}, "a": {"type": "array", "items": {"type": "string"}}});
        let mut referring = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]});
        referring["$defs"] = json!({"N": n});
        let schemas = [
            small,
            json!({"type": "object", "properties": {"n": ranged}, "required": ["n"]}),
            json!({"type": "object", "properties": optional, "required": ["n"]}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"anyOf": [{"type": "object", "properties": {"n": n}}, {"type": "string"}]}),
            referring,
        ];
        schemas.into_iter().map(schema).collect()
    })
}

/// Allows, edits and denies at random.
struct RandomApprover(Mutex<Chance>);

impl RandomApprover {
    fn new(plan: &Plan) -> Self {
        Self(Mutex::new(plan.chance("approver")))
    }
}

impl Approver for RandomApprover {
    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let answer = match self.0.lock().unwrap().below(4) {
            0 => Answer::Once,
            1 => Answer::Edit(json!({"n": 2})),
            2 => Answer::Deny("not now".to_owned()),
            _ => Answer::Deny(String::new()),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}
