//! The test model.

use llm_do_core::{Message, Schema, StopReason};
use llm_do_models::TestModel;
use serde_json::json;

use crate::support::{Talk, calls, result};

fn offer() -> Talk {
    Talk::of("hello")
        .offering("write", json!({"type": "object", "properties": {"path": {"type": "string"}, "size": {"type": "integer"}}, "required": ["path"]}))
        .offering("list", json!({"type": "object"}))
}

fn owned(calls: &[(&str, &str)]) -> Vec<(String, String)> {
    calls.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect()
}

#[tokio::test]
async fn every_tool_is_called_once_in_order_with_minimal_arguments() {
    let response = offer().ask(&TestModel::new()).await;
    assert_eq!(calls(&response), owned(&[("write", r#"{"path":"a"}"#), ("list", "{}")]));
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[tokio::test]
async fn the_results_are_told_line_by_line() {
    let called = Message::assistant("");
    let mut results = result("write", "done");
    results.parts.extend(result("list", "a.txt").parts);
    let response = offer().then(called).then(results).ask(&TestModel::new()).await;
    assert_eq!(response.message.text(), "write: done\nlist: a.txt");
    assert_eq!((calls(&response), response.stop), (Vec::new(), StopReason::EndTurn));
}

#[tokio::test]
async fn a_new_question_in_a_chat_calls_the_tools_again() {
    let talk =
        offer().then(result("list", "a")).then(Message::assistant("list: a")).then(Message::user("again"));
    assert_eq!(calls(&talk.ask(&TestModel::new()).await).len(), 2);
}

#[tokio::test]
async fn without_tools_it_says_so() {
    assert_eq!(Talk::of("hello").text(&TestModel::new()).await, "no tools to call");
}

#[tokio::test]
async fn a_wanted_schema_is_answered_with_a_minimal_value() {
    let schema =
        Schema::new(json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}));
    let talk = Talk { output_schema: Some(schema.unwrap()), ..offer() };
    assert_eq!(calls(&talk.ask(&TestModel::new()).await).len(), 2, "the tools come first");
    assert_eq!(talk.then(result("list", "a")).text(&TestModel::new()).await, r#"{"ok":false}"#);
}

#[tokio::test]
async fn the_answer_tool_is_called_alone_and_last() {
    let schema =
        json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    let answer = owned(&[("final_answer", r#"{"answer":0}"#)]);
    let talk = offer().offering("final_answer", schema.clone());
    assert_eq!(calls(&talk.ask(&TestModel::new()).await).len(), 2);
    let talk = talk.then(result("list", "a"));
    assert_eq!(calls(&talk.ask(&TestModel::new()).await), answer);

    let alone = Talk::of("hello").offering("final_answer", schema);
    assert_eq!(calls(&alone.ask(&TestModel::new()).await), answer);

    let refused = alone.then(result("final_answer", "does not fit"));
    assert_eq!(refused.text(&TestModel::new()).await, "final_answer: does not fit");
}

#[tokio::test]
async fn echo_says_what_it_was_last_told() {
    let talk = Talk::of("first").then(Message::assistant("first")).then(Message::user("second"));
    assert_eq!(talk.text(&TestModel::echo()).await, "second");
    assert_eq!(talk.then(result("list", "a")).text(&TestModel::echo()).await, "second");
    assert_eq!(Talk::default().text(&TestModel::echo()).await, "");
}
