//! Conversations that move from one provider to another are accepted everywhere: the rules of each API, as far
//! as it refuses a request that breaks them.

use std::collections::HashSet;

use llm_do_core::{Conversation, Message};
use serde_json::Value;

use super::super::Api;
use super::conversations::{APIS, answer, next_message, results_of};
use super::read_request::list;
use super::requests::{Asked, body, encoded, target};
use super::{Numbers, times};

#[test]
fn an_answer_of_every_provider_can_be_sent_to_every_other() {
    let mut numbers = Numbers::new(3);
    for from in APIS {
        for to in APIS {
            let mut asked = Asked::default().instructed("Be good.").with_tool();
            asked.conversation.push(Message::user("Hello"));
            let answer = answer(from);
            asked.conversation.push(answer.clone());
            asked.conversation.push(results_of(&answer, &mut numbers));
            let body = body(&encoded(target(to), &asked));
            check(to, &body, &format!("{from:?} to {to:?}"));
            let said = answer.text();
            let words: Vec<&str> = said.split_whitespace().collect();
            let text = body.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{from:?} to {to:?}: {said} in {text}");
        }
    }
}

#[test]
fn random_conversations_keep_the_rules_of_every_api() {
    for seed in 0..times("LLM_DO_WIRE_CONVERSATIONS", 12) {
        let mut numbers = Numbers::new(seed as u64 * 13 + 7);
        let mut conversation = Conversation::default();
        for _ in 0..30 {
            conversation.push(next_message(conversation.messages(), &mut numbers));
        }
        // The last calls are answered.
        while conversation.messages().last().unwrap().tool_calls().next().is_some() {
            conversation.push(next_message(conversation.messages(), &mut numbers));
        }
        for api in APIS {
            let asked = Asked { conversation: conversation.clone(), ..Asked::default() };
            check(api, &body(&encoded(target(api), &asked)), &format!("{api:?}, seed {seed}"));
        }
    }
}

fn check(api: Api, body: &Value, case: &str) {
    match api {
        Api::Anthropic => check_anthropic(body, case),
        Api::OpenAiChat => check_chat(body, case),
        Api::OpenAiResponses => check_responses(body, case),
        Api::Gemini => check_gemini(body, case),
        Api::Ollama => check_ollama(body, case),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn check_name(name: &str, case: &str) {
    assert!(llm_do_core::Name::is_valid(name), "{case}: `{name}`");
}

fn check_text(words: &str, case: &str) {
    assert!(!words.trim().is_empty() || words.contains(' '), "{case}: an empty text");
}

/// Returns the ids under a key of blocks of a kind.
fn ids<'a>(blocks: &'a Value, kind: &str, key: &str) -> Vec<&'a str> {
    list(blocks).filter(|block| block["type"] == kind).map(|block| text(block, key)).collect()
}

fn check_anthropic(body: &Value, case: &str) {
    let messages: Vec<&Value> = list(&body["messages"]).collect();
    assert_eq!(messages[0]["role"], "user", "{case}");
    for (index, message) in messages.iter().enumerate() {
        let blocks = &message["content"];
        assert!(list(blocks).count() > 0, "{case}");
        list(blocks).for_each(|block| check_block(block, case));
        let last = list(blocks).last().unwrap();
        assert!(
            !matches!(text(last, "type"), "thinking" | "redacted_thinking"),
            "{case}: ends with thinking"
        );
        let calls = ids(blocks, "tool_use", "id");
        if let Some(next) = messages.get(index + 1).filter(|_| message["role"] == "assistant") {
            assert_eq!(sorted(ids(&next["content"], "tool_result", "tool_use_id")), sorted(calls), "{case}");
        }
        if message["role"] == "user" && index > 0 && messages[index - 1]["role"] == "user" {
            assert!(ids(blocks, "tool_result", "tool_use_id").is_empty(), "{case}: results without calls");
        }
        let kinds: Vec<bool> = list(blocks).map(|block| block["type"] == "tool_result").collect();
        assert!(kinds.is_sorted_by(|one, other| one >= other), "{case}: results stand first");
    }
}

fn sorted(mut ids: Vec<&str>) -> Vec<&str> {
    ids.sort_unstable();
    ids
}

fn check_block(block: &Value, case: &str) {
    match text(block, "type") {
        "text" => assert!(!text(block, "text").trim().is_empty(), "{case}: a blank text"),
        "tool_use" => {
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            assert!(text(block, "id").chars().all(is_word), "{case}: {block}");
            check_name(text(block, "name"), case);
            assert!(block["input"].is_object(), "{case}: {block}");
        }
        "thinking" => assert!(!text(block, "signature").is_empty(), "{case}: {block}"),
        "tool_result" => list(&block["content"]).for_each(|block| check_block(block, case)),
        _ => {}
    }
}

