//! The Rust code of the guide. Every block of the pages below is a part of this file, so it compiles and runs.

#![allow(dead_code, unused_variables, reason = "snippets show more than they use")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use llm_do::model::{
    Message, Model, ModelError, ModelPart, ModelRequest, ModelResponse, ModelSession, ModelStream, StopReason,
};
use llm_do::prelude::*;
use llm_do::record::{Record, RunFilter};
use llm_do::tools::{Filesystem, FilesystemSettings, Protected, Toolset};
use llm_do::usage::Usage;
use llm_do::{Payload, RunReport};
use llm_do_testing::{TestCall, TestProject, deny};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) type Anything = Result<(), Box<dyn std::error::Error>>;

const PAGES: [(&str, &str); 7] = [
    ("README.md", include_str!("../../../../README.md")),
    ("embedding.md", include_str!("../../../../docs/guide/embedding.md")),
    ("files.md", include_str!("../../../../docs/guide/files.md")),
    ("typed-input.md", include_str!("../../../../docs/guide/typed-input.md")),
    ("tools.md", include_str!("../../../../docs/guide/tools.md")),
    ("recording.md", include_str!("../../../../docs/guide/recording.md")),
    ("testing.md", include_str!("../../../../docs/guide/testing.md")),
];

#[test]
fn every_rust_block_of_the_guide_is_code_of_this_file() {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let source = lines(include_str!("guide.rs"));
    let mut blocks = 0;
    for (page, text) in PAGES {
        for block in text.split("```rust\n").skip(1) {
            let block = lines(block.split("```").next().unwrap());
            assert!(
                source.windows(block.len()).any(|window| window == block),
                "{page}: this block is not in guide.rs:\n{}",
                block.join("\n")
            );
            blocks += 1;
        }
    }
    assert!(blocks > 25, "{blocks}");
}

#[tokio::test]
async fn the_program_of_the_readme_runs() -> Anything {
    use llm_do::prelude::*;

    /// Counts the words of a text.
    #[tool(access = "read", approval = "pre_approved", effect = "pure")]
    fn count_words(text: String) -> usize {
        text.split_whitespace().count()
    }

    let main = AgentSpec::new("main", "Use `count_words`.").tool("count_words").model("test");
    let project = Project::builder().agent(main).tool(count_words).build()?;
    let runtime = Runtime::standard(project).build()?;
    let report = runtime.run("main", "How long is this?").await?;
    println!("{}\n{}", report.text(), report.trace());
    assert!(report.trace().iter().any(|call| call.name == "count_words"));
    Ok(())
}

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

/// Deletes a file.
#[tool]
fn delete_file(name: String) -> String {
    format!("deleted {name}")
}

struct Notes(Vec<String>);

/// Finds notes that contain a text.
#[tool(access = "read", approval = "pre_approved", effect = "pure", time_limit = "30s")]
async fn find_notes(
    notes: Need<Notes>,
    /// The text.
    text: String,
    #[default(20)] limit: usize,
) -> Result<Vec<String>, ToolError> {
    if text.is_empty() {
        return Err(ToolError::new("the text is empty").with_hint("name a word"));
    }
    Ok(notes.0.iter().filter(|note| note.contains(&text)).take(limit).cloned().collect())
}

#[derive(Default)]
struct Counter(AtomicU32);

#[toolset]
impl Counter {
    /// Adds to the count and returns it.
    #[tool(approval = "pre_approved")]
    async fn add(&self, #[default(1)] amount: u32) -> u32 {
        self.0.fetch_add(amount, Ordering::SeqCst) + amount
    }

    #[close]
    async fn close(&self) {
        println!("counted to {}", self.0.load(Ordering::SeqCst));
    }
}

fn notebook() -> impl Toolset {
    Counter::toolset("notebook", |_opening| Ok(Counter::default()))
}

#[derive(Serialize, Deserialize, JsonSchema)] // of serde and schemars
struct PitchInput {
    /// The name of the company.
    company: String,
    deck: Option<String>,
}

