//! Projects of the Python programs: what they wrote is read, and what cannot be read is explained.

use std::sync::Arc;

use llm_do_core::{Approval, StatelessToolset, Toolset};
use llm_do_project::{
    Catalog, CodeRunner, EmbeddingProgram, Host, LoadedProject, ModelCatalog, ToolsetCatalog, WantedToolset,
    load,
};
use llm_do_runtime::Outline;
use llm_do_testing::{FunctionTool, TestDir};
use serde_json::json;

use crate::parts::Names;

/// Loads a folder with these files.
fn loaded(files: &[(&str, &str)]) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    files.iter().for_each(|(name, text)| folder.write(name, text));
    load(folder.path(), &Names).map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn an_agent_that_is_marked_as_entry_needs_no_key_in_the_manifest() {
    let main = "---\nname: main\nentry: true\nmodel: test:echo\n---\nDo it.\n";
    let manifest = "version: 1\nagent_files: [main.agent]\n";
    let project = loaded(&[("main.agent", main), ("project.yaml", manifest)]).unwrap();
    assert_eq!(project.entry, "main");
}

#[test]
fn a_manifest_without_an_entry_names_all_ways_to_choose_one() {
    let main = "---\nname: main\nmodel: test:echo\n---\nDo it.\n";
    let manifest = "version: 1\nagent_files: [main.agent]\n";
    let text = loaded(&[("main.agent", main), ("project.yaml", manifest)]).err().unwrap();
    assert!(text.contains("the project has no entry"), "{text}");
    assert!(text.contains("`entry: true` in one agent file") && text.contains("{\"agent\": "), "{text}");
}

#[test]
fn an_old_spelling_is_one_line_and_is_said_once_for_all_files() {
    let agent =
        |name: &str| format!("---\nname: {name}\nmodel: test:echo\nallow_workers: [main]\n---\nDo it.\n");
    let manifest = "version: 1\nentry: {agent: main}\nworker_files: [main.agent, other.agent, third.agent]\n";
    let (main, other, third) = (agent("main"), agent("other"), agent("third"));
    let files = [
        ("project.yaml", manifest),
        ("main.agent", main.as_str()),
        ("other.agent", other.as_str()),
        ("third.agent", third.as_str()),
    ];
    let project = loaded(&files).unwrap();
    let text = project.notices.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let [files, agents] = &lines[..] else { panic!("{text}") };
    assert!(files.ends_with("project.yaml:3: `worker_files` is read as `agent_files`"), "{text}");
    assert!(
        agents.ends_with("main.agent:4: `allow_workers` is read as `agents` (and in 2 more places)"),
        "{text}"
    );
    assert!(lines.iter().all(|line| line.starts_with("notice: ")), "{text}");
    assert_eq!(project.notices.0.len(), 4, "programs are given every place");
}

#[test]
fn an_unknown_key_of_a_python_program_is_explained() {
    let manifest =
        "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nruntime: {model: 'test:echo'}\n";
    let main = "---\nname: main\nmodel: test:echo\nshell_rules: []\n---\nDo it.\n";
    let text = loaded(&[("main.agent", main), ("project.yaml", manifest)]).err().unwrap();
    assert!(
        text.contains("hint: `runtime.model` of the Python program is now: manifest key `model`"),
        "{text}"
    );
    assert!(
        text.contains("hint: `shell_rules` of the Python program is now: settings of the toolset"),
        "{text}"
    );
}

#[test]
fn an_unknown_tool_or_toolset_of_a_python_program_is_explained() {
    let main = "---\nname: main\nmodel: test:echo\ntools: [list_dir]\ntoolsets: [delegation]\n---\nDo it.\n";
    let text = loaded(&[("main.agent", main)]).err().unwrap();
    assert!(text.contains("hint: `list_dir` of LLMProc is now: tool `list_files`"), "{text}");
    assert!(
        text.contains("hint: `delegation` of the Python program is now: toolset `dynamic_agents`"),
        "{text}"
    );
}

#[test]
fn an_allow_list_may_name_an_agent_that_does_not_exist_yet() {
    let main = "---\nname: main\nmodel: test:echo\nagents: [mian, later]\n---\nDo it.\n";
    let project = loaded(&[("main.agent", main)]).unwrap();
    let text = project.notices.to_string();
    assert!(text.contains("notice: `agents` names `later`, but there is no such agent yet"), "{text}");
    assert!(text.contains("hint: did you mean `main`?"), "{text}");
}

/// The toolsets that workers had, with any settings.
#[derive(Clone)]
struct Tools;

impl Catalog for Tools {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(self.clone())
    }
}

impl ToolsetCatalog for Tools {
    fn toolsets(&self) -> Vec<&str> {
        vec!["filesystem_project", "dynamic_agents"]
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        let names: &[&str] = match wanted.built_in {
            "filesystem_project" => &["read_file", "write_file", "list_files"],
            _ => &["agent_call", "agent_create"],
        };
        let tool = |name: &&str| FunctionTool::new(name, |_, _| async { Ok("done".into()) }).shared();
        Ok(Arc::new(StatelessToolset::new(wanted.name, names.iter().map(tool))))
    }

    fn tool_home(&self, tool: &str) -> Option<&str> {
        matches!(tool, "agent_call" | "agent_create").then_some("dynamic_agents")
    }
}

impl EmbeddingProgram for Tools {}

impl CodeRunner for Tools {}

impl ModelCatalog for Tools {
    fn providers(&self) -> Vec<&str> {
        vec!["test"]
    }
}

impl Host for Tools {}

