//! Requests to models by name hold nothing that the provider refuses: thinking, sampling, limits, and what an earlier
//! model of the conversation left behind.

use llm_do_core::{
    Attachment, Effort, Message, ModelSettings, Origin, Part, ProviderBlock, Role, ServerTool, Thinking,
    ToolCall, ToolChoice, ToolResult,
};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::{Encoded, Encoder, RequestTarget};
use super::conversations::{next_message, raw_mut};
use super::read_request::list;
use super::requests::{Asked, body, call, encoded, provider, result, values_of};
use super::{Numbers, times};
use crate::profiles::{profile_of, rules_of};
use crate::provider::built_in;

/// Returns the target of a model as users name it.
fn named(name: &str) -> RequestTarget {
    let (provider, model) = name.split_once(':').unwrap();
    let protocol = built_in(provider).unwrap().protocol;
    let profile = profile_of(protocol, provider, model, &[]);
    let rules = rules_of(protocol, provider, model);
    let api = Api::from_protocol(protocol).unwrap();
    RequestTarget { api, provider: provider.to_owned(), model: model.to_owned(), profile, rules }
}

fn send(name: &str, asked: &Asked) -> (Value, Vec<String>) {
    let encoded: Encoded = encoded(named(name), asked);
    (body(&encoded), encoded.notices)
}

fn hello() -> Asked {
    Asked::of([Message::user("hi")])
}

fn with(set: impl FnOnce(&mut ModelSettings)) -> Asked {
    hello().set(set)
}

/// A message that a model wrote, with the blocks of its provider.
fn by(name: &str, parts: Vec<Part>) -> Message {
    let (provider, model) = name.split_once(':').unwrap();
    let origin = Origin { provider: provider.into(), model: model.into(), data: Value::Null };
    Message { role: Role::Assistant, parts, origin: Some(origin) }
}

fn block(provider: &str, value: Value) -> ProviderBlock {
    ProviderBlock { provider: provider.into(), value }
}

fn signed_call(provider: &str, id: &str, raw: Value) -> Part {
    Part::ToolCall(ToolCall { raw: Some(block(provider, raw)), ..call(id, "f", "{}") })
}

fn loop_of(answer: Message) -> Asked {
    let results: Vec<ToolResult> = answer.tool_calls().map(|call| result(&call.id, "f", "1")).collect();
    let mut asked = Asked::of([Message::user("?"), answer, Message::results(results)]).with_tool();
    asked.settings.cache = Some(false);
    asked
}

// ---- What an earlier model left behind.

fn answer_of_gpt_5() -> Message {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hi", "annotations": []}]});
    let function = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
        "arguments": "{}", "status": "completed"});
    by(
        "openai:gpt-5",
        vec![
            Part::Opaque(block("openai", reasoning)),
            Part::Opaque(block("openai", search)),
            Part::Text { text: "Hi".into(), raw: Some(block("openai", said)) },
            signed_call("openai", "c1", function),
        ],
    )
}

#[test]
fn reasoning_items_and_their_ids_reach_only_models_that_reason() {
    for name in ["openai:gpt-5", "openai:gpt-5-mini", "openai:o3", "openai:gpt-5.6-sol"] {
        let items = send(name, &loop_of(answer_of_gpt_5())).0["input"].take();
        assert_eq!(items[1]["encrypted_content"], "x", "{name}");
        assert_eq!([&items[3]["id"], &items[4]["id"]], ["msg_1", "fc_1"], "{name}");
    }
    for name in ["openai:gpt-4.1", "openai:gpt-4o-mini", "openai:gpt-5-chat-latest"] {
        let items = send(name, &loop_of(answer_of_gpt_5())).0["input"].take();
        let kinds: Vec<&Value> = list(&items).map(|item| &item["type"]).collect();
        assert_eq!(kinds, ["message", "message", "function_call", "function_call_output"], "{name}");
        assert_eq!(values_of(&items, "id"), Vec::<String>::new(), "{name}");
        assert_eq!(items[1]["content"][0]["text"], "Hi", "{name}");
    }
}

#[test]
fn a_model_gets_its_own_items_back_although_it_does_not_reason() {
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hi", "annotations": [{"url": "u"}]}]});
    let parts = vec![Part::Text { text: "Hi".into(), raw: Some(block("openai", said.clone())) }];
    let asked = Asked::of([Message::user("?"), by("openai:gpt-4.1", parts), Message::user("!")]);
    assert_eq!(send("openai:gpt-4.1", &asked).0["input"][1], said);
}

#[test]
fn thinking_of_a_chat_host_goes_back_to_the_model_that_thought() {
    let thought = |provider: &str, value: Value| Part::Thinking {
        text: "Hm.".into(),
        signature: None,
        raw: Some(block(provider, value)),
    };
    for (from, value, to, is_kept) in [
        ("groq:openai/gpt-oss-120b", json!({"reasoning": "Hm."}), "groq:openai/gpt-oss-120b", true),
        ("groq:openai/gpt-oss-120b", json!({"reasoning": "Hm."}), "groq:llama-3.3-70b-versatile", false),
        ("xai:grok-3-mini", json!({"reasoning_content": "Hm."}), "xai:grok-3", false),
        ("openrouter:openai/gpt-5", json!({"reasoning_details": [{}]}), "openrouter:openai/gpt-4.1", false),
        ("openrouter:openai/gpt-5", json!({"reasoning_details": [{}]}), "openrouter:openai/gpt-5", true),
        ("deepseek:deepseek-reasoner", json!({"reasoning_content": "Hm."}), "deepseek:deepseek-chat", false),
        (
            "deepseek:deepseek-reasoner",
            json!({"reasoning_content": "Hm."}),
            "deepseek:deepseek-reasoner",
            true,
        ),
        ("vllm:deepseek-r1", json!({"reasoning_content": "Hm."}), "vllm:deepseek-r1", false),
    ] {
        let (provider, _) = from.split_once(':').unwrap();
        let parts = vec![thought(provider, value.clone()), Part::text("Yes.")];
        let asked = Asked::of([Message::user("?"), by(from, parts), Message::user("!")]);
        let message = send(to, &asked).0["messages"][1].take();
        let (key, content) = value.as_object().unwrap().iter().next().unwrap();
        assert_eq!(message["content"], "Yes.");
        assert_eq!(message.get(key), is_kept.then_some(content), "{from} to {to}");
    }
}

