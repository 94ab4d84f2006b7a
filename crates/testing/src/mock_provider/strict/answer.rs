//! Answers of models as each protocol writes them.

use llm_do_provider_rules::Protocol;
use serde_json::{Value, json};

use super::StrictRequest;

/// What the model of a strict provider says.
#[derive(Debug, Clone)]
pub enum MockAnswer {
    /// Text, and the end.
    Says(String),
    /// Calls of tools, by name and arguments.
    Asks(Vec<(&'static str, Value)>),
    /// A search on the web by the provider, then text, and the end. Text alone where the protocol shows no searches.
    Searches(String),
}

/// The parts of an answer, and what makes its ids unique.
struct Answer<'a> {
    request: &'a StrictRequest,
    text: Option<&'a str>,
    calls: &'a [(&'static str, Value)],
    has_searched: bool,
    reasons: bool,
}

/// Writes an answer as the provider of a request does, with reasoning before it if the model reasons.
pub(super) fn written(request: &StrictRequest, answer: &MockAnswer, reasons: bool) -> Value {
    let (text, calls, has_searched) = match answer {
        MockAnswer::Says(text) => (Some(text.as_str()), &[][..], false),
        MockAnswer::Searches(text) => (Some(text.as_str()), &[][..], true),
        MockAnswer::Asks(calls) => (None, calls.as_slice(), false),
    };
    let answer = Answer { request, text, calls, has_searched, reasons };
    match request.protocol {
        Protocol::AnthropicMessages => answer.anthropic(),
        Protocol::OpenAiResponses => answer.responses(),
        Protocol::OpenAiChat => answer.chat(),
        Protocol::Gemini => answer.gemini(),
        Protocol::Ollama => answer.ollama(),
    }
}

impl Answer<'_> {
    /// Returns an id of the call with this index: Mistral's are short.
    fn call_id(&self, index: usize) -> String {
        let n = self.request.index;
        match self.request.provider.as_str() {
            "mistral" => format!("c{n:05}x{index:02}"),
            _ => format!("call_{n}_{index}"),
        }
    }

    fn stop<'a>(&self, with_calls: &'a str, without: &'a str) -> &'a str {
        if self.calls.is_empty() { without } else { with_calls }
    }

    fn thought(&self) -> String {
        format!("I think about request {}.", self.request.index)
    }

    fn anthropic(&self) -> Value {
        let n = self.request.index;
        let mut content: Vec<Value> = Vec::new();
        if self.reasons {
            content.push(
                json!({"type": "thinking", "thinking": self.thought(), "signature": format!("sig_{n}")}),
            );
        }
        if self.has_searched {
            let id = format!("srvtoolu_{n}");
            content.push(
                json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}}),
            );
            let found = json!({"type": "web_search_result", "title": "t", "url": "https://a.example",
                "encrypted_content": "e", "page_age": null});
            content.push(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [found]}));
        }
        content.extend(self.text.map(|text| json!({"type": "text", "text": text})));
        content.extend(self.calls.iter().enumerate().map(|(index, (name, input))| {
            json!({"type": "tool_use", "id": self.call_id(index), "name": name, "input": input})
        }));
        json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": self.stop("tool_use", "end_turn"), "usage": {"input_tokens": 3, "output_tokens": 2}})
    }

    fn responses(&self) -> Value {
        let n = self.request.index;
        let mut output: Vec<Value> = Vec::new();
        if self.reasons {
            let mut item = json!({"type": "reasoning", "id": format!("rs_{n}"), "summary": []});
            let included = self.request.body["include"].as_array().map_or(&[][..], Vec::as_slice);
            if included.iter().any(|field| field == "reasoning.encrypted_content") {
                item["encrypted_content"] = format!("gAAAA_{n}").into();
            }
            if self.request.body["reasoning"]["summary"].is_string() {
                item["summary"] = json!([{"type": "summary_text", "text": self.thought()}]);
            }
            output.push(item);
        }
        if self.has_searched {
            output.push(json!({"type": "web_search_call", "id": format!("ws_{n}"), "status": "completed",
                "action": {"type": "search", "query": "q"}}));
        }
        output.extend(self.text.map(|text| {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            json!({"type": "message", "id": format!("msg_{n}"), "status": "completed", "role": "assistant",
                "content": content})
        }));
        output.extend(self.calls.iter().enumerate().map(|(index, (name, input))| {
            json!({"type": "function_call", "id": format!("fc_{n}_{index}"), "call_id": self.call_id(index),
                "status": "completed", "name": name, "arguments": input.to_string()})
        }));
        let store = self.request.body["store"] != false;
        json!({"id": format!("resp_{n}"), "object": "response", "status": "completed", "store": store, "output": output,
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
    }

    fn chat(&self) -> Value {
        let calls = self.calls.iter().enumerate().map(|(index, (name, input))| {
            json!({"id": self.call_id(index), "type": "function",
                "function": {"name": name, "arguments": input.to_string()}})
        });
        let calls: Vec<Value> = calls.collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if self.reasons {
            message["reasoning_content"] = self.thought().into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let choice =
            json!({"index": 0, "message": message, "finish_reason": self.stop("tool_calls", "stop")});
        json!({"id": format!("chatcmpl_{}", self.request.index), "object": "chat.completion", "choices": [choice],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
    }

    /// Gemini characters the first call of a turn that it reasoned about.
    fn gemini(&self) -> Value {
        let mut parts: Vec<Value> = Vec::new();
        parts.extend(self.text.map(|text| json!({"text": text})));
        parts.extend(
            self.calls.iter().map(|(name, input)| json!({"functionCall": {"name": name, "args": input}})),
        );
        if self.reasons
            && let Some(first) = parts.first_mut()
        {
            first["thoughtSignature"] = format!("signature_{}", self.request.index).into();
        }
        let content = json!({"role": "model", "parts": parts});
        json!({"responseId": format!("g_{}", self.request.index),
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}})
    }

    fn ollama(&self) -> Value {
        let calls =
            self.calls.iter().map(|(name, input)| json!({"function": {"name": name, "arguments": input}}));
        let mut message = json!({"role": "assistant", "content": self.text.unwrap_or_default()});
        if !self.calls.is_empty() {
            message["tool_calls"] = calls.collect::<Vec<_>>().into();
        }
        let created_at = format!("2026-01-01T00:00:00.{:06}Z", self.request.index);
        json!({"model": "m", "created_at": created_at, "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 3, "eval_count": 2})
    }
}
