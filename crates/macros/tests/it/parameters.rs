//! Where the parameters of a tool come from.

use std::sync::Arc;

use llm_do_core::{
    Approved, CallContext, Cancellation, Context, FromCall, MissingNeed, Need, NeedSpec, Progress, Remark,
    Tool,
};
use llm_do_macros::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fake::{Fake, approved, run};

struct Greeting(&'static str);

/// Greets somebody.
#[tool]
async fn greet(
    greeting: Need<Greeting>,
    name: String,
    #[default(1)] times: u32,
    suffix: Option<String>,
) -> String {
    let suffix = suffix.unwrap_or_else(|| "!".into());
    format!("{} {name}{suffix}", vec![greeting.0; times as usize].join(" "))
}

fn with_greeting() -> CallContext {
    Arc::new(Fake::default().providing(Context::default().with(Greeting("hello")))).call_context()
}

#[tokio::test]
async fn a_tool_gets_what_the_model_gives_and_what_it_needs() {
    let arguments = json!({"name": "Ann", "times": 2, "suffix": "?"});
    let reply = run(&greet, arguments, &with_greeting()).await.unwrap();
    assert_eq!(&*reply.to_text(), "hello hello Ann?");
}

#[tokio::test]
async fn what_is_left_out_has_its_default() {
    let reply = run(&greet, json!({"name": "Ann"}), &with_greeting()).await.unwrap();
    assert_eq!(&*reply.to_text(), "hello Ann!");
}

#[tokio::test]
async fn a_missing_context_value_is_an_error_that_says_how_to_provide_it() {
    let call = Arc::new(Fake::default()).call_context();
    let error = run(&greet, json!({"name": "Ann"}), &call).await.unwrap_err().to_string();
    assert!(error.contains("Greeting` is missing: add `.provide(value)`"), "{error}");
}

#[tokio::test]
async fn an_argument_that_does_not_fit_is_named() {
    let error = run(&greet, json!({"name": 1}), &with_greeting()).await.unwrap_err().to_string();
    assert_eq!(error, "`name`: invalid type: integer `1`, expected a string");
    let error = run(&greet, json!({}), &with_greeting()).await.unwrap_err().to_string();
    assert_eq!(error, "`name`: a value is required");
}

/// Uses everything that a call offers.
#[tool]
async fn use_everything(
    call: &CallContext,
    owned: CallContext,
    cancellation: Cancellation,
    progress: &Progress,
    absent: Option<Need<Greeting>>,
    approved: Approved,
) -> String {
    progress.report("half way");
    assert!(!cancellation.is_cancelled());
    assert!(absent.is_none());
    assert_eq!(call.key(), owned.key());
    format!("{} {:?}", approved.payload().text(), approved.precondition())
}

#[tokio::test]
async fn built_in_parameters_are_injected_and_hidden() {
    assert_eq!(use_everything.definition().input, llm_do_core::Schema::empty());
    assert_eq!(use_everything.definition().needs, []);

    let fake = Arc::new(Fake::default());
    let reply =
        use_everything.run(approved(json!({}), Some(json!("digest"))), &fake.call_context()).await.unwrap();
    assert_eq!(&*reply.to_text(), "{} Some(String(\"digest\"))");
    assert_eq!(fake.remarks(), [Remark::Progress("half way".into())]);
}

/// An extractor, which could be taken from the model as well.
#[derive(Serialize, Deserialize, JsonSchema)]
struct CallPath(String);

impl FromCall for CallPath {
    fn needs(out: &mut Vec<NeedSpec>) {
        out.push(NeedSpec::named("path"));
    }

    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(Self(call.path().to_owned()))
    }
}

type Path = CallPath;
type Hello = Need<Greeting>;

/// Says where it is.
#[tool]
async fn locate(path: Path, hello: Hello, #[inject] marked: &Path, depth: u32) -> String {
    format!("{} {} {} {depth}", path.0, hello.0, marked.0)
}

#[tokio::test]
async fn aliases_and_own_extractors_are_injected_by_their_type() {
    let definition = locate.definition();
    assert_eq!(definition.input.source()["required"], json!(["depth"]));
    let labels: Vec<_> = definition.needs.iter().map(NeedSpec::label).collect();
    assert_eq!(labels, ["path", "it::parameters::Greeting"], "each is named once");

    let reply = run(&locate, json!({"depth": 3}), &with_greeting()).await.unwrap();
    assert_eq!(&*reply.to_text(), "main hello main 3");
}

type Maybe = Option<u32>;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    High,
}

const LIMIT: u64 = 5_000_000_000;

/// Has defaults of many kinds.
#[tool]
#[expect(clippy::too_many_arguments, reason = "shows every kind of default")]
async fn use_defaults(
    maybe: Maybe,
    #[default(-1)] number: i64,
    #[default(5_000_000_000)] large: Option<u64>,
    #[default(LIMIT * 2)] larger: u64,
    #[default(0.5)] share: f32,
    #[default("text")] text: String,
    #[default(Level::High)] level: String,
    #[default(true)] flag: bool,
) -> String {
    format!("{maybe:?} {number} {large:?} {larger} {share} {text} {level} {flag}")
}

#[tokio::test]
async fn a_default_is_any_value_that_can_be_written() {
    let call = Arc::new(Fake::default()).call_context();
    let input = &use_defaults.definition().input;
    let completed = input.accept(json!({})).unwrap().value;
    let expected = "None -1 Some(5000000000) 10000000000 0.5 text high true";
    for arguments in [json!({}), completed] {
        let reply = run(&use_defaults, arguments, &call).await.unwrap();
        assert_eq!(&*reply.to_text(), expected);
    }
}

/// Takes what only a keyword can name, and changes it.
#[tool]
async fn use_keyword(mut r#type: String) -> String {
    r#type.push('!');
    r#type
}

#[tokio::test]
async fn a_raw_name_is_a_plain_key() {
    let call = Arc::new(Fake::default()).call_context();
    let reply = run(&use_keyword, json!({"type": "file"}), &call).await.unwrap();
    assert_eq!(&*reply.to_text(), "file!");
}

#[tokio::test]
async fn the_function_itself_can_be_tested_without_a_runtime() {
    let greeting = greet::direct(Need::new(Greeting("hi")), "Bob".into(), 1, None).await;
    assert_eq!(greeting, "hi Bob!");
}