const WORKER: &str = "name: main
description: Writes reports
model: test:echo
instructions: |
  You write reports.
allow_workers: [helper]
sandboxes:
  out: {root: ./out, mode: rw, suffixes: [.md]}
tool_rules:
  sandbox.write: {approval_required: true}
  sandbox.read: {allowed: true, approval_required: false}
  worker.call: {approval_required: true}
  worker.create: {allowed: false}
";

const HELPER: &str = "name: helper\nmodel: test:echo\ninstructions: You help.\n";

/// Loads a path below a folder with these files.
fn loaded_at(path: &str, files: &[(&str, &str)]) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    files.iter().for_each(|(name, text)| folder.write(name, text));
    load(folder.path().join(path), &Tools).map_err(|diagnostics| diagnostics.to_string())
}

fn outline(project: &LoadedProject, agent: &str) -> Outline {
    let is_meant = |outline: &Outline| outline.agent.as_ref().is_some_and(|spec| spec.name == agent);
    project.project.outline().into_iter().find(is_meant).unwrap()
}

#[test]
fn yaml_workers_are_read_as_agents_wherever_the_python_program_found_them() {
    let files = [("workers/main.yaml", WORKER), ("workers/generated/helper.yaml", HELPER)];
    let manifest = "version: 1\nentry: {agent: main}\nworker_files: ['workers/**/*.yaml']\n";
    let listed = [("project.yaml", manifest), files[0], files[1]];
    for (id, path, files) in [
        ("worker-directory", "", &files[..]),
        ("worker-registry", "workers", &files[..]),
        ("worker-lone", "workers/main.yaml", &files[..]),
        ("worker-listed", "", &listed[..]),
    ] {
        let project = loaded_at(path, files).unwrap_or_else(|text| panic!("{id}: {text}"));
        assert_eq!(project.entry, "main", "{id}");
        let main = outline(&project, "main");
        let spec = main.agent.clone().unwrap();
        assert_eq!(&*spec.instructions, "You write reports.");
        assert_eq!(spec.agents, ["helper"]);
        let settings =
            &spec.toolsets.iter().find(|choice| choice.name == "filesystem_project").unwrap().settings;
        assert_eq!(*settings, json!({"root": "./out", "read_only": false, "suffixes": [".md"]}));
        let level =
            |tool: &str| main.callables.iter().find(|call| call.name == tool).map(|call| call.approval);
        assert_eq!(level("write_file"), Some(Approval::Ask), "{id}");
        assert_eq!(level("read_file"), Some(Approval::PreApproved), "{id}");
        assert_eq!(level("agent_call"), Some(Approval::Ask), "{id}");
        assert_eq!(level("agent_create"), None, "{id}");
        let text = project.notices.to_string();
        assert!(text.contains(".yaml:1: a YAML worker is read as an agent file"), "{id}: {text}");
        assert!(text.contains("main.yaml:9: `tool_rules` is read as `approval`"), "{id}: {text}");
        assert!(project.project.agents().any(|name| name == "helper"), "{id}");
    }
}

#[test]
fn unknown_keys_of_a_yaml_worker_are_errors_with_what_replaces_them() {
    for (id, keys, expected) in [
        ("worker-unknown", "temprature: 1", "unknown key `temprature`"),
        (
            "worker-shell",
            "shell_rules: []",
            "hint: `shell_rules` of the Python program is now: settings of the",
        ),
        (
            "worker-rules",
            "tool_rules: {x: {limit: 3}}",
            "hint: `tool_rules` of the Python program is now: agent key `approval`",
        ),
        ("worker-sandboxes", "sandboxes: {a: {root: a}, b: {root: b}}", "`sandboxes` has several sandboxes"),
        ("worker-sandbox", "sandboxes: {a: {root: a, mod: rw}}", "hint: did you mean `mode`?"),
    ] {
        let worker = format!("{HELPER}{keys}\n");
        let text = loaded_at("helper.yaml", &[("helper.yaml", &worker)]).err().unwrap();
        assert!(text.contains(expected), "{id}: {text}");
    }
    let text =
        loaded_at("workers/a.yaml", &[("workers/a.yaml", "name: a\nmodel: test:echo\n")]).err().unwrap();
    assert!(text.contains("the worker has no `instructions`"), "{text}");
}

#[test]
fn a_manifest_that_lacks_its_version_is_not_taken_for_a_worker() {
    let manifest = "name: hello\nentry: {agent: main}\nmodel: test:echo\n";
    let text = loaded(&[("project.yaml", manifest)]).err().unwrap();
    assert!(text.contains("missing key `version`") && text.contains("unknown key `name`"), "{text}");
}

#[test]
fn a_worker_without_a_name_has_that_of_its_file_or_directory() {
    let worker = "model: test:echo\ninstructions: You help.\n";
    let project = loaded_at("", &[("workers/one.yaml", worker)]).unwrap();
    assert_eq!(project.entry, "one");
    let project = loaded_at("", &[("workers/two/worker.yaml", worker)]).unwrap();
    assert_eq!(project.entry, "two");
}

#[test]
fn rules_of_an_agent_file_are_read_as_approval() {
    let main = "---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n\
        tool_rules: {sandbox.write: {approval_required: true}, read_file: {}}\n---\nDo it.\n";
    let project = loaded_at("", &[("main.agent", main)]).unwrap();
    let main = outline(&project, "main");
    let level = |tool: &str| main.callables.iter().find(|call| call.name == tool).map(|call| call.approval);
    assert_eq!((level("write_file"), level("read_file")), (Some(Approval::Ask), Some(Approval::PreApproved)));
}
