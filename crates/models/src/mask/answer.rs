//! Removes secrets from an answer: from its deltas as they arrive, and from the whole message at its end.
//!
//! Text and thinking are two texts, each searched across its deltas. Deltas are searched for the plain and the
//! JSON-escaped forms; the message, which is recorded and passed on, for all forms.

use std::sync::Arc;

use llm_do_core::{
    Message, ModelError, ModelPart, ModelResponse, Origin, Part, ProviderBlock, ServerCall, StopReason,
    ToolCall, parse_arguments,
};
use llm_do_secrets::StreamMask;

use super::Mask;

/// Masks one answer as it arrives.
pub(crate) struct AnswerMask {
    mask: Mask,
    text: StreamMask,
    thinking: StreamMask,
    is_thinking: bool,
}

impl AnswerMask {
    /// A mask for one answer.
    pub(crate) fn new(mask: &Mask) -> Self {
        let stream = || StreamMask::new(mask);
        Self { mask: mask.clone(), text: stream(), thinking: stream(), is_thinking: false }
    }

    /// Takes the next part and adds what can be shown to `parts`.
    pub(crate) fn push(&mut self, part: ModelPart, parts: &mut impl Extend<ModelPart>) {
        // Nearly every part is passed on as it is.
        let passes = match &part {
            ModelPart::Text(piece) => !self.is_thinking && self.text.passes(piece),
            ModelPart::Thinking(piece) => self.is_thinking && self.thinking.passes(piece),
            ModelPart::Notice(_) | ModelPart::Finished(_) => false,
        };
        if passes {
            return parts.extend([part]);
        }
        match part {
            ModelPart::Text(piece) => {
                parts.extend(self.switch(false));
                parts.extend(text_part(self.text.push(piece)));
            }
            ModelPart::Thinking(piece) => {
                parts.extend(self.switch(true));
                parts.extend(thinking_part(self.thinking.push(piece)));
            }
            ModelPart::Notice(notice) => {
                parts.extend([ModelPart::Notice(self.mask.text(&notice).into_owned())]);
            }
            ModelPart::Finished(response) => {
                self.finish(parts);
                parts.extend([ModelPart::Finished(self.mask.response(response))]);
            }
        }
    }

    /// Ends an answer, also one that broke off: adds what was held back to `parts`.
    pub(crate) fn finish(&mut self, parts: &mut impl Extend<ModelPart>) {
        parts.extend(thinking_part(self.thinking.finish()));
        parts.extend(text_part(self.text.finish()));
    }

    /// Returns an error without secrets in its message.
    pub(crate) fn error(&self, error: ModelError) -> ModelError {
        self.mask.error(error)
    }

    /// Notes which of the two goes on, and ends a block of the other one: what is held back of it belongs before
    /// what comes now.
    fn switch(&mut self, is_thinking: bool) -> Option<ModelPart> {
        if self.is_thinking == is_thinking {
            return None;
        }
        self.is_thinking = is_thinking;
        if is_thinking { text_part(self.text.interrupt()) } else { thinking_part(self.thinking.interrupt()) }
    }
}

fn text_part(text: String) -> Option<ModelPart> {
    (!text.is_empty()).then_some(ModelPart::Text(text))
}

fn thinking_part(text: String) -> Option<ModelPart> {
    (!text.is_empty()).then_some(ModelPart::Thinking(text))
}

impl Mask {
    /// Returns a complete answer without secrets.
    pub(crate) fn response(&self, response: ModelResponse) -> ModelResponse {
        let ModelResponse { message, stop, usage: _, server_calls } = &response;
        let is_clean_stop = !matches!(stop, StopReason::Other(reason) if self.finds(reason));
        let is_clean_call = |call: &ServerCall| self.is_clean_call(call);
        if is_clean_stop && self.is_clean_message(message) && server_calls.iter().all(is_clean_call) {
            return response;
        }
        let message = Arc::new(self.message(message));
        // A reason that this program does not know is text of the provider like any other.
        let stop = match response.stop {
            StopReason::Other(reason) => StopReason::Other(self.text(&reason).into_owned()),
            known => known,
        };
        let server_calls = response.server_calls.into_iter().map(|call| self.server_call(call)).collect();
        ModelResponse { message, stop, usage: response.usage, server_calls }
    }

    fn is_clean_message(&self, message: &Message) -> bool {
        let origin = message.origin.as_ref().is_none_or(|origin| !self.finds_in(&origin.data));
        origin
            && message.parts.iter().all(|part| self.is_clean_part(part))
            && !self.finds(&joined(message, text_of))
            && !self.finds(&joined(message, thinking_of))
    }