impl AgentArgs for PitchInput {
    fn prompt_messages(&self) -> Vec<InputPart> {
        let text = format!("Evaluate the pitch of {}.", self.company);
        let deck = self.deck.iter().map(|path| Attachment::path(path).into());
        std::iter::once(text.into()).chain(deck).collect()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Score {
    points: u8,
}

fn a_week() -> u32 {
    7
}

#[derive(Deserialize, JsonSchema)]
struct PlanInput {
    /// What to learn.
    topic: String,
    #[serde(default = "a_week")]
    days: u32,
}

impl AgentArgs for PlanInput {
    fn prompt_messages(&self) -> Vec<InputPart> {
        vec![format!("Make a plan of {} days for learning {}.", self.days, self.topic).into()]
    }
}

fn approve(request: ApprovalRequest) -> Answer {
    match request.name.as_str() {
        "read_file" => Answer::Session(Scope::Exact), // do not ask again for the same call
        "delete_file" => Answer::Deny("not today".into()),
        _ => Answer::Once,
    }
}

struct Counting(llm_do::value::Name);

impl Model for Counting {
    fn name(&self) -> &llm_do::value::Name {
        &self.0
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(CountingSession)
    }
}

struct CountingSession;

impl ModelSession for CountingSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let text = format!("{} messages", request.conversation.messages().len());
        let response = ModelResponse::new(Message::assistant(text), StopReason::EndTurn, Usage::default());
        Box::pin(async move { Ok(stream::iter([Ok(ModelPart::Finished(response))]).boxed()) })
    }
}

/// A project with one agent that answers with its input.
fn echo() -> Project {
    Project::builder().agent(AgentSpec::new("main", "x").model("test:echo")).build().unwrap()
}

#[tokio::test]
async fn five_lines() -> Anything {
    let main = AgentSpec::new("main", "Answer briefly.").model("test:echo");
    let project = Project::builder().agent(main).build()?;
    let runtime = Runtime::standard(project).build()?;
    let report = runtime.run("main", "hello").await?;
    println!("{}", report.text());

    assert_eq!(&*report.text(), "hello");
    Ok(())
}

/// Only compiled: the project is the reader's own. `embedding.rs` runs the same with files.
async fn files_and_tools() -> Anything {
    let project = llm_do::loader("hello").tool(count_words).toolset(notebook()).load()?;
    let runtime = project.runtime().build()?;
    let report = runtime.run(&project.entry, "How long is README.md?").await?;
    println!("{}", report.text());
    Ok(())
}

#[test]
fn built_in_toolsets() -> Anything {
    let main = AgentSpec::new("main", "You keep notes.")
        .toolset_with("filesystem_project", json!({"read_only": true}))
        .tool("calculator");
    let project = Project::builder().agent(main).builtins(".").build()?;
    Ok(())
}

#[tokio::test]
async fn typed_input() -> Anything {
    let evaluator =
        AgentSpec::new("evaluator", "You evaluate pitches.").input_of::<PitchInput>().output_of::<Score>();
    let project = Project::builder().agent(evaluator).build()?;
    let runtime = Runtime::standard(project).model("test").build()?;
    let report = runtime.run("evaluator", PitchInput { company: "Night Ferry".into(), deck: None }).await?;
    let score: Score = report.parse()?;
    println!("{} points", score.points);

    let schema = llm_do::value::Schema::for_type::<PitchInput>()?;
    let evaluator =
        AgentSpec::new("evaluator", "You evaluate pitches.").input(schema).prompt("Pitch of {{ company }}");
    Project::builder().agent(evaluator).build()?;

    let planner = AgentSpec::new("planner", "You make plans. One step per day.").input_of::<PlanInput>();
    let project = Project::builder().agent(planner).build()?;
    let runtime = Runtime::standard(project).model("test:echo").build()?;
    let report = runtime.run("planner", json!({"topic": "Rust"})).await?;
    assert_eq!(&*report.text(), "Make a plan of 7 days for learning Rust.");
    Ok(())
}

