//! Attachments, as far as an API can take them.

use std::borrow::Cow;

use llm_do_core::{Attachment, AttachmentSource};

use super::Api;
use super::scope::Scope;

/// The kinds of images that every API with images takes.
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Kinds of files that are text, besides all `text/`.
const TEXTS: &[&str] = &["json", "xml", "yaml", "toml", "javascript", "typescript", "sql", "x-sh", "svg+xml"];

/// An attachment as a model can take it.
pub(super) enum ShownAttachment<'a> {
    /// An image, a document, or sound or film, as bytes.
    Media { kind: Media, media_type: Cow<'a, str>, bytes: &'a [u8] },
    /// Text of a file.
    Text { text: &'a str },
    /// A note that replaces it.
    LeftOut(String),
}

/// What bytes show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Media {
    Image,
    Document,
    Recording,
}

/// Returns an attachment as the target takes it, and notes where it does not.
pub(super) fn shown<'a>(attachment: &'a Attachment, scope: &mut Scope<'_>) -> ShownAttachment<'a> {
    let AttachmentSource::Data(data) = &attachment.source else {
        return left_out(attachment, "unread", scope);
    };
    let bytes = data.as_slice();
    let media_type = media_type(attachment, bytes);
    match media(&media_type) {
        Some(kind) if takes(kind, scope) => ShownAttachment::Media { kind, media_type, bytes },
        Some(_) => left_out(attachment, &media_type, scope),
        None => match std::str::from_utf8(bytes) {
            Ok(text) if is_text(&media_type) => ShownAttachment::Text { text },
            _ => left_out(attachment, &media_type, scope),
        },
    }
}

/// Returns the text of a file with its name before it, for APIs without documents of text.
pub(super) fn named_text(attachment: &Attachment, text: &str) -> String {
    format!("File `{}`:\n\n{text}", attachment.name)
}

fn takes(kind: Media, scope: &Scope<'_>) -> bool {
    let profile = &scope.target.profile;
    match kind {
        Media::Image => profile.images,
        Media::Document => profile.documents && scope.target.api != Api::Ollama,
        Media::Recording => scope.target.api == Api::Gemini,
    }
}

fn left_out<'a>(attachment: &Attachment, media_type: &str, scope: &mut Scope<'_>) -> ShownAttachment<'a> {
    let name = &attachment.name;
    scope.left_out(&format!("the attachment `{name}` ({media_type})"));
    ShownAttachment::LeftOut(format!(
        "[The file `{name}` ({media_type}) is attached, but this model cannot look at it.]"
    ))
}

fn media(media_type: &str) -> Option<Media> {
    match media_type {
        kind if IMAGES.contains(&kind) => Some(Media::Image),
        "application/pdf" => Some(Media::Document),
        kind if kind.starts_with("audio/") || kind.starts_with("video/") => Some(Media::Recording),
        _ => None,
    }
}

fn is_text(media_type: &str) -> bool {
    let kind = media_type.split_once('/').map_or("", |(_, kind)| kind);
    media_type.starts_with("text/") || TEXTS.iter().any(|text| kind.ends_with(text))
}

/// Returns the media type without parameters; where none is given, what the bytes look like.
fn media_type<'a>(attachment: &'a Attachment, bytes: &[u8]) -> Cow<'a, str> {
    let Some(given) = &attachment.media_type else { return looks_like(bytes).into() };
    let given = given.split(';').next().unwrap_or_default().trim();
    match given {
        "image/jpg" => "image/jpeg".into(),
        given if given.bytes().any(|byte| byte.is_ascii_uppercase()) => given.to_ascii_lowercase().into(),
        given => given.into(),
    }
}

fn looks_like(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        bytes if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}
