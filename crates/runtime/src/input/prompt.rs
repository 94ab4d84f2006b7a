//! How an input becomes the first message of an agent.

use std::path::Path;
use std::sync::Arc;

use llm_do_core::{
    Attachment, AttachmentPolicy, AttachmentSource, Failure, FailureKind, InputPart, Key, Message, Part,
    Payload, Prompt, Role, Step, StepKind, input_attachments, read_attachment,
};
use serde_json::{Map, Value};

use crate::input::attachments;
use crate::input::long_input::LongInput;
use crate::input::received;
use crate::state::live::{AgentFrame, LiveCall};
use crate::state::run_state::RunState;

/// With what an agent's conversation goes on.
pub(crate) enum Opening {
    /// A message that is new.
    New(Arc<Message>),
    /// Messages of a record, as they were sent.
    Recorded(Vec<Arc<Message>>),
}

/// Makes the message with which an agent's conversation goes on; on a resume, takes the recorded ones, with the
/// history that came before them where the conversation is still empty.
pub(crate) async fn opening(
    run: &RunState,
    call: &LiveCall,
    frame: &AgentFrame,
    step: &Step,
) -> Result<Opening, Failure> {
    let spec = frame.plan.spec.as_ref();
    let prompt = spec.and_then(|spec| spec.prompt.as_ref());
    let root = run.shared.root.as_deref();
    let typed = shown_as_json(&step.payload, root).filter(|_| prompt.is_none());
    let first_request = call.info.id.child("t1/model");
    unless_ended(call, introduce(run, frame, &first_request, &step.payload)).await?;
    let recorded = run.replay.as_ref().and_then(|replay| replay.request_messages(&first_request));
    if let Some(messages) = recorded.filter(|messages| !messages.is_empty()) {
        // What is shown of long texts is recorded, and the texts themselves are kept anew.
        if frame.agent_state.descriptors.get().is_some() {
            let given = parts(call, prompt, &step.payload, root).await?;
            let long = LongInput::find(run, call, frame, &given).await;
            let room = long.as_ref().and_then(LongInput::room);
            received::parts(call, frame, given, typed.as_ref(), room)?;
        }
        return Ok(Opening::Recorded(messages.to_vec()));
    }
    let given = parts(call, prompt, &step.payload, root).await?;
    let precondition = match &step.kind {
        StepKind::Agent { precondition } => precondition.as_ref(),
        _ => None,
    };
    let usual = AttachmentPolicy::default();
    let policy = spec.map_or(&usual, |spec| &spec.attachment_policy);
    let long = LongInput::find(run, call, frame, &given).await;
    if let Some(notice) = long.as_ref().and_then(LongInput::notice) {
        run.notice(&call.info, notice);
    }
    let room = long.as_ref().and_then(LongInput::room);
    let given = received::parts(call, frame, given, typed.as_ref(), room)?;
    let attached = attachments::load(run, call, policy, attached(&given), precondition).await?;
    let parts = with_content(given, attached);
    Ok(Opening::New(Arc::new(Message { role: Role::User, parts, origin: None })))
}

/// Makes the text and the attachments with which an agent starts.
pub(crate) async fn parts(
    call: &LiveCall,
    prompt: Option<&Prompt>,
    input: &Payload,
    root: Option<&Path>,
) -> Result<Vec<InputPart>, Failure> {
    match prompt {
        Some(prompt) => unless_ended(call, prompt.parts(input)).await,
        None => {
            let attachments = input_attachments(input).into_iter().map(InputPart::Attachment);
            Ok(std::iter::once(InputPart::Text(default_prompt(input, root))).chain(attachments).collect())
        }
    }
}

/// Waits for what somebody else makes, as long as the call goes on.
async fn unless_ended<T>(
    call: &LiveCall,
    made: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = call.cancel.cancelled() => Err(Failure::new(FailureKind::Tool, "the call was ended")),
        made = made => made,
    }
}

/// Returns the attachments among the parts.
pub(crate) fn attached(parts: &[InputPart]) -> Vec<Attachment> {
    let attachment = |part: &InputPart| match part {
        InputPart::Attachment(attachment) => Some(attachment.clone()),
        InputPart::Text(_) => None,
    };
    parts.iter().filter_map(attachment).collect()
}

