//! Images, documents and the size of a request.

use serde_json::Value;

use super::{blocks, is_type};
use crate::json::{items, text};
use crate::refusal::Check;
use crate::{ProviderRefusal, media};

const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
const MAX_IMAGE_BYTES: usize = 10 * 1024 * 1024;
const MAX_PIXELS: u32 = 8000;
/// The limit of each side when a request has more than [`MANY_IMAGES`].
const MAX_PIXELS_OF_MANY: u32 = 2000;
const MANY_IMAGES: usize = 20;
const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn check(body: &Value, messages: &[Value]) -> Check {
    let all: Vec<&Value> = messages
        .iter()
        .flat_map(blocks)
        .flat_map(|block| items(block, "content").iter().chain([block]))
        .collect();
    let images: Vec<&Value> = all.iter().copied().filter(|block| is_type(block, "image")).collect();
    for image in &images {
        check_image(&image["source"], images.len() > MANY_IMAGES)?;
    }
    for document in all.iter().filter(|block| is_type(block, "document")) {
        check_document(&document["source"])?;
    }
    match length(body) > MAX_REQUEST_BYTES {
        true => Err(ProviderRefusal::anthropic_error(
            "anthropic.request_too_large",
            413,
            "request_too_large",
            "Request exceeds the maximum size",
        )),
        false => Ok(()),
    }
}

fn check_image(source: &Value, is_one_of_many: bool) -> Check {
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.image", message));
    if source["type"] != "base64" {
        return Ok(());
    }
    if !IMAGE_TYPES.contains(&text(source, "media_type")) {
        return refuse(
            "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        );
    }
    if text(source, "data").len() > MAX_IMAGE_BYTES {
        return refuse("image.source.base64: image exceeds 10 MB maximum");
    }
    let longest = media::dimensions(text(source, "data")).map_or(0, |(width, height)| width.max(height));
    if longest > MAX_PIXELS {
        return refuse(
            "image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        );
    }
    match is_one_of_many && longest > MAX_PIXELS_OF_MANY {
        true => refuse(
            "image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image \
             requests: 2000 pixels",
        ),
        false => Ok(()),
    }
}

fn check_document(source: &Value) -> Check {
    let expected = match text(source, "type") {
        "base64" => "application/pdf",
        "text" => "text/plain",
        _ => return Ok(()),
    };
    match text(source, "media_type") == expected {
        true => Ok(()),
        false => Err(ProviderRefusal::anthropic(
            "anthropic.document",
            format!("document.source.media_type: Input should be '{expected}'"),
        )),
    }
}

/// Returns about how long the body is as text, without writing it.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| length(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(key, item)| key.len() + length(item) + 4).sum::<usize>() + 2,
        _ => 4,
    }
}
