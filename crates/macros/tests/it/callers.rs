//! Calling tools from Rust by their signature.

use std::sync::Arc;

use llm_do_core::{
    Attachment, CallContext, Context, FailureKind, FromCall, MissingNeed, Need, Output, ToolError, ToolReply,
};
use llm_do_macros::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fake::Fake;

struct Unit(&'static str);

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Size {
    width: u32,
    height: u32,
}

/// Describes a size.
#[tool]
async fn describe(
    unit: Need<Unit>,
    call: &CallContext,
    name: String,
    size: Size,
    #[default(1)] scale: u32,
    note: Option<String>,
) -> Result<Vec<String>, ToolError> {
    if size.width == 0 {
        return Err(ToolError::new("too flat"));
    }
    let line = format!("{name}: {}x{} {}", size.width * scale, size.height * scale, unit.0);
    Ok([Some(line), note, Some(call.path().to_owned())].into_iter().flatten().collect())
}

fn size(width: u32) -> Size {
    Size { width, height: 2 }
}

fn runtime() -> Arc<Fake> {
    Arc::new(Fake::with([describe.into()]).providing(Context::default().with(Unit("cm"))))
}

#[tokio::test]
async fn a_typed_call_goes_by_name_through_the_runtime_and_gives_the_type_of_the_function() {
    let fake = runtime();
    let lines = describe::call(&fake.call_context(), "box", size(3), 10, None).await.unwrap();
    assert_eq!(lines, ["box: 30x20 cm", "main"]);
    let arguments = json!({"name": "box", "size": {"width": 3, "height": 2}, "scale": 10});
    assert_eq!(fake.calls(), [("describe".into(), arguments)]);
}

#[tokio::test]
async fn an_error_of_the_tool_is_a_failure_of_the_call() {
    let failure = describe::call(&runtime().call_context(), "box", size(0), 1, None).await.unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::Tool, "too flat"));
}

#[tokio::test]
async fn a_typed_call_of_a_tool_that_is_not_offered_is_a_failure() {
    let fake = Arc::new(Fake::default());
    let failure = describe::call(&fake.call_context(), "box", size(1), 1, None).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unknown);
}

struct CallPath(String);

impl FromCall for CallPath {
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(Self(call.path().to_owned()))
    }
}

/// Has extractors of its own: one is marked, the other is not.
#[tool]
async fn locate(#[inject] marked: CallPath, unmarked: CallPath, call: String) -> String {
    format!("{} {} {call}", marked.0, unmarked.0)
}

#[tokio::test]
async fn a_marked_extractor_is_left_out_and_an_unmarked_one_is_ignored() {
    let fake = Arc::new(Fake::with([locate.into()]));
    let text = locate::call(&fake.call_context(), CallPath("ignored".into()), "x").await.unwrap();
    assert_eq!(text, "main main x");
    assert_eq!(fake.calls(), [("locate".into(), json!({"call": "x"}))]);
}

/// Does something.
#[tool]
fn act() {}

/// Gives an image.
#[tool]
async fn draw() -> ToolReply {
    Ok(Output::text("see").with_attachment(Attachment::path("a.png")))
}

/// Gives text that looks like a number.
#[tool]
async fn name_it() -> &'static str {
    "42"
}

type Checked<T> = Result<T, std::fmt::Error>;

/// Returns a result by another name.
#[tool]
async fn check() -> Checked<u32> {
    Ok(7)
}

#[tokio::test]
async fn every_kind_of_result_is_read_back() {
    let fake = Arc::new(Fake::with([act.into(), draw.into(), name_it.into(), check.into()]));
    let call = fake.call_context();
    act::call(&call).await.unwrap();
    assert_eq!(draw::call(&call).await.unwrap().attachments, [Attachment::path("a.png")]);
    assert_eq!(name_it::call(&call).await.unwrap(), "42");
    assert_eq!(check::call(&call).await.unwrap(), Ok(7));
}

/// Sums up, by calling itself.
#[tool]
async fn sum(call: CallContext, numbers: Vec<u32>) -> Result<u32, ToolError> {
    match numbers.split_first() {
        Some((first, rest)) => Ok(first + sum::call(&call, rest.to_vec()).await?),
        None => Ok(0),
    }
}

#[tokio::test]
async fn a_tool_can_call_itself() {
    let fake = Arc::new(Fake::with([sum.into()]));
    assert_eq!(sum::call(&fake.call_context(), vec![1, 2, 3]).await.unwrap(), 6);
    assert_eq!(fake.calls().len(), 4);
}