/// Puts what was read in the place of each attachment. A message has some text.
fn with_content(given: Vec<InputPart>, read: Vec<Attachment>) -> Vec<Part> {
    let mut read = read.into_iter();
    let content = |part: InputPart| match part {
        InputPart::Text(text) if text.trim().is_empty() => None,
        InputPart::Text(text) => Some(Part::text(text)),
        InputPart::Attachment(_) => read.next().map(Part::Attachment),
    };
    let mut parts: Vec<Part> = given.into_iter().filter_map(content).collect();
    if !parts.iter().any(|part| matches!(part, Part::Text { .. })) {
        parts.insert(0, Part::text("(no input)"));
    }
    parts
}

/// Puts what an agent is told before its instructions, when its conversation opens; on a resume, what it was told
/// then. A chat keeps it over its turns.
async fn introduce(
    run: &RunState,
    frame: &AgentFrame,
    request: &Key,
    input: &Payload,
) -> Result<(), Failure> {
    let Some(spec) = frame.plan.spec.as_ref() else { return Ok(()) };
    let Some(preamble) = spec.preamble.as_ref().filter(|_| frame.agent_state.instructions.get().is_none())
    else {
        return Ok(());
    };
    let recorded = run.replay.as_ref().and_then(|replay| replay.request_instructions(request));
    let text = match recorded {
        Some(text) => text.clone(),
        None => {
            let told = preamble.text().await?;
            let instructions = match &spec.template {
                Some(template) => template.render(input)?.into(),
                None => spec.instructions.clone(),
            };
            let texts = [told.as_str(), &instructions].into_iter().filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join("\n\n").into()
        }
    };
    let _ = frame.agent_state.instructions.set(text);
    Ok(())
}

/// Makes the instructions from the first input, where they are a template. A chat keeps them over its turns. Where
/// there is text before them, they are made with it.
pub(crate) fn instruct(frame: &AgentFrame, input: &Payload) -> Result<(), Failure> {
    let spec = frame.plan.spec.as_ref().filter(|spec| spec.preamble.is_none());
    let Some(template) = spec.and_then(|spec| spec.template.as_ref()) else { return Ok(()) };
    if frame.agent_state.instructions.get().is_none() {
        let _ = frame.agent_state.instructions.set(template.render(input)?.into());
    }
    Ok(())
}

/// The text of an input, or its JSON where it is more than a text with attachments.
pub(crate) fn default_prompt(input: &Payload, root: Option<&Path>) -> String {
    match (shown_as_json(input, root), input.object().and_then(|map| map.get("input"))) {
        (None, Some(Value::String(text))) => text.clone(),
        (value, _) => serde_json::to_string_pretty(&value).unwrap_or_default(),
    }
}

/// The value whose JSON an agent reads; nothing where the input is a text with attachments.
fn shown_as_json(input: &Payload, root: Option<&Path>) -> Option<Value> {
    let only_text = |map: &Map<String, Value>| map.keys().all(|key| key == "input" || key == "attachments");
    match input.object().filter(|map| only_text(map)).and_then(|map| map.get("input")) {
        Some(Value::String(_)) => None,
        _ => Some(sorted(&with_shown_attachments(input.value(), root))),
    }
}

/// The input with names in the place of attachments: their content follows the text, and where a file lies on this
/// machine is not for a model.
fn with_shown_attachments(input: &Value, root: Option<&Path>) -> Value {
    let mut shown = input.clone();
    let attachments = shown.get_mut("attachments").and_then(Value::as_array_mut);
    for item in attachments.into_iter().flatten() {
        if let Some(attachment) = read_attachment(item) {
            *item = Value::String(shown_name(&attachment, root));
        }
    }
    shown
}

/// A file relative to the project, or its name if it lies elsewhere.
fn shown_name(attachment: &Attachment, root: Option<&Path>) -> String {
    let path = match &attachment.source {
        AttachmentSource::Path(path) => path,
        AttachmentSource::Data(_) => return attachment.name.clone(),
    };
    if path.is_relative() {
        return path.to_string_lossy().into_owned();
    }
    let below = |root: &Path| path.strip_prefix(root).ok().map(Path::to_path_buf);
    let absolute = || std::path::absolute(root?).ok().and_then(|root| below(&root));
    let relative = root.and_then(below).or_else(absolute);
    relative.map_or_else(|| attachment.name.clone(), |path| path.to_string_lossy().into_owned())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_that_is_more_than_text_becomes_sorted_json() {
        assert_eq!(default_prompt(&Payload::new(json!({"input": "hi", "attachments": []})), None), "hi");
        let text = default_prompt(&Payload::new(json!({"b": {"d": 1, "c": 2}, "a": 1})), None);
        assert_eq!(text, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2,\n    \"d\": 1\n  }\n}");
    }
}