#[tokio::test]
async fn entries() -> Anything {
    let start = EntrySpec::new("start", "Greets", |input: PromptInput, call: CallContext| async move {
        let greeting = call.call("greeter", input.input.as_str()).await?;
        Ok(format!("{greeting}!"))
    })?;

    let greeter = AgentSpec::new("greeter", "x").model("test:echo");
    let project = Project::builder().agent(greeter).entry(start).build()?;
    let report = Runtime::standard(project).build()?.run("start", "hello").await?;
    assert_eq!(&*report.text(), "hello!");
    Ok(())
}

/// Only compiled: there is no photo.
async fn options_of_a_run(runtime: Runtime, earlier: RunReport) -> Anything {
    let report = runtime
        .run("main", "look at this")
        .attach(Attachment::path("photo.png"))
        .entry_model("test") // for the agent that is run, whatever it names
        .model("test:echo") // for agents that name none
        .fallback_model("test")
        .limits(Limits { turns: Some(20), tokens: Some(50_000), ..Limits::default() })
        .timeout(Duration::from_secs(90)) // wall time
        .approver(|request: ApprovalRequest| Answer::Deny(format!("not {}", request.name)))
        .on_event(|event| eprintln!("{}", event.call.path))
        .messages(earlier.messages.clone()) // continues an earlier run
        .await?;
    Ok(())
}

#[tokio::test]
async fn events_and_trace() -> Anything {
    let runtime = Runtime::standard(echo()).build()?;
    use llm_do::event::EventBody;

    let run = runtime.run("main", "hello").start();
    let mut events = run.events();
    while let Some(event) = events.next().await {
        match &event.body {
            EventBody::CallStarted { kind, name, .. } => println!("{kind} {name} starts"),
            EventBody::CallFinished { name, result, .. } => println!("{name}: {result}"),
            EventBody::TextDelta(delta) => print!("{}", delta.text),
            _ => {}
        }
    }
    let report = run.await?;

    for call in report.trace() {
        println!("{} ({}) depth={}", call.name, call.kind, call.depth);
        println!("  {} -> {:?}", call.input, call.output.map(|output| output.to_string()));
    }
    println!("{}", report.usage); // one line per model; `report.usage.total()` is the sum
    Ok(())
}

