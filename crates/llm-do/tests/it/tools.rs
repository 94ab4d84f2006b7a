//! `#[tool]` and `#[toolset]` in a real runtime, and tools tested alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use llm_do::call::FailureKind;
use llm_do::event::Status;
use llm_do::prelude::*;
use llm_do::testing::{asks, says};
use llm_do_testing::{TestCall, TestProject, once};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

struct Library(Vec<&'static str>);

/// How to sort.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Up,
    Down,
}

/// Finds titles that contain a word.
#[tool(access = "read", approval = "pre_approved", effect = "pure")]
async fn find_titles(
    library: Need<Library>,
    /// The word.
    word: String,
    #[default(10)] limit: usize,
    order: Option<Order>,
) -> Result<Vec<String>, ToolError> {
    if word.is_empty() {
        return Err(ToolError::new("the word is empty").with_hint("name a word"));
    }
    let mut titles: Vec<String> =
        library.0.iter().filter(|title| title.contains(&word)).map(|title| (*title).to_owned()).collect();
    titles.sort();
    if matches!(order, Some(Order::Down)) {
        titles.reverse();
    }
    titles.truncate(limit);
    Ok(titles)
}

/// Counts titles, in code, through the gate.
#[tool(approval = "pre_approved", effect = "calls")]
async fn count_titles(call: CallContext, word: String) -> Result<usize, ToolError> {
    Ok(find_titles::call(&call, word, 100, None).await?.len())
}

/// Burns a title. Must ask.
#[tool]
fn burn(title: String) -> String {
    format!("burnt {title}")
}

fn library() -> Library {
    Library(vec!["Dune", "Dune Messiah", "Emma"])
}

fn project() -> TestProject {
    TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("find_titles").tool("count_titles").tool("burn"))
        .tool(find_titles)
        .tool(count_titles)
        .tool(burn)
        .runtime(|runtime| runtime.provide(library()))
}

#[tokio::test]
async fn a_function_is_a_tool_for_models_and_code_alike() {
    let run = project()
        .model_replies([
            asks("find_titles", json!({"word": "Dune", "order": "down"})),
            asks("count_titles", json!({"word": "Dune"})),
            asks("find_titles", json!({"word": ""})),
            asks("find_titles", json!({"word": "x", "order": "sideways"})),
            says("done"),
        ])
        .run("go")
        .await;
    let results = run.tool_results();
    assert_eq!(results[0], r#"["Dune Messiah","Dune"]"#);
    assert_eq!(results[1], "2");
    assert_eq!(results[2], "the word is empty\nhint: name a word");
    assert!(results[3].contains("`order`"), "{}", results[3]);
    let trace = run.report().trace();
    assert_eq!(trace.calls[0].calls[1].calls[0].name, "find_titles", "the typed caller stands in the trace");
}

#[tokio::test]
async fn a_sync_function_is_gated_and_runs_off_the_executor() {
    let run = project()
        .model_replies([asks("burn", json!({"title": "Emma"})), says("done")])
        .approvals([once()])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["burnt Emma"]);
    let run = project().model_replies([asks("burn", json!({"title": "Emma"})), says("done")]).run("go").await;
    assert_eq!(run.failure_of("burn").kind, FailureKind::Unasked);
}

#[tokio::test]
async fn a_missing_value_is_known_when_the_runtime_is_built() {
    let project = Project::builder()
        .agent(AgentSpec::new("main", "x").tool("find_titles"))
        .tool(find_titles)
        .build()
        .unwrap();
    let error = Runtime::standard(project).build().err().unwrap().to_string();
    assert!(error.contains("the tool `find_titles` needs the context value `it::tools::Library`"), "{error}");
}

#[derive(Default)]
struct Basket {
    items: std::sync::Mutex<Vec<String>>,
    closed: Arc<AtomicU32>,
}

#[toolset]
impl Basket {
    /// Puts something into the basket and counts what is in it.
    #[tool(approval = "pre_approved")]
    async fn put(&self, item: String) -> Result<usize, ToolError> {
        let mut items = self.items.lock().map_err(|_| ToolError::new("broken"))?;
        items.push(item);
        Ok(items.len())
    }