#[test]
fn deepseek_v4_gets_reasoning_content_on_every_assistant_message() {
    let raw = Some(block("deepseek", json!({"reasoning_content": "Hm."})));
    let own = vec![Part::Thinking { text: "Hm.".into(), signature: None, raw }, Part::text("Yes.")];
    let asked = Asked::of([
        Message::user("?"),
        by("openai:gpt-5", vec![Part::text("No."), Part::ToolCall(call("c1", "f", "{}"))]),
        Message::results([result("c1", "f", "1")]),
        by("deepseek:deepseek-v4-pro", own),
        Message::user("!"),
    ]);
    for name in ["deepseek:deepseek-v4-pro", "deepseek:deepseek-flash"] {
        let messages = send(name, &asked).0["messages"].take();
        assert_eq!(messages[1]["reasoning_content"], "", "{name}");
        assert!(messages[3]["reasoning_content"].is_string(), "{name}");
    }
    let messages = send("deepseek:deepseek-v4-pro", &asked).0["messages"].take();
    assert_eq!(messages[3]["reasoning_content"], "Hm.");
    let messages = send("deepseek:deepseek-chat", &asked).0["messages"].take();
    assert_eq!(messages[1].get("reasoning_content"), None);
}

#[test]
fn signatures_of_gemini_go_back_to_the_same_model_only() {
    const FOREIGN: &str = "skip_thought_signature_validator";
    let signed = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "sig"});
    let answer = |from: &str| {
        let search = json!({"toolCall": {"id": "g1", "toolType": "GOOGLE_SEARCH_WEB"}});
        let raw = block("gemini", json!({"text": "Well.", "thoughtSignature": "sig"}));
        by(
            from,
            vec![
                Part::thinking("Hm."),
                Part::Opaque(block("gemini", search)),
                Part::Text { text: "Well.".into(), raw: Some(raw) },
                signed_call("gemini", "made_call_1", signed.clone()),
            ],
        )
    };
    let parts = |from: &str, to: &str| send(to, &loop_of(answer(from))).0["contents"][1]["parts"].take();
    let own = parts("gemini:gemini-3-pro-preview", "gemini:gemini-3-pro-preview");
    assert_eq!(own[3]["thoughtSignature"], "sig");
    assert_eq!(own.as_array().unwrap().len(), 4);
    let other = |to: &str, from: &str| {
        let parts = parts(from, to);
        assert_eq!(parts.as_array().unwrap().len(), 2, "{parts}");
        assert_eq!(parts[0], json!({"text": "Well."}));
        parts[1].get("thoughtSignature").cloned()
    };
    assert_eq!(other("gemini:gemini-3-flash-preview", "gemini:gemini-2.5-pro"), Some(FOREIGN.into()));
    assert_eq!(other("gemini:gemini-3-flash-preview", "gemini:gemini-3-pro-preview"), Some(FOREIGN.into()));
    assert_eq!(other("gemini:gemini-2.5-pro", "gemini:gemini-3-pro-preview"), None);
    assert_eq!(other("gemini:gemini-2.5-flash", "gemini:gemini-2.5-pro"), None);
}

fn thinking_call(name: &str) -> Message {
    let thought = Part::Thinking { text: "Hm.".into(), signature: Some("sig".into()), raw: None };
    by(name, vec![thought, Part::ToolCall(call("c1", "f", "{}"))])
}

#[test]
fn thinking_blocks_of_claude_stay_for_every_claude() {
    for name in ["anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-8", "anthropic:claude-opus-5"] {
        let asked = loop_of(thinking_call("anthropic:claude-opus-4-5"));
        let content = send(name, &asked).0["messages"][1]["content"].take();
        assert_eq!(content[0]["signature"], "sig", "{name}");
        let foreign = loop_of(thinking_call("acme:claude-like"));
        let content = send(name, &foreign).0["messages"][1]["content"].take();
        assert_eq!(content[0]["type"], "tool_use", "{name}");
    }
}

