//! How an input becomes the first message of an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use llm_do_core::{
    Asker, Attachment, AttachmentSource, Failure, FailureKind, Message, Part, Payload, Role,
    input_attachments,
};
use serde_json::{Map, Value};

use crate::live::{Frame, LiveCall};
use crate::state::RunState;

/// The largest file that is attached.
const LARGEST: u64 = 32 * 1024 * 1024;

/// Makes the messages with which an agent's conversation goes on; on a resume, takes the recorded ones, with the
/// history that came before them where the conversation is still empty.
pub(crate) async fn opening(
    run: &RunState,
    call: &LiveCall,
    frame: &Frame,
    input: &Payload,
) -> Result<Vec<Arc<Message>>, Failure> {
    let first_request = call.info.id.child("t1/model");
    let recorded = run.replay.as_ref().and_then(|replay| replay.request_messages(&first_request));
    if let Some(messages) = recorded.filter(|messages| !messages.is_empty()) {
        return Ok(messages.to_vec());
    }
    let text = match frame.plan.spec.as_ref().and_then(|spec| spec.prompt.as_ref()) {
        Some(prompt) => prompt.render(input)?,
        None => default_prompt(input),
    };
    let mut parts = vec![Part::text(if text.trim().is_empty() { "(no input)".to_owned() } else { text })];
    for attachment in input_attachments(input) {
        parts.push(Part::Attachment(load(run.shared.root.clone(), attachment, call.asker).await?));
    }
    Ok(vec![Arc::new(Message { role: Role::User, parts, origin: None })])
}

/// Makes the instructions from the first input, where they are a template. A chat keeps them over its turns.
pub(crate) fn instruct(frame: &Frame, input: &Payload) -> Result<(), Failure> {
    let Some(template) = frame.plan.spec.as_ref().and_then(|spec| spec.template.as_ref()) else {
        return Ok(());
    };
    if frame.seat.instructions.get().is_none() {
        let _ = frame.seat.instructions.set(template.render(input)?.into());
    }
    Ok(())
}

/// The text of an input, or its JSON where it is more than a text with attachments.
fn default_prompt(input: &Payload) -> String {
    let only_text = |map: &Map<String, Value>| map.keys().all(|key| key == "input" || key == "attachments");
    match input.object().filter(|map| only_text(map)).and_then(|map| map.get("input")) {
        Some(Value::String(text)) => text.clone(),
        _ => serde_json::to_string_pretty(&sorted(input.value())).unwrap_or_default(),
    }
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

/// Reads an attached file. What a model or a tool attaches lies below the project's root; the embedding
/// program may attach any file.
async fn load(root: Option<PathBuf>, attachment: Attachment, asker: Asker) -> Result<Attachment, Failure> {
    let AttachmentSource::Path(path) = attachment.source.clone() else { return Ok(attachment) };
    let read = tokio::task::spawn_blocking(move || match asker {
        Asker::Embedder => read_any(root.as_deref(), &path),
        Asker::Model | Asker::Code => read_below(root.as_deref(), &path),
    });
    let bytes = read.await.unwrap_or_else(|error| Err(error.to_string())).map_err(|reason| {
        Failure::new(
            FailureKind::Arguments,
            format!("the attachment `{}` could not be read: {reason}", attachment.name),
        )
    })?;
    let media_type = attachment.media_type.clone().unwrap_or_else(|| media_type(&attachment.name, &bytes));
    Ok(Attachment::bytes(attachment.name, media_type, bytes))
}

fn read_any(root: Option<&Path>, path: &Path) -> Result<Vec<u8>, String> {
    let path = root.map_or_else(|| path.to_path_buf(), |root| root.join(path));
    let metadata = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    check_kind(metadata.is_file())?;
    let file = std::fs::File::open(&path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    read_bounded(file, metadata.is_file(), metadata.len())
}

fn read_below(root: Option<&Path>, path: &Path) -> Result<Vec<u8>, String> {
    let root = root.ok_or("no project root is set, so agents and tools cannot attach files")?;
    let directory = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| error.to_string())?;
    let outside =
        |error: std::io::Error| format!("{error}; only files below the project root can be attached");
    check_kind(directory.metadata(path).map_err(outside)?.is_file())?;
    let file = directory.open(path).map_err(outside)?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    read_bounded(file, metadata.is_file(), metadata.len())
}

/// Looked at before a file is opened, as opening a pipe waits for its other end.
fn check_kind(is_file: bool) -> Result<(), String> {
    if is_file { Ok(()) } else { Err("it is not a regular file".to_owned()) }
}

fn read_bounded(file: impl std::io::Read, is_file: bool, size: u64) -> Result<Vec<u8>, String> {
    use std::io::Read;
    check_kind(is_file)?;
    if size > LARGEST {
        return Err(format!("it has {size} bytes, and at most {LARGEST} can be attached"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Finds the media type from the content, else from the name, else from whether it is text.
fn media_type(name: &str, bytes: &[u8]) -> String {
    if let Some(kind) = infer::get(bytes) {
        return kind.mime_type().to_owned();
    }
    let fallback = if std::str::from_utf8(bytes).is_ok() { "text/plain" } else { "application/octet-stream" };
    mime_guess::from_path(name).first_raw().unwrap_or(fallback).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_that_is_more_than_text_becomes_sorted_json() {
        assert_eq!(default_prompt(&Payload::new(json!({"input": "hi", "attachments": []}))), "hi");
        let text = default_prompt(&Payload::new(json!({"b": {"d": 1, "c": 2}, "a": 1})));
        assert_eq!(text, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2,\n    \"d\": 1\n  }\n}");
    }

    #[test]
    fn a_media_type_comes_from_the_content_before_the_name() {
        assert_eq!(media_type("a.txt", b"\x89PNG\r\n\x1a\n0000"), "image/png");
        assert_eq!(media_type("a.csv", b"a,b"), "text/csv");
        assert_eq!(media_type("unknown", "é".as_bytes()), "text/plain");
        assert_eq!(media_type("unknown", &[0xff, 0x00]), "application/octet-stream");
    }
}