    #[close]
    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_impl_block_with_state_is_a_toolset_with_an_instance_per_call() {
    let closed = Arc::new(AtomicU32::new(0));
    let counter = closed.clone();
    let toolset =
        Basket::toolset("basket", move |_| Ok(Basket { closed: counter.clone(), ..Basket::default() }));
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("basket"))
        .toolset(toolset)
        .model(llm_do::testing::Script::each_call([
            asks("put", json!({"item": "a"})),
            asks("put", json!({"item": "b"})),
            says("done"),
        ]))
        .build();
    for _ in 0..2 {
        let report = runtime.run("main", "go").await.unwrap();
        let counts: Vec<usize> = report.trace().calls[0]
            .calls
            .iter()
            .filter_map(|call| call.output.as_ref()?.parse().ok())
            .collect();
        assert_eq!(counts, [1, 2]);
    }
    assert_eq!(closed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_tool_is_tested_alone_with_values_calls_and_approvals() {
    let found = TestCall::new().provide(library()).run(find_titles, json!({"word": "E"})).await;
    assert_eq!(&*found.text(), r#"["Emma"]"#);
    let unprovided = TestCall::new().run(find_titles, json!({"word": "E"})).await;
    assert!(unprovided.error().contains("does not provide `it::tools::Library`"));
    let invalid = TestCall::new().provide(library()).run(find_titles, json!({"wrod": "E"})).await;
    assert!(invalid.error().contains("did you mean `word`?"), "{}", invalid.error());

    let counted = TestCall::new()
        .on_call("find_titles", |_| Ok(json!(["a", "b", "c"]).into()))
        .run(count_titles, json!({"word": "x"}))
        .await;
    assert_eq!(&*counted.text(), "3");
    assert_eq!(counted.calls()[0].0, "find_titles");
    let unstubbed = TestCall::new().run(count_titles, json!({"word": "x"})).await;
    assert!(unstubbed.error().contains("add `.on_call`"), "{}", unstubbed.error());
}

/// Publishes something, asking inside.
#[tool(approval = "pre_approved")]
async fn publish(
    call: &CallContext,
    progress: Progress,
    cancellation: Cancellation,
    what: String,
) -> Result<String, ToolError> {
    progress.report("checking");
    if cancellation.is_cancelled() {
        return Err(ToolError::new("stopped"));
    }
    let allowed = call.approve("publish.push", json!({ "what": what }), "it is ready").await?;
    Ok(format!("published {}", allowed.value()["what"]))
}

#[tokio::test]
async fn inner_effects_progress_and_cancellation_are_seen_by_a_test() {
    let done = TestCall::new().allow("publish.push").run(publish, json!({"what": "book"})).await;
    assert_eq!(&*done.text(), "published \"book\"");
    assert_eq!(done.approvals()[0].reason, "it is ready");
    assert_eq!(done.remarks().len(), 1);
    let denied =
        TestCall::new().deny("publish.push", "too early").run(publish, json!({"what": "book"})).await;
    assert_eq!(denied.error(), "denied: too early");
    let stopped = TestCall::new().cancelled().run(publish, json!({"what": "book"})).await;
    assert_eq!(stopped.error(), "stopped");
}

#[test]
fn a_program_that_is_not_async_runs_to_the_end() {
    let project = Project::builder().agent(AgentSpec::new("main", "x").model("test:echo")).build().unwrap();
    let runtime = Runtime::standard(project).build().unwrap();
    let report = runtime.run("main", "hello").blocking().unwrap();
    assert_eq!((&*report.text(), report.status), ("hello", Status::Done));
}

#[test]
fn an_unknown_model_is_an_error_that_names_the_known_ones() {
    let project =
        Project::builder().agent(AgentSpec::new("main", "x").model("scirpt:a.yaml")).build().unwrap();
    let error = Runtime::standard(project).build().unwrap().run("main", "hello").blocking().unwrap_err();
    assert_eq!(error.status(), Status::Provider);
    assert!(error.to_string().contains("script"), "{error}");
}