    fn is_clean_part(&self, part: &Part) -> bool {
        let is_clean_raw =
            |raw: &Option<ProviderBlock>| raw.as_ref().is_none_or(|raw| !self.finds_in(&raw.value));
        match part {
            Part::Text { text, raw } => !self.finds(text) && is_clean_raw(raw),
            Part::Thinking { text, raw, .. } => !self.finds(text) && is_clean_raw(raw),
            Part::ToolCall(call) => {
                let names = !self.finds(&call.id) && !self.finds(&call.name);
                names && self.arguments(&call.arguments).is_none() && is_clean_raw(&call.raw)
            }
            Part::Opaque(block) => !self.finds_in(&block.value),
            Part::ToolResult(_) | Part::Attachment(_) => true,
        }
    }

    fn is_clean_call(&self, call: &ServerCall) -> bool {
        !self.finds_in(&call.input) && call.output.as_ref().is_none_or(|output| !self.finds_in(output))
    }

    fn message(&self, message: &Message) -> Message {
        // A secret may begin in one block and end in the next one.
        let texts = self.pieces(&parts_of(message, text_of));
        let thinking = self.pieces(&parts_of(message, thinking_of));
        let (mut texts, mut thinking) = (texts.into_iter(), thinking.into_iter());
        let parts = message.parts.iter().map(|part| match part {
            Part::Text { raw, .. } => {
                Part::Text { text: next(&mut texts), raw: raw.clone().map(|raw| self.block(raw)) }
            }
            Part::Thinking { signature, raw, .. } => Part::Thinking {
                text: next(&mut thinking),
                signature: signature.clone(),
                raw: raw.clone().map(|raw| self.block(raw)),
            },
            Part::ToolCall(call) => Part::ToolCall(self.tool_call(call)),
            Part::Opaque(block) => Part::Opaque(self.block(block.clone())),
            other => other.clone(),
        });
        let parts = parts.collect();
        let origin = message.origin.clone();
        let origin = origin.map(|origin| Origin { data: self.value(origin.data), ..origin });
        Message { role: message.role, parts, origin }
    }

    fn block(&self, block: ProviderBlock) -> ProviderBlock {
        ProviderBlock { value: self.value(block.value), ..block }
    }

    fn tool_call(&self, call: &ToolCall) -> ToolCall {
        // A block whose arguments spell a secret in a way of their own cannot be masked as text.
        let is_spelled = !self.finds(&call.arguments) && self.arguments(&call.arguments).is_some();
        let raw = call.raw.clone().filter(|_| !is_spelled);
        ToolCall {
            id: self.text(&call.id).into_owned(),
            name: (&*self.text(&call.name)).into(),
            arguments: self.arguments(&call.arguments).map_or_else(|| call.arguments.clone(), Arc::from),
            raw: raw.map(|raw| self.block(raw)),
        }
    }

    fn server_call(&self, call: ServerCall) -> ServerCall {
        let output = call.output.map(|output| self.value(output));
        ServerCall { input: self.value(call.input), output, ..call }
    }

    /// Returns arguments without secrets, or nothing if there are none in them. JSON can spell a text in many ways,
    /// so arguments with escapes are compared as values, too.
    fn arguments(&self, arguments: &str) -> Option<String> {
        if self.finds(arguments) {
            return Some(self.text(arguments).into_owned());
        }
        let value = arguments.contains('\\').then(|| parse_arguments(arguments).ok()).flatten()?.value;
        self.finds_in(&value).then(|| self.value(value).to_string())
    }
}

fn next(texts: &mut impl Iterator<Item = Vec<u8>>) -> Arc<str> {
    // Secrets are whole characters, so what is left of a text is text.
    texts.next().and_then(|text| String::from_utf8(text).ok()).unwrap_or_default().into()
}

fn text_of(part: &Part) -> Option<&Arc<str>> {
    if let Part::Text { text, .. } = part { Some(text) } else { None }
}

fn thinking_of(part: &Part) -> Option<&Arc<str>> {
    if let Part::Thinking { text, .. } = part { Some(text) } else { None }
}

fn parts_of(message: &Message, of: fn(&Part) -> Option<&Arc<str>>) -> Vec<&[u8]> {
    message.parts.iter().filter_map(of).map(|text| text.as_bytes()).collect()
}

/// Joins the texts of one kind if there is more than one; a single one is searched by itself.
fn joined(message: &Message, of: fn(&Part) -> Option<&Arc<str>>) -> String {
    let texts = message.parts.iter().filter_map(of);
    if texts.clone().nth(1).is_none() { String::new() } else { texts.map(|text| &**text).collect() }
}
