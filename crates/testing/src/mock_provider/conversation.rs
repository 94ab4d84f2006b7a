//! Which conversations providers refuse: calls without an answer, answers without a call, roles out of order.
//!
//! Each function takes the body of a request and says, in words like those of the provider, why it is refused with
//! status 400.

use std::collections::HashSet;

use serde_json::Value;

/// The APIs whose conversations are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MockApi {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
    /// Gemini's `generateContent`.
    Gemini,
}

impl MockApi {
    /// Returns the messages of a request.
    pub fn messages(self, body: &Value) -> &[Value] {
        let key = match self {
            Self::Anthropic | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        };
        body[key].as_array().map_or(&[], Vec::as_slice)
    }

    /// Says why the provider refuses a conversation, if it does.
    pub fn refusal(self, body: &Value) -> Option<String> {
        let messages = self.messages(body);
        if messages.is_empty() {
            return Some("at least one message is required".to_owned());
        }
        let checked = match self {
            Self::Anthropic => anthropic(messages),
            Self::Responses => responses(messages),
            Self::Chat => chat(messages),
            Self::Gemini => gemini(messages),
        };
        checked.err()
    }
}

/// The texts under a key of the items of a type.
fn of_type<'a>(items: &'a [Value], word: &str, key: &str) -> Vec<&'a str> {
    let typed = items.iter().filter(|item| item["type"] == word);
    typed.map(|item| item[key].as_str().unwrap_or_default()).collect()
}

fn items<'a>(message: &'a Value, key: &str) -> &'a [Value] {
    message[key].as_array().map_or(&[], Vec::as_slice)
}

fn all_once<'a>(ids: &[&'a str], seen: &mut HashSet<&'a str>) -> Result<(), String> {
    match ids.iter().find(|id| id.is_empty() || !seen.insert(id)) {
        Some(id) => Err(format!("ids of calls must be there and unique: `{id}`")),
        None => Ok(()),
    }
}

/// Every `tool_use` has its `tool_result` in the next message, which is the user's; roles change.
fn anthropic(messages: &[Value]) -> Result<(), String> {
    let (mut open, mut seen) = (Vec::new(), HashSet::new());
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != role {
            return Err(format!("messages.{index}: roles must alternate, expected `{role}`"));
        }
        let content = items(message, "content");
        if content.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            return Err(format!("messages.{index}: the content is empty"));
        }
        if let Some(empty) = content.iter().find(|part| part["type"] == "text" && part["text"] == "") {
            return Err(format!("messages.{index}: text content blocks must be non-empty: {empty}"));
        }
        let results = of_type(content, "tool_result", "tool_use_id");
        if !results.is_empty() && content[..results.len()].iter().any(|part| part["type"] != "tool_result") {
            return Err(format!("messages.{index}: `tool_result` blocks must come first"));
        }
        same(&open, &results).map_err(|words| format!("messages.{index}: {words}"))?;
        open = of_type(content, "tool_use", "id");
        all_once(&open, &mut seen)?;
    }
    last_is_open(&open)?;
    match messages.len() % 2 {
        1 => Ok(()),
        _ => Err("the conversation must end with a message of the user".to_owned()),
    }
}

fn same(open: &[&str], answered: &[&str]) -> Result<(), String> {
    if let Some(id) = answered.iter().find(|id| !open.contains(id)) {
        return Err(format!("unexpected answer `{id}`: there is no such call in the previous message"));
    }
    let mut once = HashSet::new();
    if let Some(id) = answered.iter().find(|id| !once.insert(**id)) {
        return Err(format!("the call `{id}` is answered twice"));
    }
    match open.iter().find(|id| !answered.contains(id)) {
        Some(id) => Err(format!("the call `{id}` was found without an answer immediately after")),
        None => Ok(()),
    }
}

fn last_is_open(open: &[&str]) -> Result<(), String> {
    match open.first() {
        Some(id) => Err(format!("the call `{id}` was found without an answer immediately after")),
        None => Ok(()),
    }
}