#[test]
fn a_tool_loop_that_began_without_thinking_goes_on_without_it() {
    let budget = |asked: Asked| asked.set(|settings| settings.thinking = Some(Thinking::Tokens(2_000)));
    let foreign = by("openai:gpt-5", vec![Part::ToolCall(call("c1", "f", "{}"))]);
    let mut asked = budget(loop_of(foreign));
    let mut encoder = Encoder::new(named("anthropic:claude-sonnet-4-5"));
    let first = encoder.encode(&asked.request()).unwrap();
    assert_eq!(body(&first)["thinking"], Value::Null);
    assert_eq!(
        first.notices,
        [
            "thinking is left out until the next message of the user: the tool loop in progress began without it"
        ]
    );
    asked.conversation.push(by("anthropic:claude-sonnet-4-5", vec![Part::text("Done.")]));
    asked.conversation.push(Message::user("And now?"));
    assert_eq!(body(&encoder.encode(&asked.request()).unwrap())["thinking"]["type"], "enabled");
    // A loop that began with thinking keeps it, also when a later message of the model has none.
    let mut own = budget(loop_of(thinking_call("anthropic:claude-sonnet-4-5")));
    own.conversation.push(by("anthropic:claude-sonnet-4-5", vec![Part::ToolCall(call("c2", "f", "{}"))]));
    own.conversation.push(Message::results([result("c2", "f", "2")]));
    assert_eq!(send("anthropic:claude-sonnet-4-5", &own).0["thinking"]["type"], "enabled");
    let adaptive = loop_of(by("openai:gpt-5", vec![Part::ToolCall(call("c1", "f", "{}"))]))
        .set(|settings| settings.thinking = Some(Thinking::Wanted(true)));
    assert_eq!(send("anthropic:claude-opus-4-7", &adaptive).0["thinking"]["type"], "adaptive");
}

// ---- Thinking.

/// Returns the level of thinking that a request asks for.
fn level(name: &str, body: &Value) -> Value {
    match name.split_once(':').unwrap().0 {
        "anthropic" => body["output_config"]["effort"].clone(),
        "openai" => body["reasoning"]["effort"].clone(),
        "gemini" => body["generationConfig"]["thinkingConfig"]["thinkingLevel"].clone(),
        "ollama" => body["think"].clone(),
        _ => body["reasoning_effort"].clone(),
    }
}

#[test]
fn an_effort_that_a_model_lacks_becomes_the_nearest_one_with_a_notice() {
    use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
    for (name, effort, expected) in [
        ("openai:o3", Minimal, "low"),
        ("openai:o3", Xhigh, "high"),
        ("openai:gpt-5", Minimal, "minimal"),
        ("openai:gpt-5", Xhigh, "high"),
        ("openai-chat:gpt-5-mini", Max, "high"),
        ("openai:gpt-5-pro", Low, "high"),
        ("openai:gpt-5-codex", Minimal, "low"),
        ("openai:gpt-5.1", Minimal, "low"),
        ("openai:gpt-5.1", Xhigh, "high"),
        ("openai:gpt-5.1-codex-max", Max, "xhigh"),
        ("openai:gpt-5.2-chat-latest", High, "medium"),
        ("openai:gpt-5.2", Max, "xhigh"),
        ("openai:gpt-5.2-pro", Low, "medium"),
        ("openai:gpt-5.6-sol", Max, "max"),
        ("openai:gpt-5.6-sol", Minimal, "low"),
        ("openai:gpt-6.1-terra", Max, "max"),
        ("anthropic:claude-opus-4-6", Xhigh, "max"),
        ("anthropic:claude-opus-4-7", Xhigh, "xhigh"),
        ("anthropic:claude-opus-5-5", Minimal, "low"),
        ("gemini:gemini-3-pro-preview", Minimal, "low"),
        ("gemini:gemini-3-flash-preview", Minimal, "minimal"),
        ("gemini:gemini-3-pro-preview", Max, "high"),
        ("xai:grok-3-mini", Medium, "high"),
        ("xai:grok-4.5", Xhigh, "high"),
        ("groq:openai/gpt-oss-20b", Minimal, "low"),
        ("ollama:gpt-oss:20b", Max, "high"),
        ("deepseek:deepseek-v4-pro", Medium, "high"),
    ] {
        let (body, notices) = send(name, &with(|settings| settings.effort = Some(effort)));
        assert_eq!(level(name, &body), expected, "{name} {effort:?}");
        let changed = (effort.as_str() != expected).then(|| {
            format!("`effort: {}` is sent as `{expected}`: `{name}` does not take it", effort.as_str())
        });
        assert_eq!(notices, Vec::from_iter(changed), "{name} {effort:?}");
    }
}

#[test]
fn thinking_that_cannot_be_switched_off_is_kept_as_small_as_possible_with_a_notice() {
    let off = with(|settings| settings.thinking = Some(Thinking::Wanted(false)));
    let none = with(|settings| settings.effort = Some(Effort::None));
    for (name, expected) in [
        ("openai:gpt-5", "minimal"),
        ("openai:o3", "low"),
        ("openai:gpt-5-pro", "high"),
        ("groq:openai/gpt-oss-20b", "low"),
        ("ollama:gpt-oss:20b", "low"),
        ("gemini:gemini-3-pro-preview", "low"),
        ("anthropic:claude-opus-5-5", "low"),
        ("anthropic:claude-fable-5", "low"),
        ("xai:grok-4.5", "low"),
    ] {
        for asked in [&off, &none] {
            let (body, notices) = send(name, asked);
            assert_eq!(level(name, &body), expected, "{name}");
            assert_ne!(body["thinking"]["type"], "disabled", "{name}");
            let notice = format!("thinking cannot be switched off for `{name}`, so `{expected}` is sent");
            assert_eq!(notices, [notice], "{name}");
        }
    }
    for (name, place, value) in [
        ("openai:gpt-5.1", "/reasoning/effort", json!("none")),
        ("openai-chat:gpt-5.6-sol", "/reasoning_effort", json!("none")),
        ("anthropic:claude-opus-4-8", "/thinking/type", json!("disabled")),
        ("gemini:gemini-2.5-flash", "/generationConfig/thinkingConfig/thinkingBudget", json!(0)),
        ("deepseek:deepseek-v4-flash", "/thinking/type", json!("disabled")),
        ("ollama:qwen3", "/think", json!(false)),
        ("xai:grok-4.3", "/reasoning_effort", json!("none")),
    ] {
        let (body, notices) = send(name, &off);
        assert_eq!(body.pointer(place), Some(&value), "{name}");
        assert_eq!(notices, Vec::<String>::new(), "{name}");
    }
    let (body, notices) = send("deepseek:deepseek-reasoner", &off);
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!(notices, ["thinking cannot be switched off for `deepseek:deepseek-reasoner`"]);
    assert_eq!(send("openai:gpt-4.1", &off).1, Vec::<String>::new(), "it never thinks");
}

