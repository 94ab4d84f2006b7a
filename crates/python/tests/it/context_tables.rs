//! The tables of `docs/guide/python-context.md`: every row exists, and every public name has a row.

use llm_do_core::{AgentSpec, Approval};
use llm_do_models::{asks, says};
use llm_do_testing::{TestProject, needs};
use llm_do_tools::FileDescriptors;
use serde_json::{Value, json};

use crate::support::Folder;

const GUIDE: &str = include_str!("../../../../docs/guide/python-context.md");

const SOURCE: &str = r#"
from pydantic_ai.tools import RunContext
from llm_do.runtime import CallContext
from llmproc import register_tool
from llmproc.program_exec import setup_runtime_context

def public(thing):
    names = set(dir(type(thing))) | set(getattr(thing, "__dict__", ()))
    return sorted(name for name in names if not name.startswith("_"))

def message_of(thing, name):
    try:
        getattr(thing, name)
        return None
    except AttributeError as problem:
        return str(problem)

def look(ctx: RunContext[CallContext], workers: list[str]):
    context = setup_runtime_context()
    things = {
        "ctx.deps": ctx.deps,
        "ctx.deps.frame": ctx.deps.frame,
        'ctx.deps.usage["provider:model"]': next(iter(ctx.deps.usage.values())),
        "ctx.deps.trace[0]": ctx.deps.trace[0],
        "Context": ctx.deps,
        "process": context["process"],
        "fd_manager": context["fd_manager"],
        'linked_programs["name"]': context["linked_programs"]["helper"],
    }
    names = {name: public(thing) for name, thing in things.items()}
    names["runtime_context"] = sorted(context)
    return {"names": names, "workers": {name: message_of(ctx.deps, name) for name in workers}}

TOOLS = [look]
"#;

/// The tables by the heading of their first column, with the names of their rows.
fn tables() -> Vec<(String, Vec<String>)> {
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    let mut in_table = false;
    for line in GUIDE.lines() {
        let first = line.strip_prefix("| `").and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
        match (first, tables.last_mut()) {
            (Some(name), Some((_, rows))) if in_table => {
                let name = name.split_once('(').map_or(name, |(name, _)| name);
                rows.push(name.to_owned());
            }
            (Some(heading), _) => tables.push((heading.to_owned(), Vec::new())),
            (None, _) => {}
        }
        in_table = line.starts_with('|');
    }
    tables
}

fn rows(heading: &str) -> Vec<String> {
    let found = tables().into_iter().find(|(name, _)| name == heading);
    found.unwrap_or_else(|| panic!("no table `{heading}`")).1
}

/// What a tool sees of a call that has everything: descriptors, a linked program, usage.
async fn seen() -> Value {
    let code = Folder::of(SOURCE).load();
    let main = AgentSpec::new("main", "Work.").tool("look").toolset("file_descriptors");
    let main = main.program("helper", "assistant", "Helps").rule("*", Approval::PreApproved);
    let run = TestProject::new()
        .agent(main)
        .agent(AgentSpec::new("assistant", "Assist."))
        .tool(code.tools[0].value.clone())
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
        .model_replies([asks("look", json!({"workers": rows("WorkerContext")})), says("done")])
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    let result = run.results().into_iter().next().unwrap().text.clone();
    serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {result}"))
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn the_guide_names_exactly_what_code_can_use() {
    let seen = seen().await;
    for (heading, mut rows) in tables() {
        let Some(names) = seen["names"].get(&heading) else {
            assert_eq!(heading, "WorkerContext", "a table that nothing checks");
            continue;
        };
        let mut names: Vec<String> = serde_json::from_value(names.clone()).unwrap();
        // `Context` has all of `ctx.deps`; its table has what it had in its own time.
        names.retain(|name| heading != "Context" || rows.contains(name));
        let refusing = ["from_worker", "from_entry", "from_tool_entries"];
        names.retain(|name| heading != "ctx.deps" || !refusing.contains(&name.as_str()));
        rows.sort();
        assert_eq!(rows, names, "{heading}");
    }
    assert_eq!(tables().len(), 10);
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn attributes_of_a_worker_context_exist_or_name_what_replaces_them() {
    let seen = seen().await;
    for name in rows("WorkerContext") {
        let message = &seen["workers"][&name];
        let is_explained = message.as_str().is_some_and(|message| message.contains("; now "));
        assert!(message.is_null() || is_explained, "{name}: {message}");
    }
}
