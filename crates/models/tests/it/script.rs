//! The scripted model in code.

use std::time::Duration;

use llm_do_core::{
    AttemptCost, Message, Model, ModelError, ModelErrorKind, ModelProfile, ModelRequest, ModelSettings,
    NativeOutput, Origin, Part, StopReason, ToolCall, Usage,
};
use llm_do_models::{
    Script, ScriptedReply, asks, asks_all, asks_raw, contains, cut, fails, instructed, replies, result_of,
    says, thinks,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Talk, calls, result};

#[tokio::test]
async fn text_and_thinking_are_streamed_in_words_and_then_given_whole() {
    let model = Script::new([thinks("let me see").and(says("schöne neue Welt"))]);
    let heard = Talk::of("hello").hear(&mut *model.open()).await.unwrap();
    assert_eq!(heard.thinking, ["let ", "me ", "see"]);
    assert_eq!(heard.text, ["schöne ", "neue ", "Welt"]);

    let response = heard.end.unwrap().unwrap();
    let origin = Origin { provider: "script".into(), model: "script".into(), data: Value::Null };
    assert_eq!(response.message.parts, [Part::thinking("let me see"), Part::text("schöne neue Welt")]);
    assert_eq!(response.message.origin, Some(origin));
    assert_eq!(response.stop, StopReason::EndTurn);
}

