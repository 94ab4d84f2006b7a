//! What a tool answers.

use std::io;
use std::sync::Arc;
use std::thread;

use llm_do_core::{Attachment, Output, ToolError, ToolReply};
use llm_do_macros::tool;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fake::{Fake, answer, run};

/// Gives text.
#[tool]
async fn give_text() -> String {
    "owned".into()
}

/// Gives static text.
#[tool]
async fn give_static_text() -> &'static str {
    "static"
}

/// Gives nothing.
#[tool]
async fn give_nothing() {}

/// Gives an output.
#[tool]
async fn give_output() -> ToolReply {
    Ok(Output::text("see").with_attachment(Attachment::path("a.png")))
}

#[derive(Serialize)]
struct Pair {
    left: u32,
    right: Option<u32>,
}

/// Gives a structure.
#[tool(no_caller)]
async fn give_structure() -> Result<Pair, ToolError> {
    Ok(Pair { left: 1, right: None })
}

/// Gives a value.
#[tool]
async fn give_value() -> Value {
    json!([1, "two"])
}

#[tokio::test]
async fn text_is_answered_as_text_and_a_structure_as_json() {
    assert_eq!(answer(give_text).await.unwrap(), Output::text("owned"));
    assert_eq!(answer(give_static_text).await.unwrap(), Output::text("static"));
    assert_eq!(answer(give_structure).await.unwrap(), Output::json(json!({"left": 1, "right": null})));
    assert_eq!(answer(give_value).await.unwrap(), Output::json(json!([1, "two"])));
}

#[tokio::test]
async fn an_output_keeps_its_attachments() {
    let expected = Output::text("see").with_attachment(Attachment::path("a.png"));
    assert_eq!(answer(give_output).await.unwrap(), expected);
}

#[tokio::test]
async fn a_tool_that_returns_nothing_says_that_it_is_done() {
    assert_eq!(answer(give_nothing).await.unwrap(), Output::text("done"));
}

/// Fails with an error of a tool.
#[tool]
async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("no such table").with_hint("try `users`"))
}

/// Fails with an error of the standard library.
#[tool]
fn fail_to_read() -> io::Result<String> {
    Err(io::Error::other("disk on fire"))
}

type Parsed = Result<u32, std::num::ParseIntError>;

/// Fails with an error behind an alias.
#[tool]
async fn fail_to_parse() -> Parsed {
    "x".parse()
}

#[tokio::test]
async fn every_error_is_an_answer() {
    assert_eq!(answer(fail).await.unwrap_err().to_string(), "no such table\nhint: try `users`");
    assert_eq!(answer(fail_to_read).await.unwrap_err().to_string(), "disk on fire");
    assert_eq!(answer(fail_to_parse).await.unwrap_err().to_string(), "invalid digit found in string");
}

/// Blocks for a while.
#[tool]
fn block(call: &llm_do_core::CallContext, text: String) -> String {
    format!("{text} {:?} {}", thread::current().id(), call.path())
}

#[tokio::test]
async fn a_sync_function_runs_on_a_thread_for_blocking_code() {
    let fake = Arc::new(Fake::default());
    let reply = run(&block, json!({"text": "on"}), &fake.call_context()).await.unwrap();
    let [thread] = fake.blocking_threads()[..] else { panic!("one blocking call") };
    assert_ne!(thread, thread::current().id());
    assert_eq!(&*reply.to_text(), format!("on {thread:?} main"));
}