#[test]
fn numbers_of_thinking_tokens_stay_within_the_range_of_the_model() {
    let budget = |name: &str, thinking: Thinking| {
        let (body, notices) = send(name, &with(|settings| settings.thinking = Some(thinking)));
        let gemini = &body["generationConfig"]["thinkingConfig"]["thinkingBudget"];
        let tokens = gemini.as_i64().or_else(|| body["thinking"]["budget_tokens"].as_i64());
        (tokens.unwrap(), notices)
    };
    for (name, wanted, sent) in [
        ("gemini:gemini-2.5-pro", 100, 128),
        ("gemini:gemini-2.5-pro", 40_000, 32_768),
        ("gemini:gemini-2.5-flash", 1, 1),
        ("gemini:gemini-2.5-flash", 32_768, 24_576),
        ("gemini:gemini-2.5-flash-lite", 100, 512),
        ("anthropic:claude-sonnet-4-5", 500, 1_024),
        ("anthropic:claude-sonnet-4-5", 5_000, 5_000),
    ] {
        let (tokens, notices) = budget(name, Thinking::Tokens(wanted));
        assert_eq!(tokens, sent, "{name}");
        let changed = (i64::try_from(wanted).unwrap() != sent)
            .then(|| format!("`thinking: {wanted}` is sent as `{sent}`: `{name}` does not take it"));
        assert_eq!(notices, Vec::from_iter(changed), "{name}");
    }
    let (tokens, notices) = budget("gemini:gemini-2.5-pro", Thinking::Wanted(false));
    assert_eq!(tokens, 128);
    let notice = "thinking cannot be switched off for `gemini:gemini-2.5-pro`, so `128` is sent";
    assert_eq!(notices, [notice]);
    assert_eq!(budget("gemini:gemini-2.5-pro", Thinking::Wanted(true)).0, -1);
    let most = with(|settings| settings.effort = Some(Effort::Max));
    let config = send("gemini:gemini-2.5-flash", &most).0["generationConfig"]["thinkingConfig"].take();
    assert_eq!(config["thinkingBudget"], 24_576);
}

#[test]
fn claude_opus_5_gets_no_high_effort_while_thinking_is_off() {
    let asked = with(|settings| {
        settings.thinking = Some(Thinking::Wanted(false));
        settings.effort = Some(Effort::Max);
    });
    let (body, notices) = send("anthropic:claude-opus-5", &asked);
    assert_eq!(body["thinking"]["type"], "disabled");
    assert_eq!(body["output_config"]["effort"], "high");
    assert_eq!(notices, ["`effort: max` is sent as `high`: `anthropic:claude-opus-5` does not take it"]);
    assert_eq!(send("anthropic:claude-opus-4-8", &asked).0["output_config"]["effort"], "max");
}

#[test]
fn newer_gpt_models_do_not_think_beside_tools_over_chat_completions() {
    let asked = hello().with_tool();
    let thinking = asked.clone().set(|settings| settings.effort = Some(Effort::High));
    for (name, asked, expected) in [
        ("openai-chat:gpt-5.5", &asked, json!("none")),
        ("openai-chat:gpt-7", &asked, json!("none")),
        ("openai-chat:gpt-5.6-sol", &thinking, json!("none")),
        ("openai-chat:gpt-5.4", &thinking, json!("none")),
        ("openai-chat:gpt-5.4", &asked, Value::Null),
        ("openai-chat:gpt-5.1", &thinking, json!("high")),
        ("openai-chat:gpt-5.6-sol", &with(|settings| settings.effort = Some(Effort::High)), json!("high")),
    ] {
        let (body, notices) = send(name, asked);
        assert_eq!(body["reasoning_effort"], expected, "{name}");
        let notice = format!(
            "`{name}` takes no tools while it thinks, so `effort: none` is sent; over the Responses API \
             (`openai:`) it takes both"
        );
        assert_eq!(notices, Vec::from_iter((expected == "none").then_some(notice)), "{name}");
    }
    let responses = send("openai:gpt-5.6-sol", &thinking);
    assert_eq!((responses.0["reasoning"]["effort"].clone(), responses.1), (json!("high"), Vec::new()));
}

#[test]
fn a_forced_choice_of_tools_is_left_out_where_it_is_refused() {
    let forced = |choice: ToolChoice, set: fn(&mut ModelSettings)| {
        hello().with_tool().set(|settings| settings.tool_choice = Some(choice)).set(set)
    };
    let off: fn(&mut ModelSettings) = |settings| settings.thinking = Some(Thinking::Wanted(false));
    let on: fn(&mut ModelSettings) = |settings| settings.thinking = Some(Thinking::Wanted(true));
    let unset: fn(&mut ModelSettings) = |_| {};
    for (name, set, is_forced) in [
        ("anthropic:claude-sonnet-4-5", on, false),
        ("anthropic:claude-sonnet-4-5", unset, true),
        ("anthropic:claude-opus-4-6", on, true),
        ("anthropic:claude-opus-5", on, true),
        ("anthropic:claude-fable-5", unset, false),
        ("anthropic:claude-mythos-5", unset, false),
        ("deepseek:deepseek-v4-pro", unset, false),
        ("deepseek:deepseek-v4-pro", off, true),
        ("groq:moonshotai/kimi-k2", unset, false),
        ("openrouter:anthropic/claude-sonnet-4.5", on, false),
        ("openai:gpt-5", on, true),
        ("openai-chat:gpt-4.1", unset, true),
        ("mistral:mistral-large-latest", unset, true),
    ] {
        for choice in [ToolChoice::Required, ToolChoice::Tool("read_file".into())] {
            let (body, notices) = send(name, &forced(choice, set));
            let sent = &body["tool_choice"];
            let is_auto = sent.is_null() || *sent == "auto" || *sent == json!({"type": "auto"});
            assert_eq!(!is_auto, is_forced, "{name}: {sent}");
            assert_eq!(notices.iter().any(|notice| notice.contains("tool_choice")), !is_forced, "{name}");
        }
    }
}

