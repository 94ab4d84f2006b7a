//! What follows a recorded answer: the request that we send next, against the one that a client sent.
//!
//! For each pair of exchanges that follow each other, the first request is read into ours, our own reading of
//! the first answer is appended, then what the client added; the body that we write is compared with the body
//! that the client sent. Both are first brought into one form:
//!
//! - what says nothing is dropped: `null`, empty lists and objects, empty texts, and values that are the default;
//! - a text and a list of one text are the same;
//! - keys have one spelling, and schemas of Gemini one form;
//! - what a client may choose is dropped: `status` and `id` of items, `store`, `strict` of tools, and the white
//!   space in arguments.
//!
//! What still differs is listed in [`EXCEPTIONS`] with its reason.

use llm_do_core::Origin;
use llm_do_testing_macros::needs;
use serde_json::{Map, Value, json};

use super::super::encode::Encoder;
use super::super::{Api, Decoder};
use super::read_request::{gemini_output, list, lower_case_types, read};
use super::recorded::{Exchange, exchanges};
use super::requests::body;

/// A pair, why it differs, and how the difference is taken out of our body and theirs.
type Exception = (&'static str, &'static str, fn(&mut Value, &mut Value));

/// Pairs in which the client sent something else on purpose.
const EXCEPTIONS: &[Exception] = &[
    (
        "gemini-function-calling-gemini25-can-use-parallel-tool-calls",
        "the client repeats the signature of the first call on the second; we leave it where it came",
        |_, theirs| drop_at(theirs, "/contents/1/parts/1", "thoughtSignature"),
    ),
    (
        "gemini-streaming-tool-call-thought-signature",
        "the client sends an id that it made up; we send none where the API gave none. It writes the signature \
         in the other alphabet of base64; we as it came",
        |_, theirs| {
            let signature = theirs.pointer_mut("/contents/1/parts/0/thoughtSignature").unwrap();
            *signature = signature.as_str().unwrap().replace('-', "+").replace('_', "/").into();
            drop_at(theirs, "/contents/1/parts/0/functionCall", "id");
            drop_at(theirs, "/contents/2/parts/0/functionResponse", "id");
        },
    ),
    (
        "chat-gemini-compatible-api-with-tool-calls-without-id",
        "the host gave no id: the client makes up another one than we do",
        |ours, theirs| [ours, theirs].into_iter().for_each(same_made_ids),
    ),
    (
        "chat-openai-image-url-tool-response",
        "images at addresses are not known here, only those that are at hand",
        |ours, theirs| {
            for body in [ours, theirs] {
                body["messages"].as_array_mut().unwrap().pop();
            }
        },
    ),
    (
        "chat-ollama-ollama-cloud-tools-streaming",
        "the client sends the thinking under two names; we under the one in which it came",
        |_, theirs| drop_at(theirs, "/messages/1", "reasoning_content"),
    ),
    (
        "responses-openai-function-calling-gpt5nano-can-use-tools-with-multi-turn-st",
        "reasoning is encrypted twice, when the item is done and in the last event: the client sends the first, \
         we the last",
        |ours, theirs| {
            for body in [ours, theirs] {
                drop_at(body, "/input/1", "encrypted_content");
            }
        },
    ),
    (
        "responses-openai-native-tool-search-streaming",
        "the client leaves out the result of a search for tools and writes its call anew; we send both as they came",
        |ours, theirs| {
            let items = ours["input"].as_array_mut().unwrap();
            items.retain(|item| item["type"] != "tool_search_output");
            for body in [ours, theirs] {
                drop_at(body, "/input/1", "call_id");
                drop_at(body, "/input/1", "arguments");
            }
        },
    ),
];

/// Pairs that cannot be compared as a whole.
const NOT_COMPARED: &[(&str, &str)] = &[(
    "chat-groq-tool-use-failed-error",
    "the first answer is an error, from which the client makes up a call",
)];

fn drop_at(body: &mut Value, place: &str, key: &str) {
    body.pointer_mut(place).unwrap().as_object_mut().unwrap().shift_remove(key);
}

fn same_made_ids(body: &mut Value) {
    body["messages"][1]["tool_calls"][0]["id"] = "made".into();
    body["messages"][2]["tool_call_id"] = "made".into();
}