/// Every `function_call` has one `function_call_output` somewhere after it, and none has another.
fn responses(input: &[Value]) -> Result<(), String> {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for (index, item) in input.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") if id.is_empty() || !called.insert(id) => {
                return Err(format!("input[{index}]: the call_id `{id}` is missing or not unique"));
            }
            Some("function_call_output") if !called.contains(id) => {
                return Err(format!("input[{index}]: no tool call found for function call output `{id}`"));
            }
            Some("function_call_output") if !answered.insert(id) => {
                return Err(format!("input[{index}]: a second output for `{id}`"));
            }
            _ => {}
        }
    }
    match called.iter().find(|id| !answered.contains(*id)) {
        Some(id) => Err(format!("no tool output found for function call `{id}`")),
        None => Ok(()),
    }
}

/// The messages after one with `tool_calls` are those of its tools, one for each.
fn chat(messages: &[Value]) -> Result<(), String> {
    let (mut open, mut seen): (Vec<&str>, _) = (Vec::new(), HashSet::new());
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(place) = open.iter().position(|open| *open == id) else {
                return Err(format!(
                    "messages[{index}]: a message of the role `tool` must follow a message with its tool_calls: `{id}`"
                ));
            };
            open.remove(place);
            continue;
        }
        last_is_open(&open).map_err(|words| format!("messages[{index}]: {words}"))?;
        if message["role"] == "assistant" {
            open = of_type(items(message, "tool_calls"), "function", "id");
            if open.len() != items(message, "tool_calls").len() {
                return Err(format!("messages[{index}]: a tool call is no function"));
            }
            all_once(&open, &mut seen)?;
        }
    }
    last_is_open(&open)
}

