//! Files that a model made: images of Responses and whatever Gemini holds inline.
//!
//! The provider's block stays, and is what goes back to it. The file beside it is for the caller.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use llm_do_core::{Attachment, Part};
use serde_json::Value;

use crate::wire::json::text;

/// Reads base64 with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Adds the files that blocks hold, each behind its block.
pub(super) fn with_generated_files(parts: Vec<Part>) -> Vec<Part> {
    let mut all = Vec::with_capacity(parts.len());
    let mut number = 0;
    for part in parts {
        let file = if let Part::Opaque(block) = &part { made_file(&block.value, number + 1) } else { None };
        all.push(part);
        if let Some(file) = file {
            number += 1;
            all.push(Part::Attachment(file));
        }
    }
    all
}

fn made_file(block: &Value, number: usize) -> Option<Attachment> {
    let (media_type, data) = image(block).or_else(|| inline(block))?;
    let bytes = BASE64.decode(data).ok().filter(|bytes| !bytes.is_empty())?;
    Some(Attachment::bytes(name(&media_type, number), media_type, bytes))
}

/// Returns the image of an item of Responses.
fn image(item: &Value) -> Option<(String, &str)> {
    let data = text(item, "result").filter(|_| text(item, "type") == Some("image_generation_call"))?;
    let format = text(item, "output_format").unwrap_or("png");
    Some((format!("image/{format}"), data))
}

/// Returns the data of a part of Gemini. Drafts among its thoughts are not part of the answer.
fn inline(part: &Value) -> Option<(String, &str)> {
    let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
    let held = part.get("inlineData").filter(|_| !is_thought)?;
    Some((text(held, "mimeType")?.to_owned(), text(held, "data")?))
}

/// Names a file by what it is, such as `image-1.png`.
fn name(media_type: &str, number: usize) -> String {
    let (kind, format) = media_type.split_once('/').unwrap_or((media_type, "bin"));
    let kind = if matches!(kind, "image" | "audio" | "video") { kind } else { "file" };
    let letters = format.chars().take_while(char::is_ascii_alphanumeric);
    let format: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let ending = match format.as_str() {
        "" => "bin",
        "jpeg" => "jpg",
        format => format,
    };
    format!("{kind}-{number}.{ending}")
}
