//! Embedding: projects of files with tools of the program, and built-in toolsets in code.

use std::sync::{Arc, Mutex};

use llm_do::call::CallKind;
use llm_do::event::{EventBody, Status};
use llm_do::prelude::*;
use llm_do::project::LoadedProject;
use llm_do::testing::{Script, TestModel, asks, contains, says};
use llm_do_testing::TestDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Counts the words of a text.
#[tool(access = "read", approval = "pre_approved", effect = "pure")]
fn count_words(text: String) -> usize {
    text.split_whitespace().count()
}

/// Deletes a note.
#[tool]
fn delete_note(name: String) -> String {
    format!("deleted {name}")
}

struct Shelf(String);

#[toolset]
impl Shelf {
    /// Names the shelf.
    #[tool(approval = "pre_approved")]
    async fn shelf(&self) -> String {
        self.0.clone()
    }
}

const COUNTER: &str = "---\nname: main\ntools: [count_words, read_file]\n---\nCount.";

fn counter() -> (TestDir, LoadedProject) {
    let folder = TestDir::with_files(&[("main.agent", COUNTER), ("a.txt", "ebb and flow")]);
    let project = llm_do::loader(folder.path()).tool(count_words).load().unwrap();
    (folder, project)
}

#[tokio::test]
async fn agents_in_files_use_tools_of_the_program_beside_built_in_ones() {
    let (_folder, project) = counter();
    let script = Script::new([
        asks("read_file", json!({"path": "a.txt"})),
        asks("count_words", json!({"text": "ebb and flow"})),
        says("three"),
    ]);
    let runtime = project.runtime().model(script).build().unwrap();
    let report = runtime.run(&project.entry, "How many words has a.txt?").await.unwrap();
    let results: Vec<String> = report
        .trace()
        .iter()
        .filter(|call| call.kind == CallKind::Tool)
        .map(|call| call.output.clone().unwrap().to_string())
        .collect();
    assert!(results[0].contains("ebb and flow"), "{results:?}");
    assert_eq!(results[1], "3");
    assert_eq!(runtime.run("count_words", json!({"text": "a b"})).await.unwrap().parse::<u64>().unwrap(), 2);
}

#[tokio::test]
async fn a_toolset_of_the_program_is_opened_with_the_settings_of_each_agent() {
    let left = "---\nname: left\ntoolsets:\n  - shelf: {label: left shelf}\n---\nx";
    let right = "---\nname: right\ntoolsets: [shelf]\napproval: {shelf: blocked}\n---\nx";
    let manifest =
        r#"{"version": 1, "entry": {"agent": "left"}, "agent_files": ["left.agent", "right.agent"]}"#;
    let folder =
        TestDir::with_files(&[("project.json", manifest), ("left.agent", left), ("right.agent", right)]);
    let shelf = Shelf::toolset("shelf", |opening| {
        Ok(Shelf(opening.settings["label"].as_str().unwrap_or("no label").to_owned()))
    });
    let project = llm_do::loader(folder.path()).toolset(shelf).set("runtime.max_depth=2").load().unwrap();
    let runtime = project.runtime().build().unwrap();
    let ask = |agent: &'static str| runtime.run("shelf", json!({})).as_agent(agent);
    assert_eq!(&*ask("left").await.unwrap().text(), "left shelf");
    assert_eq!(ask("right").await.unwrap_err().status(), Status::Denied);
}

#[test]
fn names_that_the_program_does_not_bring_are_reported_with_the_nearest_one() {
    let folder = TestDir::with_files(&[("main.agent", "---\nname: main\ntools: [count_word]\n---\nx")]);
    let problems = llm_do::loader(folder.path()).tool(count_words).load().err().unwrap().to_string();
    assert!(problems.contains("names the tool `count_word`, which does not exist"), "{problems}");
    assert!(problems.contains("did you mean `count_words`?"), "{problems}");
    let taken = TestDir::with_files(&[("shelf.agent", "---\nname: shelf\n---\nx")]);
    let shelf = Shelf::toolset("shelf", |_| Ok(Shelf(String::new())));
    let problems = llm_do::loader(taken.path()).toolset(shelf).load().err().unwrap().to_string();
    assert!(
        problems.contains("the agent name `shelf` is already the name of a toolset of the program"),
        "{problems}"
    );
}