// ---- Sampling, stops and limits.

#[test]
fn sampling_is_limited_to_what_the_model_takes() {
    let both = |settings: &mut ModelSettings| {
        settings.temperature = Some(1.5);
        settings.top_p = Some(0.5);
    };
    let sent = |name: &str, asked: &Asked| {
        let (body, notices) = send(name, asked);
        ((body["temperature"].as_f64(), body["top_p"].as_f64()), notices)
    };
    let (sampling, notices) = sent("anthropic:claude-sonnet-4-5", &with(both));
    assert_eq!(sampling, (Some(1.0), None));
    assert_eq!(
        notices,
        [
            "`temperature: 1.5` is sent as `1`: `anthropic:claude-sonnet-4-5` does not take it",
            "the setting `top_p` beside `temperature` is left out: `anthropic:claude-sonnet-4-5` does not take it",
        ]
    );
    for name in
        ["anthropic:claude-opus-4-6", "anthropic:claude-opus-4-1", "anthropic:claude-3-7-sonnet-latest"]
    {
        assert_eq!(sent(name, &with(both)).0, (Some(1.0), None), "{name}");
    }
    let only_top_p = with(|settings| settings.top_p = Some(0.5));
    assert_eq!(sent("anthropic:claude-sonnet-4-5", &only_top_p), ((None, Some(0.5)), Vec::new()));
    for name in ["anthropic:claude-opus-4-7", "anthropic:claude-sonnet-5", "openai:gpt-5", "openai:o3"] {
        assert_eq!(sent(name, &with(both)).0, (None, None), "{name}");
    }
    for name in ["openai-chat:gpt-4o-search-preview", "openai-chat:gpt-4o-mini-search-preview"] {
        assert_eq!(sent(name, &with(both)).0, (None, None), "{name}");
    }
    assert_eq!(sent("openai:gpt-4.1", &with(both)), ((Some(1.5), Some(0.5)), Vec::new()));
}

#[test]
fn models_of_openai_sample_only_while_they_do_not_think() {
    let asked = |effort: Option<Effort>| {
        with(|settings| {
            settings.temperature = Some(0.5);
            settings.effort = effort;
        })
    };
    for (name, effort, is_sent) in [
        ("openai:gpt-5.1", None, true),
        ("openai:gpt-5.1", Some(Effort::None), true),
        ("openai:gpt-5.1", Some(Effort::Low), false),
        ("openai:gpt-5.4", None, true),
        ("openai:gpt-5.5", None, false),
        ("openai:gpt-5.5", Some(Effort::None), true),
        ("openai-chat:gpt-5.6-sol", Some(Effort::None), true),
        ("openai-chat:gpt-5.6-sol", None, false),
        ("openai:gpt-5", Some(Effort::None), false),
        ("openai:gpt-5.2-codex", None, false),
    ] {
        let (body, notices) = send(name, &asked(effort));
        assert_eq!(body["temperature"].as_f64(), is_sent.then_some(0.5), "{name} {effort:?}");
        assert_eq!(notices.iter().any(|notice| notice.contains("temperature")), !is_sent, "{name}");
    }
}

#[test]
fn stop_texts_are_limited_to_what_the_model_takes() {
    let stops = |count: usize| {
        with(|settings| settings.stop = (0..count).map(|number| format!("END{number}")).collect())
    };
    for name in [
        "openai-chat:o3",
        "openai-chat:o4-mini",
        "openai-chat:gpt-5",
        "openai-chat:gpt-5.6-sol",
        "azure:gpt-5-mini",
        "xai:grok-3-mini",
        "xai:grok-4.5",
    ] {
        let (body, notices) = send(name, &stops(1));
        assert_eq!(body.get("stop"), None, "{name}");
        assert_eq!(notices, [format!("the setting `stop` is left out: `{name}` does not take it")]);
    }
    for (name, place, limit) in [
        ("openai-chat:gpt-4.1", "/stop", 4),
        ("xai:grok-3", "/stop", 4),
        ("gemini:gemini-2.5-pro", "/generationConfig/stopSequences", 5),
    ] {
        assert_eq!(send(name, &stops(limit)).1, Vec::<String>::new(), "{name}");
        let (body, notices) = send(name, &stops(limit + 2));
        assert_eq!(body.pointer(place).unwrap().as_array().unwrap().len(), limit, "{name}");
        let notice = format!("`{name}` takes {limit} `stop` texts at most, so the last 2 are left out");
        assert_eq!(notices, [notice]);
    }
    let blank = with(|settings| settings.stop = vec!["\n".into(), "END".into()]);
    let (body, notices) = send("anthropic:claude-sonnet-4-5", &blank);
    assert_eq!((body["stop_sequences"].clone(), notices.len()), (json!(["END"]), 1));
}