fn check_chat(body: &Value, case: &str) {
    let mut open: HashSet<&str> = HashSet::new();
    for message in list(&body["messages"]) {
        match text(message, "role") {
            "tool" => {
                assert!(open.remove(text(message, "tool_call_id")), "{case}: a result without a call");
                check_text(text(message, "content"), case);
            }
            role => {
                assert!(open.is_empty(), "{case}: calls without results before {role}: {open:?}");
                check_content(role, message, case);
                for call in list(&message["tool_calls"]) {
                    assert!(text(call, "id").len() <= 40, "{case}: {call}");
                    assert!(open.insert(text(call, "id")), "{case}: an id twice");
                    check_function(&call["function"], case);
                }
            }
        }
    }
    assert!(open.is_empty(), "{case}: calls without results");
}

fn check_content(role: &str, message: &Value, case: &str) {
    match &message["content"] {
        Value::String(words) => check_text(words, case),
        Value::Array(pieces) => assert!(!pieces.is_empty(), "{case}"),
        _ => {
            let has_more = message.get("tool_calls").is_some() || message.get("refusal").is_some();
            assert!(role == "assistant" && has_more, "{case}: {message}");
        }
    }
}

fn check_function(function: &Value, case: &str) {
    check_name(text(function, "name"), case);
    let arguments: Value = serde_json::from_str(text(function, "arguments")).unwrap();
    assert!(arguments.is_object(), "{case}: {function}");
}

fn check_responses(body: &Value, case: &str) {
    let items: Vec<&Value> = list(&body["input"]).collect();
    let mut open: HashSet<&str> = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        match text(item, "type") {
            "function_call" => {
                assert!(text(item, "call_id").len() <= 64, "{case}: {item}");
                assert!(open.insert(text(item, "call_id")), "{case}: an id twice");
                check_function(item, case);
            }
            "function_call_output" => {
                assert!(open.remove(text(item, "call_id")), "{case}: a result without a call");
            }
            "reasoning" => {
                assert!(item["encrypted_content"].is_string(), "{case}: {item}");
                let next = items.get(index + 1);
                assert!(next.is_some_and(|next| next["role"] != "user"), "{case}: nothing follows {item}");
            }
            _ => {
                assert!(item["role"] != "user" || open.is_empty(), "{case}: calls without results");
                assert!(item["role"].is_null() || list(&item["content"]).count() > 0, "{case}: {item}");
            }
        }
    }
    assert!(open.is_empty(), "{case}: calls without results");
}

fn check_gemini(body: &Value, case: &str) {
    let contents: Vec<&Value> = list(&body["contents"]).collect();
    for (index, content) in contents.iter().enumerate() {
        assert!(list(&content["parts"]).count() > 0, "{case}");
        for part in list(&content["parts"]) {
            assert_ne!(part["text"], "", "{case}: {content}");
            let function = part.get("functionCall");
            assert!(function.is_none_or(|function| function["args"].is_object()), "{case}: {part}");
        }
        let of = |content: &Value, key: &str| {
            let functions = list(&content["parts"]).filter_map(|part| part.get(key));
            functions
                .map(|function| (text(function, "name").to_owned(), function["id"].clone()))
                .collect::<Vec<_>>()
        };
        let asked = of(content, "functionCall");
        if let Some(next) = contents.get(index + 1).filter(|_| content["role"] == "model") {
            assert_eq!(of(next, "functionResponse"), asked, "{case}");
        }
    }
}

fn check_ollama(body: &Value, case: &str) {
    let mut open: Vec<&str> = Vec::new();
    for message in list(&body["messages"]) {
        if message["role"] == "tool" {
            assert_eq!(open.remove(0), text(message, "tool_name"), "{case}");
            check_text(text(message, "content"), case);
            continue;
        }
        assert!(open.is_empty(), "{case}: calls without results");
        let has_calls = list(&message["tool_calls"]).count() > 0;
        let has_images = list(&message["images"]).count() > 0;
        assert!(has_calls || has_images || message["content"] != "", "{case}: {message}");
        for call in list(&message["tool_calls"]) {
            assert!(call["function"]["arguments"].is_object(), "{case}: {call}");
            open.push(text(&call["function"], "name"));
        }
    }
    assert!(open.is_empty(), "{case}: calls without results");
}