#[tokio::test]
async fn approvals() -> Anything {
    let cleaner =
        AgentSpec::new("cleaner", "You tidy up.").tool("delete_file").rule("delete_*", Approval::Blocked);
    let project = Project::builder().agent(cleaner).tool(delete_file).build()?;
    let runtime = Runtime::standard(project).approver(approve).build()?;
    let allowed = runtime.approve("deploy.push", json!({"to": "live"})).reason("the build is green").await?;
    assert_eq!(allowed.text(), r#"{"to":"live"}"#);

    let controller = ApprovalController::builder()
        .rule("sandbox.read", Approval::PreApproved)
        .approver(approve)
        .build()?;
    let payload = json!({"path": "out.txt"});
    let written =
        controller.maybe_run("sandbox.write", payload, |allowed| format!("wrote {allowed}")).await?;
    assert_eq!(written, r#"wrote {"path":"out.txt"}"#);
    Ok(())
}

#[tokio::test]
async fn sessions() -> Anything {
    let runtime = Runtime::standard(echo()).build()?;
    let mut session = runtime.session("main");
    session.send("My name is Ann.").await?;
    session.send("What is my name?").await?; // the agent remembers

    let mut aside = session.fork().await; // shares the messages so far, and goes its own way
    aside.send("What rhymes with it?").await?;
    let dropped = session.go_back(2).await?; // drops turn 2 and what came after it: "What is my name?"
    session.use_model(Some("test:echo".into())).await;
    session.send("And how long is it?").await?;
    aside.close().await;
    session.close().await;
    Ok(())
}

/// Only compiled: `resume.rs` of the runtime crashes runs and resumes them.
async fn resuming(project: Project, run_id: llm_do::event::RunId) -> Anything {
    let store = Arc::new(Record::open("runs.db")?);
    let runtime = Runtime::standard(project).store(store).build()?;
    let report = runtime.resume(run_id).await?.await?;
    Ok(())
}

/// What `restarted.rs` does in a process that is started again.
pub(crate) async fn resuming_all(project: Project) -> Anything {
    let store = Arc::new(Record::open("runs.db")?);
    let runtime = Runtime::standard(project).store(store.clone()).build()?;
    for run in store.reader()?.runs(&RunFilter { status: Some("cut_off".into()), ..RunFilter::default() })? {
        let report = runtime.resume(run.id).await?.await?;
        println!("{}: {}", run.id, report.text());
    }
    Ok(())
}

fn push(allowed: &Payload) -> Result<(), ToolError> {
    Ok(())
}

/// Pushes a build.
#[tool(approval = "pre_approved", effect = "once")]
async fn deploy(call: CallContext) -> Result<String, ToolError> {
    let allowed = call.approve("deploy.push", json!({"to": "live"}), "the build is green").await?;
    push(&allowed)?; // a person may have edited it: use what was allowed
    Ok("pushed".to_owned())
}

#[tokio::test]
async fn tools_alone_and_toolsets() -> Anything {
    let counter = Counter::toolset("counter", |_opening| Ok(Counter::default()));
    Project::builder().agent(AgentSpec::new("main", "x").toolset("counter")).toolset(counter).build()?;

    let reply = TestCall::new()
        .provide(Notes(vec!["the night ferry".into()]))
        .on_call("namer", |_| Ok("better.txt".into()))
        .allow("deploy.push")
        .run(find_notes, json!({"text": "ferry"}))
        .await;
    assert_eq!(&*reply.text(), r#"["the night ferry"]"#);
    Ok(())
}

#[tokio::test]
async fn scripted_models() -> Anything {
    let main = AgentSpec::new("main", "You are an editor.").toolset("critic");
    let critic = AgentSpec::new("critic", "You are a critic.");
    let project = Project::builder().agent(main).agent(critic).build()?;
    use llm_do::testing::{Script, asks, instructed, says};

    let script = Script::new([
        says("Fine.").when(instructed("You are a critic")),
        asks("critic", json!({"input": "How is it?"})),
        says("Saved."),
    ]);
    let runtime = Runtime::standard(project).model(script).build()?;
    let report = runtime.run("main", "Write it").await?;
    assert_eq!(&*report.text(), "Saved.");

    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You tidy up.").tool("delete_note"))
        .tool(delete_note)
        .model_replies([asks("delete_note", json!({"name": "old"})), says("Left it alone.")])
        .approvals([deny("still needed")])
        .run("tidy up")
        .await;
    assert_eq!(&*run.answer(), "Left it alone.");
    assert_eq!(run.tool_results(), ["denied: still needed"]);
    Ok(())
}

/// Only compiled: the project is the reader's own. `embedding.rs` runs the same with files.
async fn tests_of_files() -> Anything {
    use llm_do::testing::{asks, says};
    let loaded = llm_do::loader("hello").tool(count_words).load()?;
    let run = TestProject::from_project(loaded.project.clone(), loaded.entry.as_str())
        .runtime(move |runtime| loaded.configure(runtime))
        .model_replies([asks("count_words", json!({"text": "a b"})), says("Two.")])
        .run("How many words?")
        .await;
    Ok(())
}

#[test]
fn files_in_rust() -> Anything {
    let settings =
        FilesystemSettings { root: "src".into(), suffixes: vec![".md".into()], ..Default::default() };
    let files = Filesystem::new("files", ".", settings)?.protect(&Protected::new(["tools.py"]))?;
    let main = AgentSpec::new("main", "You keep notes.").toolset("files");
    let project = Project::builder().toolset(files).agent(main).build()?;
    Ok(())
}

#[tokio::test]
async fn a_model_of_ones_own() -> Anything {
    let project = Project::builder().agent(AgentSpec::new("main", "x")).build()?;
    let runtime = Runtime::standard(project).model(Counting("counting".into())).build()?;
    assert_eq!(&*runtime.run("main", "hello").await?.text(), "1 messages");
    Ok(())
}