#[tokio::test]
async fn tool_calls_are_named_by_the_length_of_the_conversation_and_their_place() {
    let reply =
        says("On it.").and(asks_all([("a", json!({"x": 1})), ("b", json!({}))])).and(asks_raw("c", "{"));
    let response = Talk::of("hello").ask(&Script::new([reply])).await;
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        raw: None,
    };
    let made: Vec<ToolCall> = response.message.tool_calls().cloned().collect();
    assert_eq!(
        made,
        [call("call_1_0", "a", r#"{"x":1}"#), call("call_1_1", "b", "{}"), call("call_1_2", "c", "{")]
    );
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[tokio::test]
async fn replies_in_order_are_given_once_over_all_calls() {
    let model = Script::new([says("one"), says("two"), says("three")]);
    let mut first = model.open();
    let talk = Talk::of("hello");
    assert_eq!(talk.hear(&mut *first).await.unwrap().text, ["one"]);
    assert_eq!(talk.text(&model).await, "two");
    assert_eq!(talk.hear(&mut *first).await.unwrap().text, ["three"]);
}

#[tokio::test]
async fn a_script_for_each_call_starts_again_in_every_call() {
    let model = Script::each_call([says("one"), says("two")]);
    let talk = Talk::of("hello");
    for mut session in [model.open(), model.open()] {
        assert_eq!(talk.hear(&mut *session).await.unwrap().text, ["one"]);
        assert_eq!(talk.hear(&mut *session).await.unwrap().text, ["two"]);
    }
}

#[tokio::test]
async fn a_script_by_turn_gives_the_same_reply_to_the_same_conversation_in_any_session() {
    let model = Script::by_turn([says("one"), says("two"), says("three")]);
    let mut session = model.open();
    let mut talk = Talk::of("hello");
    for expected in ["one", "two", "three"] {
        assert_eq!(talk.hear(&mut *session).await.unwrap().text, [expected], "warm");
        assert_eq!(talk.text(&model).await, expected, "cold");
        talk = talk.then(Message::assistant(expected)).then(Message::user("go on"));
    }
    talk.conversation.truncate(3);
    assert_eq!(talk.hear(&mut *session).await.unwrap().text, ["two"], "after going back");
}

#[tokio::test]
async fn a_reply_with_a_condition_goes_first_whenever_it_holds() {
    let model = Script::new([
        says("next"),
        says("sunny").when(contains("weather")),
        says("read").when(result_of("read_file")),
        says("both").when(instructed("You review").and(contains("who"))),
    ]);
    assert_eq!(Talk::of("the weather?").text(&model).await, "sunny");
    assert_eq!(Talk::of("the weather again?").text(&model).await, "sunny");
    assert_eq!(Talk::of("x").then(result("read_file", "data")).text(&model).await, "read");
    assert_eq!(Talk::of("x").then(result("web", "the weather")).text(&model).await, "sunny");
    assert_eq!(Talk::of("who?").instructed("You review code.").text(&model).await, "both");
    assert_eq!(Talk::of("the weather?").then(Message::user("who?")).text(&model).await, "next");
}

#[tokio::test]
async fn a_reply_with_a_condition_can_be_limited_to_one_use() {
    let model = Script::new([says("first").when(contains("x")).once(), says("then")]);
    assert_eq!(Talk::of("x").text(&model).await, "first");
    assert_eq!(Talk::of("x").text(&model).await, "then");
}

#[tokio::test]
async fn one_use_cannot_be_remembered_by_a_script_by_turn() {
    let model = Script::by_turn([says("first").when(contains("x")).once()]);
    let error = Talk::of("x").fail(&model).await;
    assert_eq!(error.kind, ModelErrorKind::Invalid);
    assert!(error.message.contains("`once`, which a script by turn cannot remember"), "{error}");
}

#[tokio::test]
async fn a_missing_reply_is_explained_to_the_author() {
    async fn exhausted(model: Script, talk: Talk) -> ModelError {
        match talk.hear(&mut *model.open()).await {
            Ok(_) => talk.fail(&model).await,
            Err(error) => error,
        }
    }

    let error = exhausted(Script::new([says("one")]), Talk::of(&"long ".repeat(40))).await;
    let start = "long ".repeat(16);
    assert_eq!(error.kind, ModelErrorKind::Invalid);
    assert_eq!(
        error.message,
        format!(
            "the script `script` has no reply for this request: 1 reply given so far; the last message begins `{start}…`"
        )
    );

    let model = Script::each_call([says("x").when(contains("y"))]).named("script:a.yaml");
    let error = exhausted(model, Talk::of("hi").then(result("read_file", "data"))).await;
    assert_eq!(
        error.message,
        "the script `script:a.yaml` has no reply for this request: 0 replies given so far in this call, \
         and its condition does not hold; the last message begins `data`, the result of `read_file`"
    );

    let model = Script::by_turn([says("one")]);
    let error =
        exhausted(model, Talk::of("hi").then(Message::assistant("one")).then(Message::user("and?"))).await;
    assert!(
        error.message.contains("this is turn 2, it has 1 reply; the last message begins `and?`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_closure_answers_from_the_request() {
    let echo = |request: &ModelRequest<'_>| {
        let last = request.conversation.messages().last().unwrap();
        says(last.text()).tokens(7, 8)
    };
    let model = Script::new([says("You said: ").and(replies(echo)).stops(StopReason::Pause)]);
    let response = Talk::of("hello").ask(&model).await;
    assert_eq!(response.message.text(), "You said: hello");
    assert_eq!((response.usage.input, response.usage.output), (7, 8));
    assert_eq!(response.stop, StopReason::Pause);
}

#[tokio::test]
async fn a_failure_alone_fails_the_request_and_after_text_the_stream() {
    let slow_down =
        || fails(ModelErrorKind::RateLimit, "slow down").retry_after(Duration::from_secs(20)).tokens(9, 0);
    let model = Script::new([slow_down(), says("half an").and(slow_down()).and(says("never said"))]);
    let talk = Talk::of("hello");

    let error = talk.fail(&model).await;
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, "slow down"));
    assert_eq!(error.retry_after, Some(Duration::from_secs(20)));
    let usage = Usage { requests: 1, input: 9, ..Usage::default() };
    assert_eq!(error.cost, AttemptCost::Known(Box::new(usage)));

    let heard = talk.hear(&mut *model.open()).await.unwrap();
    assert_eq!(heard.text, ["half ", "an"]);
    assert_eq!(heard.end, Err(error));
}

#[tokio::test]
async fn a_cut_stream_ends_without_an_answer() {
    let heard = Talk::of("hello").hear(&mut *Script::new([cut("half an")]).open()).await.unwrap();
    assert_eq!((heard.text, heard.end), (vec!["half ".to_owned(), "an".to_owned()], Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_in_the_time_of_the_runtime() {
    let minute = Duration::from_secs(60);
    let begun = Instant::now();
    let talk = Talk::of("hello");
    let reply = says("a").and(says("b").after(minute)).after(minute);
    assert_eq!(talk.text(&Script::new([reply])).await, "ab");
    assert_eq!(begun.elapsed(), 2 * minute);

    talk.fail(&Script::new([fails(ModelErrorKind::Server, "down").after(minute)])).await;
    assert_eq!(begun.elapsed(), 3 * minute);
}

#[tokio::test(start_paused = true)]
async fn a_paced_reply_waits_after_each_word() {
    let second = Duration::from_secs(1);
    let begun = Instant::now();
    let reply = thinks("so").and(says("one two three")).paced(second);
    assert_eq!(Talk::of("hello").text(&Script::new([reply])).await, "one two three");
    assert_eq!(begun.elapsed(), 4 * second);
    let from_file = Script::from_yaml("- {say: one two, pace: 1s}\n").unwrap();
    assert_eq!(Talk::of("hello").text(&from_file).await, "one two");
    assert_eq!(begun.elapsed(), 6 * second);
}

#[tokio::test]
async fn usage_is_estimated_from_the_instructions_what_is_new_and_what_is_said() {
    let reply = || thinks("12345678").and(says("1234")).and(asks("tool", json!({})));
    let model = Script::new([reply(), reply()]);
    let talk = Talk::of("12345678").instructed("1234");
    let usage = |input| Usage { requests: 1, input, output: 5, reasoning: 2, ..Usage::default() };
    assert_eq!(talk.ask(&model).await.usage, usage(3));

    // What the model has answered counts no more, in whichever session it is asked.
    let talk = talk.then(Message::assistant("a long answer")).then(result("tool", "1234"));
    assert_eq!(talk.ask(&model).await.usage, usage(3));
}

#[tokio::test]
async fn an_answer_longer_than_permitted_is_cut_with_its_reason() {
    let ask = |reply: ScriptedReply, max_output, max_tokens| async move {
        let settings = ModelSettings { max_tokens, ..ModelSettings::default() };
        Talk { max_output, settings, ..Talk::of("hello") }.ask(&Script::new([reply])).await
    };

    let response = ask(says("123456ö8"), Some(2), None).await;
    assert_eq!((response.message.text().as_str(), response.stop), ("123456ö", StopReason::MaxTokens));
    assert_eq!(response.usage.output, 2);

    let response = ask(asks("tool", json!({"path": "a"})).and(says("dropped")), Some(9), Some(2)).await;
    assert_eq!(calls(&response), [("tool".to_owned(), r#"{"pa"#.to_owned())]);
    assert_eq!((response.message.text().as_str(), response.stop), ("", StopReason::MaxTokens));

    let response = ask(says("12345678").and(asks("tool", json!({}))), Some(2), None).await;
    assert_eq!((calls(&response), response.stop), (Vec::new(), StopReason::MaxTokens));

    let response = ask(says("12345678"), Some(2), Some(2)).await;
    assert_eq!(response.stop, StopReason::EndTurn, "it fits");

    let response = ask(says("12345678").tokens(1, 99), Some(1), None).await;
    assert_eq!((response.message.text().as_str(), response.stop), ("12345678", StopReason::EndTurn));
}

#[test]
fn a_script_can_claim_another_name_and_other_abilities() {
    let profile = ModelProfile { native_output: NativeOutput::Always, ..ModelProfile::default() };
    let model = Script::new([]).named("mine").with_profile(profile.clone());
    assert_eq!(*model.name(), "mine");
    assert_eq!(model.profile(), profile);
}

#[tokio::test]
async fn a_panic_in_a_closure_does_not_spoil_the_script_for_others() {
    let model = Script::new([replies(|_| panic!("on purpose")), says("fine")]);
    let asked = model.clone();
    let panicked = tokio::spawn(async move { Talk::of("x").text(&asked).await }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!(Talk::of("x").text(&model).await, "fine");
}