/// A turn with function calls is followed by one with as many responses, by name and order; the first is the user's.
fn gemini(contents: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    if contents[0]["role"] != "user" {
        return Err("please ensure that the first turn is of the user".to_owned());
    }
    for (index, content) in contents.iter().enumerate() {
        let names = |key: &str| -> Vec<&str> {
            let parts = items(content, "parts").iter().filter_map(|part| part.get(key));
            parts.map(|call| call["name"].as_str().unwrap_or_default()).collect()
        };
        let is_model = content["role"] == "model";
        if items(content, "parts").is_empty() {
            return Err(format!("contents[{index}]: a turn without parts"));
        }
        let responses = names("functionResponse");
        if responses != open {
            return Err(format!(
                "contents[{index}]: the function response parts {responses:?} must be equal to the function call parts \
                 {open:?} of the function call turn"
            ));
        }
        open = names("functionCall");
        if is_model && contents.get(index + 1).is_some_and(|next| next["role"] == "model") {
            return Err(format!("contents[{index}]: two turns of the model"));
        }
        if !open.is_empty() && !is_model {
            return Err(format!("contents[{index}]: only the model calls functions"));
        }
    }
    last_is_open(&open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each API with conversations that it takes, and with those that it refuses and why.
    fn cases(api: MockApi) -> (Vec<Value>, Vec<(Value, &'static str)>) {
        let user = |content: Value| json!({"role": "user", "content": content});
        let assistant = |content: Value| json!({"role": "assistant", "content": content});
        match api {
            MockApi::Anthropic => {
                let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
                let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
                let text = json!({"type": "text", "text": "go"});
                (
                    vec![
                        json!([user(json!("go"))]),
                        json!([
                            user(json!("go")),
                            assistant(json!([call("a"), call("b")])),
                            user(json!([result("b"), result("a"), text]))
                        ]),
                    ],
                    vec![
                        (json!([]), "at least one"),
                        (json!([user(json!("a")), user(json!("b"))]), "alternate"),
                        (json!([user(json!([{"type": "text", "text": ""}]))]), "non-empty"),
                        (
                            json!([user(json!("a")), assistant(json!([call("a")])), user(json!([text]))]),
                            "without an answer",
                        ),
                        (json!([user(json!("a")), assistant(json!([call("a")]))]), "without an answer"),
                        (json!([user(json!([result("a")]))]), "unexpected answer"),
                        (
                            json!([
                                user(json!("a")),
                                assistant(json!([call("a")])),
                                user(json!([result("a"), result("a")]))
                            ]),
                            "answered twice",
                        ),
                        (
                            json!([
                                user(json!("a")),
                                assistant(json!([call("a")])),
                                user(json!([text, result("a")]))
                            ]),
                            "must come first",
                        ),
                        (json!([user(json!("a")), assistant(json!([call("a"), call("a")]))]), "unique"),
                        (json!([user(json!("a")), assistant(json!("b"))]), "end with"),
                    ],
                )
            }
            MockApi::Responses => {
                let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
                let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
                (
                    vec![json!([
                        user(json!("a")),
                        call("a"),
                        call("b"),
                        output("a"),
                        output("b"),
                        user(json!("b"))
                    ])],
                    vec![
                        (json!([user(json!("a")), call("a")]), "no tool output"),
                        (json!([user(json!("a")), output("a")]), "no tool call found"),
                        (json!([call("a"), output("a"), output("a")]), "second output"),
                        (json!([call("a"), output("a"), call("a"), output("a")]), "not unique"),
                        (json!([call(""), output("")]), "missing"),
                    ],
                )
            }
            MockApi::Chat => {
                let calls = |ids: &[&str]| {
                    let calls = ids.iter().map(|id| json!({"id": id, "type": "function", "function": {}}));
                    json!({"role": "assistant", "tool_calls": calls.collect::<Vec<_>>()})
                };
                let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
                (
                    vec![json!([
                        user(json!("a")),
                        calls(&["a", "b"]),
                        tool("b"),
                        tool("a"),
                        user(json!("b"))
                    ])],
                    vec![
                        (json!([user(json!("a")), tool("a")]), "must follow"),
                        (json!([calls(&["a"]), user(json!("b"))]), "without an answer"),
                        (json!([calls(&["a", "b"]), tool("a")]), "without an answer"),
                        (json!([calls(&["a"]), tool("a"), tool("a")]), "must follow"),
                        (json!([calls(&["a"]), tool("")]), "must follow"),
                        (json!([calls(&["a"]), tool("a"), calls(&["a"]), tool("a")]), "unique"),
                    ],
                )
            }
            MockApi::Gemini => {
                let turn = |role: &str, parts: Value| json!({"role": role, "parts": parts});
                let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
                let response = |name: &str| json!({"functionResponse": {"name": name, "response": {}}});
                let text = json!([{"text": "a"}]);
                (
                    vec![json!([
                        turn("user", text.clone()),
                        turn("model", json!([call("a"), call("b")])),
                        turn("user", json!([response("a"), response("b"), {"text": "go"}]))
                    ])],
                    vec![
                        (json!([turn("model", text.clone())]), "first turn"),
                        (
                            json!([turn("user", text.clone()), turn("model", json!([call("a")]))]),
                            "without an answer",
                        ),
                        (
                            json!([
                                turn("user", text.clone()),
                                turn("model", json!([call("a")])),
                                turn("user", text.clone())
                            ]),
                            "must be equal",
                        ),
                        (json!([turn("user", json!([response("a")]))]), "must be equal"),
                        (
                            json!([
                                turn("user", text.clone()),
                                turn("model", text.clone()),
                                turn("model", text.clone())
                            ]),
                            "two turns",
                        ),
                        (json!([turn("user", json!([]))]), "without parts"),
                    ],
                )
            }
        }
    }

    #[test]
    fn conversations_are_taken_or_refused_as_the_providers_do() {
        for api in [MockApi::Anthropic, MockApi::Responses, MockApi::Chat, MockApi::Gemini] {
            let key = ["messages", "input", "contents"].into_iter();
            let body = |messages: &Value| {
                Value::Object(key.clone().map(|key| (key.to_owned(), messages.clone())).collect())
            };
            let (right, wrong) = cases(api);
            for messages in right {
                assert_eq!(api.refusal(&body(&messages)), None, "{api:?}: {messages:#}");
            }
            for (messages, words) in wrong {
                let refusal = api.refusal(&body(&messages)).unwrap_or_default();
                assert!(refusal.contains(words), "{api:?}: {refusal:?} lacks {words:?}: {messages:#}");
            }
        }
    }
}