#[test]
fn the_limit_of_output_stays_between_the_bounds_of_the_model() {
    for (name, wanted, sent) in [
        ("anthropic:claude-opus-4-1-20250805", 64_000, 32_000),
        ("anthropic:claude-opus-4-20250514", 64_000, 32_000),
        ("anthropic:claude-sonnet-4-0", 128_000, 64_000),
        ("anthropic:claude-haiku-4-5", 128_000, 64_000),
        ("anthropic:claude-opus-4-6", 200_000, 128_000),
        ("anthropic:claude-fable-5", 128_000, 128_000),
        ("openai:gpt-5", 5, 16),
        ("openai:gpt-5", 16, 16),
    ] {
        let (body, notices) = send(name, &with(|settings| settings.max_tokens = Some(wanted)));
        let key = if name.starts_with("openai") { "max_output_tokens" } else { "max_tokens" };
        assert_eq!(body[key], sent, "{name}");
        let changed = (wanted != sent)
            .then(|| format!("`max_tokens: {wanted}` is sent as `{sent}`: `{name}` does not take it"));
        assert_eq!(notices, Vec::from_iter(changed), "{name}");
    }
    let thinking = with(|settings| {
        settings.max_tokens = Some(200_000);
        settings.thinking = Some(Thinking::Tokens(100_000));
    });
    let body = send("anthropic:claude-opus-4-1", &thinking).0;
    assert_eq!([&body["max_tokens"], &body["thinking"]["budget_tokens"]], [32_000, 31_999]);
}

#[test]
fn the_field_of_the_limit_and_of_the_seed_is_the_one_that_the_host_knows() {
    let asked = with(|settings| {
        settings.max_tokens = Some(100);
        settings.seed = Some(7);
    });
    for (name, limit, seed) in [
        ("openai-chat:gpt-5", "max_completion_tokens", Some("seed")),
        ("openai-chat:gpt-4.1", "max_completion_tokens", Some("seed")),
        ("azure:my-deployment", "max_completion_tokens", Some("seed")),
        ("azure:mistral-large-2411", "max_tokens", Some("seed")),
        ("mistral:mistral-large-latest", "max_tokens", Some("random_seed")),
        ("groq:llama-3.3-70b-versatile", "max_tokens", Some("seed")),
        ("openrouter:openai/gpt-5", "max_tokens", Some("seed")),
        ("deepseek:deepseek-v4-pro", "max_tokens", None),
    ] {
        let (body, notices) = send(name, &asked);
        assert_eq!(body[limit], 100, "{name}: {body}");
        let seeds: Vec<&str> =
            ["seed", "random_seed"].into_iter().filter(|key| body.get(*key).is_some()).collect();
        assert_eq!(seeds, Vec::from_iter(seed), "{name}");
        assert_eq!(notices.len(), usize::from(seed.is_none()), "{name}");
    }
}

#[test]
fn more_tools_than_the_provider_takes_are_an_error_that_says_so() {
    let many = |count: usize| (0..count).fold(hello(), |asked, _| asked.with_tool());
    for name in ["openai:gpt-5", "openai-chat:gpt-4.1"] {
        assert!(Encoder::new(named(name)).encode(&many(128).request()).is_ok());
        let error = Encoder::new(named(name)).encode(&many(129).request()).unwrap_err();
        assert_eq!(error.message, format!("`{name}` takes at most 128 tools, and this request offers 129"));
    }
    assert!(Encoder::new(named("anthropic:claude-opus-4-6")).encode(&many(129).request()).is_ok());
}

// ---- The order of messages.