#[tokio::test]
async fn code_of_the_program_can_be_the_root_of_a_run_over_agents_in_files() {
    let folder = TestDir::with_files(&[("main.agent", "---\nname: main\nmodel: test:echo\n---\nx")]);
    let start = EntrySpec::new("start", "Asks twice", |input: PromptInput, call: CallContext| async move {
        let first = call.call("main", input.input.as_str()).await?;
        Ok(call.call("main", format!("{first} again")).await?.to_string())
    });
    let project = llm_do::loader(folder.path()).entry(start.unwrap()).load().unwrap();
    let runtime = project.runtime().build().unwrap();
    assert_eq!(&*runtime.run("start", "hello").await.unwrap().text(), "hello again");
}

#[tokio::test]
async fn a_project_in_code_knows_the_built_in_toolsets_by_name() {
    let folder = TestDir::with_files(&[("a.txt", "ebb and flow")]);
    let reader = AgentSpec::new("reader", "You read.")
        .toolset_with("filesystem_project", json!({"read_only": true}))
        .tool("calculator")
        .tool("count_words");
    let writer = AgentSpec::new("writer", "You write.").toolset("filesystem_project").toolset("reader");
    let builder = Project::builder().agent(reader).agent(writer).tool(count_words);
    let project = builder.builtins(folder.path()).build().unwrap();
    let runtime = Runtime::standard(project).model(TestModel::echo()).build().unwrap();
    let as_reader = |tool: &'static str, input| runtime.run(tool, input).as_agent("reader");
    let read = as_reader("read_file", json!({"path": "a.txt"})).await.unwrap();
    assert!(read.text().contains("ebb and flow"), "{}", read.text());
    let write = json!({"path": "b.txt", "content": "x"});
    assert!(as_reader("write_file", write.clone()).await.is_err(), "the settings of one agent are its own");
    let written =
        runtime.run("write_file", write).as_agent("writer").approval_mode(ApprovalMode::ApproveAll).await;
    assert_eq!(written.unwrap().status, Status::Done);
    assert!(folder.join("b.txt").exists());
    assert_eq!(&*as_reader("calculator", json!({"expression": "6 * 7"})).await.unwrap().text(), "42");
    // The directory is that of the project, also for attachments of agents.
    let script = Script::new([
        says("read").when(contains("look")),
        asks("reader", json!({"input": "look", "attachments": ["a.txt"]})),
        says("done"),
    ]);
    assert_eq!(&*runtime.run("writer", "go").model(script).await.unwrap().text(), "done");
}

#[tokio::test]
async fn an_agent_that_is_added_later_knows_the_built_in_toolsets_too() {
    let folder = TestDir::with_files(&[("a.txt", "ebb and flow")]);
    let project =
        Project::builder().agent(AgentSpec::new("main", "x")).builtins(folder.path()).build().unwrap();
    let runtime = Runtime::standard(project).model("test").build().unwrap();
    runtime.add_agent(AgentSpec::new("late", "x").tool("list_files")).unwrap();
    let listed = runtime.run("list_files", json!({})).as_agent("late").await.unwrap();
    assert!(listed.text().contains("a.txt"), "{}", listed.text());
}