/// Returns the pairs of exchanges that follow each other.
fn pairs() -> Vec<(Exchange, Exchange)> {
    let mut all = exchanges();
    all.sort_by(|one, other| one.conversation.cmp(&other.conversation));
    let follows = |pair: &&[Exchange]| {
        let [first, next] = pair else { return false };
        !first.conversation.0.is_empty() && next.conversation.0 == first.conversation.0
    };
    all.windows(2).filter(follows).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

#[needs(wire)]
#[test]
fn after_each_recorded_answer_we_send_what_its_client_sent() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (first, next) in pairs() {
        if NOT_COMPARED.iter().any(|(id, _)| first.id.starts_with(id)) {
            continue;
        }
        compared += 1;
        let (mut ours, mut theirs) =
            (normal(first.api, &ours(&first, &next)), normal(first.api, &next.request));
        let exceptions = EXCEPTIONS.iter().filter(|(id, ..)| first.id.starts_with(id));
        for (id, _, mend) in exceptions {
            assert_ne!(ours, theirs, "{id} needs no exception");
            mend(&mut ours, &mut theirs);
        }
        if !next.request["previous_response_id"].is_null() {
            only_the_end(&mut ours, &theirs);
        }
        differences(&mut wrong, &format!("{} -> {}", first.id, next.id), &ours, &theirs);
    }
    assert!(wrong.is_empty(), "{compared} pairs compared:\n{}", wrong.join("\n"));
    assert!(compared == 0 || compared >= 39, "{compared} pairs compared");
}

/// Writes the request that follows the first exchange.
fn ours(first: &Exchange, next: &Exchange) -> Value {
    let provider = match (first.api, first.provider.as_str()) {
        (Api::OpenAiChat, "openai") => "openai-chat",
        (_, provider) => provider,
    };
    let (_, before) = read(first.api, provider, &first.request);
    let (target, mut asked) = read(next.api, provider, &next.request);
    let origin = Origin { provider: provider.into(), model: target.model.clone(), data: Value::Null };
    let mut decoder = Decoder::new(first.api, origin);
    decoder.push(&first.body, &mut Vec::new()).unwrap();
    let answer = decoder.finish(&mut Vec::new()).unwrap().message;
    let is_chained = !next.request["previous_response_id"].is_null();
    let known = if is_chained { 0 } else { before.conversation.messages().len() + 1 };
    let added = asked.conversation.messages()[known..].to_vec();
    let mut conversation = before.conversation.clone();
    conversation.push(answer.clone());
    for (index, message) in added.into_iter().enumerate() {
        conversation.push(if index == 0 { with_ids_of(&answer, &message).into() } else { message });
    }
    asked.conversation = conversation;
    body(&Encoder::new(target).encode(&asked.request()).unwrap())
}

/// Gives results the ids that we know the calls by, where the client names them otherwise or not at all.
fn with_ids_of(answer: &llm_do_core::Message, message: &llm_do_core::Message) -> llm_do_core::Message {
    let mut message = message.clone();
    let is_known = |id: &str| answer.tool_calls().any(|call| call.id == id);
    let mut calls = answer.tool_calls();
    for part in &mut message.parts {
        if let llm_do_core::Part::ToolResult(result) = part
            && let Some(call) = calls.next()
            && !is_known(&result.id)
        {
            result.id.clone_from(&call.id);
        }
    }
    message
}

/// Leaves as many items as the other has: its client left the rest at the provider.
fn only_the_end(ours: &mut Value, theirs: &Value) {
    let items = ours["input"].as_array_mut().unwrap();
    let surplus = items.len() - theirs["input"].as_array().unwrap().len();
    items.drain(..surplus);
}

/// Brings a body into the form in which it is compared.
fn normal(api: Api, body: &Value) -> Value {
    let mut body = body.clone();
    match api {
        Api::OpenAiChat | Api::Ollama => {
            body["messages"] = joined_system(&body["messages"]);
        }
        Api::Anthropic => {
            body["system"] = as_blocks(&body["system"], "text");
            each(&mut body["messages"], |message| {
                message["content"] = as_blocks(&message["content"], "text");
                each(&mut message["content"], |block| {
                    if block["type"] == "tool_result" {
                        block["content"] = as_blocks(&block["content"], "text");
                    }
                });
            });
        }
        Api::OpenAiResponses => each(&mut body["input"], |item| {
            if item["role"] == "user" {
                item["content"] = as_blocks(&item["content"], "input_text");
            }
            if item["type"] == "message" {
                item.as_object_mut().unwrap().shift_remove("type");
            }
            // An answer that says nothing.
            if item["role"] == "assistant" && item["content"] == "" {
                *item = Value::Null;
            }
        }),
        Api::Gemini => normal_gemini(&mut body),
    }
    without_nothing(api, &body).unwrap_or_default()
}

fn each(list: &mut Value, change: impl FnMut(&mut Value)) {
    list.as_array_mut().into_iter().flatten().for_each(change);
}

fn as_blocks(content: &Value, kind: &str) -> Value {
    match content {
        Value::String(text) if !text.is_empty() => json!([{"type": kind, "text": text}]),
        content => content.clone(),
    }
}