#[test]
fn mistral_gets_no_user_message_right_after_a_result() {
    let roles = |asked: &Asked| {
        let messages = send("mistral:mistral-large-latest", asked).0["messages"].take();
        let roles = list(&messages).map(|message| message["role"].as_str().unwrap().to_owned());
        (roles.collect::<Vec<_>>(), messages)
    };
    let asks = by("mistral:mistral-large-latest", vec![Part::ToolCall(call("abcdefgh1", "f", "{}"))]);
    let answered = |more: Vec<Part>| {
        let mut parts = vec![Part::ToolResult(result("abcdefgh1", "f", "1"))];
        parts.extend(more);
        Asked::of([Message::user("?"), asks.clone(), Message { role: Role::User, parts, origin: None }])
    };
    let (order, messages) = roles(&answered(vec![Part::text("The answer lacks `age`.")]));
    assert_eq!(order, ["user", "assistant", "tool"]);
    assert_eq!(messages[2]["content"], "1\n\nThe answer lacks `age`.");

    let image = Attachment::bytes("a.png", "image/png", b"PNG".to_vec());
    let (order, messages) = roles(&answered(vec![Part::Attachment(image)]));
    assert_eq!(order, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(messages[4]["content"][0]["type"], "image_url");

    // The next message is another one: what was sent stays as it was.
    let mut later = answered(Vec::new());
    later.conversation.push(Message::user("Go on."));
    assert_eq!(roles(&later).0, ["user", "assistant", "tool", "assistant", "user"]);
    let mut unanswered = Asked::of([Message::user("?"), asks.clone(), Message::user("Stop.")]);
    assert_eq!(roles(&unanswered).0, ["user", "assistant", "tool"]);
    unanswered.conversation.push(Message::user("Go on."));
    assert_eq!(roles(&unanswered).0, ["user", "assistant", "tool", "assistant", "user"]);
    // OpenAI takes it.
    let messages = send("openai-chat:gpt-4.1", &answered(vec![Part::text("More.")])).0["messages"].take();
    assert_eq!(list(&messages).last().unwrap()["role"], "user");
}

#[test]
fn a_conversation_that_ends_with_the_model_is_continued_by_a_word_of_the_user() {
    let ending = |text: &str| {
        let mut asked = Asked::of([Message::user("?"), Message::assistant(text)]);
        asked.settings.cache = Some(false);
        asked
    };
    let last = |name: &str, asked: &Asked| {
        let body = send(name, asked).0;
        let items = ["messages", "contents"].into_iter().find_map(|key| body.get(key)).unwrap();
        list(items).last().unwrap().clone()
    };
    for name in ["anthropic:claude-opus-4-6", "anthropic:claude-sonnet-5", "anthropic:claude-opus-5-5"] {
        let continued = json!({"role": "user", "content": [{"type": "text", "text": "Continue."}]});
        assert_eq!(last(name, &ending("Well")), continued, "{name}");
    }
    assert_eq!(last("anthropic:claude-sonnet-4-5", &ending("Well"))["role"], "assistant");
    assert_eq!(last("anthropic:claude-sonnet-4-5", &ending("Well \n"))["role"], "user");
    for name in ["mistral:mistral-large-latest", "llamacpp:qwen3"] {
        assert_eq!(last(name, &ending("Well")), json!({"role": "user", "content": "Continue."}), "{name}");
    }
    let continued = json!({"role": "user", "parts": [{"text": "Continue."}]});
    assert_eq!(last("gemini:gemini-2.5-pro", &ending("Well")), continued);
    assert_eq!(last("openai-chat:gpt-4.1", &ending("Well"))["role"], "assistant");

    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let mut paused = by("anthropic:claude-opus-4-6", vec![Part::Opaque(block("anthropic", search))]);
    paused.origin.as_mut().unwrap().data = json!({"stop_reason": "pause_turn"});
    let asked = Asked::of([Message::user("?"), paused]);
    assert_eq!(last("anthropic:claude-opus-4-6", &asked)["role"], "assistant");
}

#[test]
fn the_word_of_the_user_is_no_part_of_the_kept_history() {
    let mut encoder = Encoder::new(named("anthropic:claude-opus-4-6"));
    let mut asked = Asked::of([Message::user("?"), Message::assistant("Well")]);
    asked.settings.cache = Some(false);
    encoder.encode(&asked.request()).unwrap();
    asked.conversation.push(Message::user("Go on."));
    let warm = encoder.encode(&asked.request()).unwrap();
    assert_eq!(warm.body.to_vec(), encoded(named("anthropic:claude-opus-4-6"), &asked).body.to_vec());
    assert_eq!(values_of(&body(&warm)["messages"], "text"), ["?", "Well", "Go on."]);
}

#[test]
fn hosts_that_want_the_user_first_get_one() {
    let asked = Asked::of([Message::assistant("Welcome."), Message::user("?")]);
    for name in ["mistral:mistral-large-latest", "gemini:gemini-2.5-pro"] {
        let body = send(name, &asked).0;
        let items = ["messages", "contents"].into_iter().find_map(|key| body.get(key)).unwrap();
        assert_eq!(items[0]["role"], "user", "{name}");
    }
    assert_eq!(send("anthropic:claude-opus-4-6", &asked).0["messages"][0]["role"], "assistant");
    // Gemini takes calls only right after a message of the user.
    let asks = by("gemini:gemini-2.5-pro", vec![Part::ToolCall(call("c1", "f", "{}"))]);
    let answers = Message::results([result("c1", "f", "1")]);
    let asked = Asked::of([Message::user("?"), Message::assistant("Well."), asks, answers]);
    let contents = send("gemini:gemini-2.5-pro", &asked).0["contents"].take();
    let roles: Vec<&str> = list(&contents).map(|content| content["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user", "model", "user"]);
}

#[test]
fn instructions_go_into_a_user_message_for_models_without_that_role() {
    let asked = hello().instructed("Be good.");
    let messages = send("openai-chat:o1-mini", &asked).0["messages"].take();
    assert_eq!(messages[0], json!({"role": "user", "content": "Be good."}));
    let body = send("gemini:gemma-3-27b-it", &asked).0;
    assert_eq!(body.get("systemInstruction"), None);
    assert_eq!(body["contents"][0]["parts"][0]["text"], "Be good.");
}

#[test]
fn gemini_3_is_told_that_server_side_tools_stand_beside_functions() {
    let search =
        ServerTool::WebSearch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() };
    let mut asked = hello().with_tool();
    let config = |asked: &Asked, name: &str| send(name, asked).0["toolConfig"].take();
    assert_eq!(config(&asked, "gemini:gemini-3-pro-preview"), Value::Null);
    asked.server_tools = vec![search];
    let both = config(&asked, "gemini:gemini-3-pro-preview");
    assert_eq!(both, json!({"includeServerSideToolInvocations": true}));
    assert_eq!(config(&asked, "gemini:gemini-2.5-pro"), Value::Null);
    asked.tools.clear();
    assert_eq!(config(&asked, "gemini:gemini-3-pro-preview"), Value::Null);
}

// ---- Everything at once.