#[test]
fn unknown_and_misconfigured_toolsets_in_code_are_reported_with_what_to_do() {
    let errors = |agent: AgentSpec, builtins: bool| {
        let builder = Project::builder().agent(agent);
        let builder = if builtins { builder.builtins(".") } else { builder };
        builder.build().err().unwrap().to_string()
    };
    assert_eq!(
        errors(AgentSpec::new("main", "x").toolset("filesystem_project"), false),
        "agent `main` names the toolset `filesystem_project`, which does not exist\n\
         hint: add it with `ProjectBuilder::toolset`, or the built-in ones with `builtins(directory)`"
    );
    let near = errors(AgentSpec::new("main", "x").toolset("filesystem_projct").tool("calculater"), true);
    assert!(near.contains("did you mean `filesystem_project`?"), "{near}");
    assert!(near.contains("did you mean `calculator`?"), "{near}");
    let settings = json!({"read_onyl": true});
    let bad = errors(AgentSpec::new("main", "x").toolset_with("filesystem_project", settings), true);
    assert!(bad.starts_with("agent `main`: toolset `filesystem_project`: "), "{bad}");
    assert_eq!(bad.lines().count(), 1, "said once: {bad}");
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct PitchInput {
    company: String,
    deck: Option<String>,
}

impl AgentArgs for PitchInput {
    fn prompt_messages(&self) -> Vec<InputPart> {
        vec![format!("Pitch of {}", self.company).into()]
    }
}

#[tokio::test]
async fn an_agent_in_a_file_takes_a_rust_type_as_its_input() {
    let agent = "---\nname: evaluator\nmodel: test:echo\n---\nx";
    let folder = TestDir::with_files(&[("evaluator.agent", agent)]);
    let load = |agent: &'static str| llm_do::loader(folder.path()).input_of::<PitchInput>(agent).load();
    let project = load("evaluator").unwrap();
    let runtime = project.runtime().build().unwrap();
    let pitch = PitchInput { company: "Night Ferry".into(), deck: None };
    assert_eq!(&*runtime.run("evaluator", pitch).await.unwrap().text(), "Pitch of Night Ferry");
    let misspelled = runtime.run("evaluator", json!({"company": "Night Ferry", "dek": "a.pdf"})).await;
    let error = misspelled.unwrap_err().to_string();
    assert!(error.contains("unknown field `dek`, did you mean `deck`?"), "{error}");
    let unknown = load("evaluater").err().unwrap().to_string();
    assert!(unknown.contains("the agent `evaluater`, which no file defines"), "{unknown}");
    let own = "---\nname: evaluator\ninput_schema: {type: object}\n---\nx";
    let contradicts = TestDir::with_files(&[("evaluator.agent", own)]);
    let error = llm_do::loader(contradicts.path()).input_of::<PitchInput>("evaluator").load().err().unwrap();
    assert!(
        error.to_string().contains("the program already defines the input of agent `evaluator`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_project_of_files_is_tested_with_scripted_answers() {
    let (_folder, loaded) = counter();
    let run = llm_do_testing::TestProject::from_project(loaded.project.clone(), loaded.entry.as_str())
        .runtime(move |runtime| loaded.configure(runtime))
        .model_replies([asks("count_words", json!({"text": "a b"})), says("Two.")])
        .run("How many words?")
        .await;
    assert_eq!((&*run.answer(), run.tool_results()), ("Two.", vec!["2".to_owned()]));
}

#[test]
fn errors_read_well_when_main_returns_them() {
    let folder = TestDir::with_files(&[("main.agent", "---\nname: main\ntools: [count_word]\n---\nx")]);
    let error = llm_do::loader(folder.path()).load().err().unwrap();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(
        error.to_string().contains("the program adds its own with `llm_do::loader(..).tool(..)`"),
        "{error}"
    );
    let errors = Project::builder().agent(AgentSpec::new("main", "x").tool("absent")).build().err().unwrap();
    assert_eq!(format!("{errors:?}"), errors.to_string());
    let run =
        Runtime::standard(Project::builder().build().unwrap()).build().unwrap().run("absent", "x").blocking();
    let error = run.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn what_is_listed_in_the_wrong_way_is_explained() {
    let shelf = || Shelf::toolset("shelf_set", |_| Ok(Shelf(String::new())));
    let errors = |agent: AgentSpec| {
        let builder = Project::builder().agent(agent).tool(count_words).toolset(shelf());
        builder.build().err().unwrap().to_string()
    };
    let main = || AgentSpec::new("main", "x");
    let of_toolset = errors(main().tool("shelf"));
    assert!(
        of_toolset.contains("it belongs to a toolset: list that with `toolset(\"shelf_set\")`"),
        "{of_toolset}"
    );
    let toolset = errors(main().tool("shelf_set"));
    assert!(toolset.contains("it is not a single tool: list it with `toolset(\"shelf_set\")`"), "{toolset}");
    let tool = errors(main().toolset("count_words"));
    assert!(tool.contains("it is a single tool: list it with `tool(\"count_words\")`"), "{tool}");
    let twice = Project::builder().tool(count_words).tool(count_words).build().err().unwrap().to_string();
    assert!(twice.contains("the name `count_words` is used by two tools"), "{twice}");
    let folder = TestDir::with_files(&[("main.agent", "---\nname: main\n---\nx")]);
    let twice = llm_do::loader(folder.path()).toolset(shelf()).toolset(shelf()).load().err().unwrap();
    assert!(twice.to_string().contains("two toolsets with the name `shelf_set`"), "{twice}");
}

/// Each of these is a promise: what an embedder wants first takes at most five lines.
mod five_lines {
    use super::*;

    type Anything = Result<(), Box<dyn std::error::Error>>;

    #[tokio::test]
    async fn run_a_project() -> Anything {
        let (folder, _) = counter();
        let path = folder.path();

        let project = llm_do::loader(path).tool(count_words).load()?;
        let runtime = project.runtime().model("test").build()?;
        let report = runtime.run(&project.entry, "How long is this?").await?;
        println!("{}", report.text());

        assert!(!report.text().is_empty());
        Ok(())
    }

    #[tokio::test]
    async fn take_a_typed_input() -> Anything {
        let agent = AgentSpec::new("main", "You evaluate pitches.").input_of::<PitchInput>();
        let project = Project::builder().agent(agent).build()?;
        let runtime = Runtime::standard(project).model("test:echo").build()?;
        let report = runtime.run("main", PitchInput { company: "Night Ferry".into(), deck: None }).await?;

        assert_eq!(&*report.text(), "Pitch of Night Ferry");
        Ok(())
    }

    #[tokio::test]
    async fn approve_by_a_function() -> Anything {
        fn approve(request: ApprovalRequest) -> Answer {
            if request.name == "delete_note" { Answer::Deny("keep it".into()) } else { Answer::Once }
        }
        let agent = AgentSpec::new("main", "x").tool("delete_note").model("test");
        let project = Project::builder().agent(agent).tool(delete_note).build()?;
        let runtime = Runtime::standard(project).approver(approve).build()?;
        let report = runtime.run("main", "Tidy up").await?;

        let denied = report.trace().into_iter().find_map(|call| call.error).unwrap();
        assert_eq!(denied.message, "denied: keep it");
        Ok(())
    }

    #[tokio::test]
    async fn stream_events() -> Anything {
        let (_folder, project) = counter();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let names = seen.clone();

        let runtime = project.runtime().model("test").build()?;
        let mut run = runtime.run(&project.entry, "go").start();
        let mut events = run.events();
        while let Some(event) = events.next().await {
            if let EventBody::CallStarted { name, .. } = &event.body {
                names.lock().unwrap().push(name.to_string());
            }
        }

        (&mut run).await?;
        assert_eq!(seen.lock().unwrap()[0], "main");
        Ok(())
    }

    #[tokio::test]
    async fn inspect_trace_and_usage() -> Anything {
        let (_folder, project) = counter();
        let runtime = project.runtime().model("test").build()?;
        let report = runtime.run(&project.entry, "go").await?;
        let mut lines = Vec::new();

        for call in report.trace() {
            lines.push(format!("{} ({}) depth={}", call.name, call.kind, call.depth));
        }
        println!("{}", report.usage);

        assert!(lines.contains(&"count_words (tool) depth=1".to_owned()), "{lines:?}");
        assert!(report.usage.to_string().starts_with("test: 2 requests"), "{}", report.usage);
        Ok(())
    }
}