fn joined_system(messages: &Value) -> Value {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let system: Vec<String> =
        list(messages).filter(|message| message["role"] == "system").map(text).collect();
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system.join("\n\n")}));
    let rest = list(messages).filter(|message| message["role"] != "system").cloned();
    system.into_iter().chain(rest.map(one_text)).collect()
}

/// A list of one text is that text.
fn one_text(mut message: Value) -> Value {
    if let Some([piece]) = message["content"].as_array().map(Vec::as_slice)
        && piece["type"] == "text"
    {
        message["content"] = piece["text"].clone();
    }
    message
}

fn normal_gemini(body: &mut Value) {
    each(&mut body["contents"], |content| {
        let parts = content["parts"].as_array().cloned().unwrap_or_default();
        content["parts"] = parts.into_iter().flat_map(gemini_parts).collect();
    });
    each(&mut body["tools"], |tool| {
        if let Some(code) = tool.as_object_mut().unwrap().shift_remove("code_execution") {
            tool["codeExecution"] = code;
        }
        each(&mut tool["functionDeclarations"], |function| {
            let function = function.as_object_mut().unwrap();
            if let Some(schema) = function.shift_remove("parameters") {
                function.insert("parametersJsonSchema".into(), lower_case_types(&schema));
            }
        });
    });
    if let Some(system) = body["systemInstruction"].as_object_mut() {
        system.shift_remove("role");
    }
}

/// Puts the files of a result beside it, and the text of a result where we have it.
fn gemini_parts(mut part: Value) -> Vec<Value> {
    let mut parts = Vec::new();
    if let Some(data) = part.get("inline_data") {
        part = json!({"inlineData": {"mimeType": data["mime_type"], "data": data["data"]}});
    }
    if let Some(function) = part.get_mut("functionResponse").and_then(Value::as_object_mut) {
        let files = function.shift_remove("parts").unwrap_or_default();
        parts.extend(list(&files).cloned());
        let output = gemini_output(&function["response"]);
        function.insert("response".into(), json!({"output": output}));
    }
    parts.insert(0, part);
    parts
}

/// Drops what says nothing, and what clients may choose.
fn without_nothing(api: Api, value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().filter_map(|value| without_nothing(api, value)).collect();
            (!values.is_empty()).then(|| values.into())
        }
        // The text of arguments is compared by what it says.
        Value::Object(map) if map.get("arguments").is_some_and(Value::is_string) => {
            let mut map = map.clone();
            map["arguments"] = serde_json::from_str(map["arguments"].as_str().unwrap()).unwrap();
            without_nothing(api, &map.into())
        }
        Value::Object(map) => {
            let fields = map.iter().filter(|(key, value)| !is_default(api, key, value, map));
            let fields = fields.filter_map(|(key, value)| Some((key.clone(), without_nothing(api, value)?)));
            let fields: Map<String, Value> = fields.collect();
            // A call without arguments, and a tool without settings, say something all the same.
            let has_meaning = map.is_empty() || !fields.is_empty();
            has_meaning.then(|| fields.into())
        }
        value => Some(value.clone()),
    }
}

fn is_default(api: Api, key: &str, value: &Value, map: &Map<String, Value>) -> bool {
    match (api, key) {
        (_, "strict") => map.contains_key("parameters"),
        (_, "stream" | "is_error" | "thought") => *value == false,
        (_, "generationConfig" | "options") => *value == json!({}),
        (_, "n") => *value == 1,
        (_, "tool_choice") => *value == "auto" || *value == json!({"type": "auto"}),
        (Api::Anthropic, "caller") => *value == json!({"type": "direct"}),
        (Api::OpenAiResponses, "store" | "status" | "previous_response_id" | "include") => true,
        (Api::OpenAiResponses, "id") => map.contains_key("type"),
        (Api::OpenAiChat, "index") => map.contains_key("function"),
        (Api::Ollama, "think") => *value == false,
        (Api::Ollama, "id") => map.contains_key("function"),
        (Api::Ollama, "index") => map.contains_key("name"),
        (Api::Ollama, "tool_call_id") => true,
        _ => false,
    }
}

/// Lists the places at which two values differ.
fn differences(wrong: &mut Vec<String>, place: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                differences(wrong, &format!("{place}/{key}"), &ours[key], &theirs[key]);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (ours, theirs)) in one.iter().zip(other).enumerate() {
                differences(wrong, &format!("{place}/{index}"), ours, theirs);
            }
        }
        (ours, theirs) if ours != theirs => {
            let short = |value: &Value| value.to_string().chars().take(400).collect::<String>();
            wrong.push(format!("{place}:\n  ours   {}\n  theirs {}", short(ours), short(theirs)));
        }
        _ => {}
    }
}