/// Models of every family, by provider.
const MODELS: &[&str] = &[
    "anthropic:claude-3-7-sonnet-latest",
    "anthropic:claude-opus-4-1",
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-opus-4-5",
    "anthropic:claude-opus-4-6",
    "anthropic:claude-opus-4-8",
    "anthropic:claude-sonnet-5",
    "anthropic:claude-opus-5",
    "anthropic:claude-opus-5-5",
    "anthropic:claude-fable-5",
    "anthropic:claude-mythos-preview",
    "openai:gpt-4.1",
    "openai:o3",
    "openai:gpt-5",
    "openai:gpt-5-pro",
    "openai:gpt-5.1",
    "openai:gpt-5.2-codex",
    "openai:gpt-5.3-chat-latest",
    "openai:gpt-5.4-mini",
    "openai:gpt-5.6-sol",
    "openai:gpt-7",
    "openai-chat:gpt-4o",
    "openai-chat:gpt-4o-search-preview",
    "openai-chat:o1-mini",
    "openai-chat:o4-mini",
    "openai-chat:gpt-5-nano",
    "openai-chat:gpt-5.1-codex-max",
    "openai-chat:gpt-5.4",
    "openai-chat:gpt-6-sol",
    "azure:gpt-5-mini",
    "gemini:gemini-2.0-flash",
    "gemini:gemini-2.5-pro",
    "gemini:gemini-2.5-flash",
    "gemini:gemini-2.5-flash-lite",
    "gemini:gemini-3-pro-preview",
    "gemini:gemini-3-flash-preview",
    "gemini:gemini-3.7-flash",
    "gemini:gemini-flash-latest",
    "gemini:gemma-3-27b-it",
    "ollama:gpt-oss:20b",
    "ollama:qwen3",
    "groq:openai/gpt-oss-120b",
    "groq:qwen/qwen3-32b",
    "deepseek:deepseek-v4-pro",
    "deepseek:deepseek-chat",
    "deepseek:deepseek-reasoner",
    "mistral:mistral-large-latest",
    "mistral:mistral-small-2603",
    "mistral:magistral-medium-latest",
    "xai:grok-3",
    "xai:grok-3-mini",
    "xai:grok-4",
    "xai:grok-4.20-reasoning",
    "xai:grok-4.5",
    "xai:grok-4.6",
    "openrouter:anthropic/claude-sonnet-4.5",
    "openrouter:openai/gpt-5.6-sol",
    "llamacpp:qwen3",
    "vllm:Qwen/Qwen3-8B",
];

/// `LLM_DO_WIRE_CONVERSATIONS` sets how many conversations each model gets.
#[test]
fn random_requests_to_models_of_every_family_are_accepted() {
    for (index, name) in MODELS.iter().enumerate() {
        for seed in 0..times("LLM_DO_WIRE_CONVERSATIONS", 3) {
            let mut numbers = Numbers::new((index * 1_000 + seed) as u64);
            let mut warm = Encoder::new(named(name));
            let mut asked = random_settings(&mut numbers);
            for _ in 0..6 {
                grow(&mut asked, name, &mut numbers);
                let cold = encoded(named(name), &asked);
                let warm = warm.encode(&asked.request()).unwrap();
                assert_eq!(warm.body.to_vec(), cold.body.to_vec(), "{name}, seed {seed}");
            }
        }
    }
}

fn random_settings(numbers: &mut Numbers) -> Asked {
    let mut asked = if numbers.below(2) == 0 { Asked::default() } else { Asked::default().with_tool() };
    if numbers.below(2) == 0 {
        asked.instructions = "Be good.".into();
    }
    let settings = &mut asked.settings;
    settings.thinking = match numbers.below(6) {
        0 => Some(Thinking::Wanted(true)),
        1 => Some(Thinking::Wanted(false)),
        2 => Some(Thinking::Tokens(1 + numbers.below(60_000) as u64)),
        _ => None,
    };
    settings.effort = Effort::ALL.get(numbers.below(10)).copied();
    settings.temperature = [Some(0.0), Some(1.0), Some(2.0), None][numbers.below(4)];
    settings.top_p = [Some(0.5), None][numbers.below(2)];
    settings.stop = (0..numbers.below(7)).map(|number| format!("END{number}")).collect();
    settings.seed = [Some(7), None][numbers.below(2)];
    settings.max_tokens = [Some(1), Some(3_000), Some(1_000_000), None][numbers.below(4)];
    settings.parallel_tool_calls = [Some(false), None][numbers.below(2)];
    settings.stream = [Some(false), None][numbers.below(2)];
    settings.tool_choice = match numbers.below(4) {
        0 => Some(ToolChoice::Required),
        1 => Some(ToolChoice::Tool("read_file".into())),
        2 => Some(ToolChoice::None),
        _ => None,
    };
    asked
}

/// Adds messages, also of other models of the same provider, until no call is open.
fn grow(asked: &mut Asked, name: &str, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(3) {
        add_message(asked, name, numbers);
    }
    while asked.conversation.messages().last().unwrap().tool_calls().next().is_some() {
        add_message(asked, name, numbers);
    }
}

fn add_message(asked: &mut Asked, name: &str, numbers: &mut Numbers) {
    let mut message = next_message(asked.conversation.messages(), numbers);
    let api = named(name).api;
    let is_of_api = |origin: &Origin| origin.provider == provider(api);
    if message.origin.as_ref().is_some_and(is_of_api) && numbers.below(3) > 0 {
        let host = name.split_once(':').unwrap().0;
        let models: Vec<&str> = MODELS.iter().filter_map(|name| name.strip_prefix(host)).collect();
        let model = models[numbers.below(models.len())];
        let model = model.strip_prefix(':').unwrap_or_else(|| name.split_once(':').unwrap().1);
        message.origin.as_mut().unwrap().model = model.to_owned();
        message.origin.as_mut().unwrap().provider = host.to_owned();
        message.parts.iter_mut().filter_map(raw_mut).for_each(|raw| raw.provider = host.to_owned());
    }
    asked.conversation.push(message);
}
