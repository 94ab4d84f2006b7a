//! Projects with code: when it is run, and how what it defines is linked.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm_do_core::{AgentSpec, Schema, Tool, Toolset};
use llm_do_project::{
    Catalog, ClassPurpose, Code, CodeClass, CodeLocation, CodeProblem, CodeRunner, Defined, Diagnostics,
    EmbeddingProgram, Host, LoadedProject, ModelCatalog, ToolsetCatalog, WantedCode, WantedToolset,
    check_static, load,
};
use llm_do_runtime::EntrySpec;
use llm_do_testing::{FunctionTool, TestDir};
use serde_json::json;

/// Code that defines what a test says, and counts how often it is run.
#[derive(Clone, Default)]
struct Fake {
    runs: Arc<AtomicUsize>,
    tools: Vec<&'static str>,
    agents: Vec<AgentSpec>,
    entries: Vec<&'static str>,
    problem: Option<&'static str>,
}

impl Catalog for Fake {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(self.clone())
    }
}

impl ToolsetCatalog for Fake {
    fn toolsets(&self) -> Vec<&str> {
        Vec::new()
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        Err(format!("there is no toolset `{}`", wanted.built_in))
    }
}

impl EmbeddingProgram for Fake {}

impl CodeRunner for Fake {
    fn code(&self, wanted: WantedCode<'_>) -> Result<Code, Vec<CodeProblem>> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let location = CodeLocation { file: wanted.root.join("tools.py"), line: Some(2) };
        if let Some(message) = self.problem {
            return Err(vec![CodeProblem { location: Some(location), message: message.into(), hint: None }]);
        }
        let class = |class: &llm_do_project::WantedClass| {
            assert_eq!(class.purpose, ClassPurpose::Input);
            let schema =
                json!({"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]});
            CodeClass { schema: Schema::new(schema).unwrap(), prompt: None }
        };
        let tool = |name: &&'static str| Defined { value: echo(name), location: location.clone() };
        let agent = |agent: &AgentSpec| Defined { value: agent.clone(), location: location.clone() };
        let entry = |name: &&'static str| Defined {
            value: EntrySpec::from_tool(echo(name)),
            location: location.clone(),
        };
        Ok(Code {
            tools: self.tools.iter().map(tool).collect(),
            agents: self.agents.iter().map(agent).collect(),
            entries: self.entries.iter().map(entry).collect(),
            classes: wanted.classes.iter().map(class).collect(),
            ..Code::default()
        })
    }
}

impl ModelCatalog for Fake {
    fn providers(&self) -> Vec<&str> {
        vec!["test"]
    }
}

impl Host for Fake {}

fn echo(name: &str) -> Arc<dyn Tool> {
    FunctionTool::new(name, |_, _| async { Ok("done".into()) }).shared()
}

fn project(manifest: &str, header: &str) -> TestDir {
    let directory = TestDir::new();
    directory.write(
        "project.yaml",
        format!("version: 1\npython_files: [tools.py]\nagent_files: [main.agent]\n{manifest}\n"),
    );
    directory.write("main.agent", format!("---\nname: main\nmodel: test\n{header}\n---\nDo it.\n"));
    directory.write("tools.py", "\nclass Topic: pass\nasync def start(args, ctx): ...\n");
    directory
}

fn load_with(directory: &Path, code: &Fake) -> Result<LoadedProject, Diagnostics> {
    load(directory, code)
}

fn said(directory: &TestDir, code: &Fake) -> String {
    load_with(directory.path(), code).err().map(|found| found.to_string()).unwrap_or_default()
}

#[test]
fn code_is_run_only_when_everything_else_is_right() {
    let code = Fake { tools: vec!["add"], ..Fake::default() };
    for (manifest, header) in [
        ("entry: {agent: mian}", "tools: [add]\nlimits: {turns: none}"),
        ("entry: {agent: main}\nruntime: {max_depth: 0}", "tools: [add]"),
        ("entry: {function: 'tools.py:begin'}", "tools: [add]"),
        ("entry: {agent: main}", "tools: [add, add]"),
        ("entry: {agent: main}", "input_model_ref: tools.py:Topics"),
    ] {
        assert_ne!(said(&project(manifest, header), &code), "", "{manifest} {header}");
    }
    assert_eq!(code.runs.load(Ordering::Relaxed), 0);
    let right = project("entry: {agent: main}", "tools: [add]");
    load_with(right.path(), &code).unwrap();
    assert_eq!(code.runs.load(Ordering::Relaxed), 1);
}

#[test]
fn what_code_does_not_define_is_an_error_with_what_was_meant() {
    let code = Fake { tools: vec!["add_numbers"], ..Fake::default() };
    let words = said(&project("entry: {agent: main}", "tools: [ad_numbers]"), &code);
    assert!(words.contains("main.agent, line 4"), "{words}");
    assert!(words.contains("did you mean `add_numbers`?"), "{words}");
    let words = said(&project("entry: {agent: main}", "toolsets: [numbers]"), &code);
    assert!(words.contains("there is no toolset or agent `numbers`"), "{words}");
    let words = said(&project("entry: {agent: main}\nmodel: acme:x", ""), &code);
    assert!(words.contains("there is no provider `acme`"), "{words}");
}

#[test]
fn a_problem_of_code_is_shown_with_its_line() {
    let code = Fake { problem: Some("NameError: x"), ..Fake::default() };
    let words = said(&project("entry: {agent: main}", ""), &code);
    assert!(words.contains("tools.py, line 2, column 1"), "{words}");
    assert!(words.contains("NameError: x") && words.contains("class Topic: pass"), "{words}");
}

#[test]
fn a_class_gives_the_schema_of_an_input_and_of_the_arguments() {
    let header = "input_model_ref: tools.py:Topic\nprompt: 'About {{ topic }}'";
    let right = project("entry: {agent: main, args: {topic: x}}", header);
    let loaded = load_with(right.path(), &Fake::default()).unwrap();
    let definition = loaded.project.callables().into_iter().find(|callable| callable.name == "main").unwrap();
    assert!(definition.input.source()["properties"]["topic"].is_object());
    let words = said(&project("entry: {agent: main, args: {subject: x}}", header), &Fake::default());
    assert!(words.contains("`entry.args` does not fit the input of `main`"), "{words}");
    let wrong = "input_model_ref: tools.py:Topic\nprompt: 'About {{ subject }}'";
    let words = said(&project("entry: {agent: main}", wrong), &Fake::default());
    assert!(words.contains("uses `subject`"), "{words}");
}

#[test]
fn a_function_may_be_the_entry_and_share_the_name_of_an_agent() {
    let named = project("entry: {function: 'tools.py:start'}", "");
    let code = Fake { entries: vec!["start"], ..Fake::default() };
    assert_eq!(load_with(named.path(), &code).unwrap().entry, "start");
    let found = project("entry: {}", "");
    let code = Fake { entries: vec!["main"], ..Fake::default() };
    assert_eq!(load_with(found.path(), &code).unwrap().entry, "tools_main");
    let absent = project("", "");
    assert_eq!(load_with(absent.path(), &code).unwrap().entry, "tools_main");
    let words = said(&project("entry: {}", "entry: true"), &code);
    assert!(words.contains("has `entry: true`"), "{words}");
    let words = said(&project("entry: {}", ""), &Fake::default());
    assert!(words.contains("neither an `agent` nor a `function`"), "{words}");
}

#[test]
fn agents_of_code_are_linked_and_checked_like_those_of_files() {
    let helper = AgentSpec::new("helper", "Help.").model("test").tool("add");
    let code = Fake { tools: vec!["add"], agents: vec![helper.clone()], ..Fake::default() };
    let right = project("entry: {agent: helper}", "toolsets: [helper]\nagents: [helper]");
    assert_eq!(load_with(right.path(), &code).unwrap().entry, "helper");
    let wrong =
        Fake { agents: vec![helper.clone().tool("ad").toolset("shell"), helper.model("acme:x")], ..code };
    let words = said(&right, &wrong);
    for part in [
        "there is no tool `ad`",
        "`shell`",
        "no provider `acme`",
        "already the name of an agent of",
        "tools.py:2",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn a_name_that_is_taken_is_an_error_at_its_line() {
    let code = Fake { tools: vec!["main", "a b"], ..Fake::default() };
    let words = said(&project("entry: {agent: main}", ""), &code);
    assert!(words.contains("the tool name `main` is already the name of an agent"), "{words}");
    assert!(words.contains("the tool name `a b` is not valid"), "{words}");
}

#[test]
fn a_static_check_runs_nothing_and_lists_what_it_could_not_verify() {
    let code = Fake::default();
    let header = "tools: [add]\ntoolsets: [numbers]\ninput_model_ref: tools.py:Topic";
    let directory = project("entry: {agent: main}\nmodel: acme:x", header);
    let found = check_static(directory.path(), &[], &code);
    assert!(!found.has_errors(), "{found}");
    for part in ["the tool `add`", "the toolset `numbers`", "`acme:x`", "`Topic`", "tools.py"] {
        assert!(found.to_string().contains(part), "{part}: {found}");
    }
    let wrong = project("entry: {agent: main}", "toolz: [add]");
    assert!(check_static(wrong.path(), &[], &code).has_errors());
    assert_eq!(code.runs.load(Ordering::Relaxed), 0);
}
