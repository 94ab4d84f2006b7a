//! What the model and the gate are told about a tool.

use std::sync::Arc;

use llm_do_core::{
    Approval, Approved, Assessment, CallContext, Need, Output, Payload, StatelessToolset, Tool, ToolError,
    Toolset,
};
use llm_do_macros::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) struct ProjectRoot;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    Name,
    Size,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Range {
    /// The first line.
    from: u32,
    to: Option<u32>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tree {
    name: String,
    children: Vec<Tree>,
}

/// Finds files whose name matches a glob.
///
/// Hidden files are left out.
#[tool(
    access = "read",
    approval = "pre_approved",
    effect = "pure",
    time_limit = "30s",
    sequential,
    manual_only,
    assess = assess_find_files
)]
#[expect(clippy::too_many_arguments, reason = "shows every kind of parameter")]
async fn find_files(
    root: Need<ProjectRoot>,
    /// The glob, such as `*.rs`.
    pattern: String,
    /// How many at most.
    #[default(200)]
    limit: u32,
    order: Option<Order>,
    range: Range,
    #[default(["target", ".git"])] ignored: Vec<String>,
    r#type: Value,
    call: &CallContext,
) -> Result<Vec<String>, ToolError> {
    let _ = (root, pattern, limit, order, range, ignored, r#type, call);
    Ok(Vec::new())
}

fn assess_find_files(input: &Payload, call: &CallContext) -> Assessment {
    let description = format!("looks for {} in {}", input.value()["pattern"], call.path());
    Assessment::new(Approval::Ask, description)
}

#[test]
fn a_definition_has_everything_that_the_source_declares() {
    let definition = serde_json::to_value(&**find_files.definition()).unwrap();
    assert_eq!(
        definition,
        json!({
            "name": "find_files",
            "description": "Finds files whose name matches a glob.\n\nHidden files are left out.",
            "input": {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The glob, such as `*.rs`."},
                    "limit": {"type": "integer", "minimum": 0, "description": "How many at most.", "default": 200},
                    "order": {"type": ["string", "null"], "enum": ["name", "size", null]},
                    "range": {
                        "type": "object",
                        "properties": {
                            "from": {"description": "The first line.", "type": "integer", "minimum": 0},
                            "to": {"type": ["integer", "null"], "minimum": 0}
                        },
                        "required": ["from"]
                    },
                    "ignored": {"type": "array", "items": {"type": "string"}, "default": ["target", ".git"]},
                    "type": {}
                },
                "required": ["pattern", "range", "type"],
                "additionalProperties": false
            },
            "output": {"type": "array", "items": {"type": "string"}},
            "access": "read",
            "approval": "pre_approved",
            "judges_calls": true,
            "effect": "pure",
            "needs": ["it::definitions::ProjectRoot"],
            "time_limit": {"secs": 30, "nanos": 0},
            "sequential": true,
            "manual_only": true
        })
    );
}

/// Says hello.
#[tool]
async fn greet() -> String {
    "hello".into()
}

#[test]
fn a_tool_that_says_nothing_has_the_careful_defaults() {
    let definition = serde_json::to_value(&**greet.definition()).unwrap();
    assert_eq!(
        definition,
        json!({
            "name": "greet",
            "description": "Says hello.",
            "input": {"type": "object", "properties": {}, "required": [], "additionalProperties": false},
            "access": "write",
            "approval": "ask",
            "effect": "once",
            "needs": [],
            "sequential": false
        })
    );
}

#[test]
fn a_definition_is_built_once() {
    assert!(Arc::ptr_eq(greet.definition(), greet.definition()));
}

#[tool(name = "say-hello", description = "Says hello.")]
fn renamed() {}

#[tool(description = include_str!("main.rs"))]
fn described_by_a_file() {}

#[test]
fn name_and_description_can_be_given() {
    assert_eq!(renamed.definition().name, "say-hello");
    assert_eq!(renamed.definition().description, "Says hello.");
    assert!(described_by_a_file.definition().description.starts_with("//! Tools that"));
}

/// Walks a tree.
#[tool]
fn walk(root: Tree, other: Tree) -> usize {
    root.children.len() + other.children.len() + root.name.len()
}

#[test]
fn a_recursive_type_is_checked_at_every_level() {
    let input = &walk.definition().input;
    let leaf = json!({"name": "leaf", "children": []});
    let fits = json!({"root": {"name": "root", "children": [leaf]}, "other": leaf});
    let misfit = json!({"root": {"name": "root", "children": [{"name": 1, "children": []}]}, "other": leaf});
    assert!(input.fits(&fits), "{:?}", input.problems(&fits));
    assert!(!input.fits(&misfit));
}

/// Writes a file.
#[tool]
async fn write_file(approved: Approved, path: String) -> Output {
    let _ = (approved, path);
    Output::text("")
}

#[test]
fn text_outputs_and_nothing_have_no_output_schema() {
    assert!(greet.definition().output.is_none());
    assert!(renamed.definition().output.is_none());
    assert!(write_file.definition().output.is_none());
}

#[derive(Serialize)]
struct Undescribed {
    count: u32,
}

/// Counts.
#[tool(no_caller)]
async fn count() -> Undescribed {
    Undescribed { count: 1 }
}

#[test]
fn a_result_without_a_schema_declares_none() {
    assert!(count.definition().output.is_none());
}

#[tokio::test]
async fn only_a_tool_with_an_assessment_of_its_own_assesses() {
    assert!(!greet.assesses());
    assert!(find_files.assesses());

    let call = Arc::new(crate::fake::Fake::default()).call_context();
    let input = Payload::new(json!({"pattern": "*.rs"}));
    let assessment = find_files.assess(&input, &call).await;
    assert_eq!(assessment.description, "looks for \"*.rs\" in main");
    let assessment = greet.assess(&input, &call).await;
    assert_eq!(assessment.description, "greet(pattern: \"*.rs\")");
}

#[test]
fn tools_are_grouped_without_a_word_about_their_types() {
    let toolset = StatelessToolset::new("files", [find_files.into(), greet.into()]);
    let names: Vec<_> = toolset.definitions().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["find_files", "greet"]);
}
