//! Large values of events are kept in a table of their own, once each: the arguments of a call, for instance, are in the
//! answer of the model, in the question about the call, in its start and in the next request.
//!
//! In the JSON of an event, an object with one of the keys below is the reference to such a value. An object of the event
//! that looks like one is wrapped, so that nothing is ever taken for a reference by mistake.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llm_do_core::Digest;
use llm_do_runtime::StoreError;
use serde_json::{Map, Value};

use crate::error::corrupt;

/// Values of at least this length are kept apart; a reference has 77 bytes.
const MIN_BYTES: usize = 512;

/// A text.
const TEXT: &str = "$text";
/// Bytes that the event has in base64.
const BYTES: &str = "$bytes";
/// An array or object, itself with references.
const JSON: &str = "$json";
/// An object that only looks like a reference.
const PLAIN: &str = "$plain";

/// A large value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) body: Vec<u8>,
}

/// Replaces the large values in the body of an event.
pub(crate) fn pack(value: Value, blobs: &mut Vec<Blob>) -> Value {
    match value {
        Value::String(text) if text.len() >= MIN_BYTES => pack_text(text, blobs),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| pack_inner(item, blobs)).collect();
            Value::Array(items)
        }
        Value::Object(fields) => pack_object(fields, blobs),
        other => other,
    }
}

/// As [`pack`], for a value that may become a reference as a whole.
fn pack_inner(value: Value, blobs: &mut Vec<Blob>) -> Value {
    let packed = pack(value, blobs);
    if !packed.is_array() && !packed.is_object() {
        return packed;
    }
    let text = packed.to_string();
    if text.len() < MIN_BYTES { packed } else { reference(JSON, text.into_bytes(), blobs) }
}

fn pack_object(fields: Map<String, Value>, blobs: &mut Vec<Blob>) -> Value {
    let looks_like_reference = is_reference(&fields);
    let packed = fields.into_iter().map(|(key, value)| (key, pack_inner(value, blobs))).collect();
    let packed = Value::Object(packed);
    if looks_like_reference { single(PLAIN, packed) } else { packed }
}

fn pack_text(text: String, blobs: &mut Vec<Blob>) -> Value {
    match STANDARD.decode(&text) {
        // The decoder refuses every text that the encoder does not write.
        Ok(bytes) => reference(BYTES, bytes, blobs),
        Err(_) => reference(TEXT, text.into_bytes(), blobs),
    }
}

fn reference(kind: &str, body: Vec<u8>, blobs: &mut Vec<Blob>) -> Value {
    let digest = Digest::hash(&body);
    blobs.push(Blob { digest, body });
    single(kind, Value::String(digest.to_string()))
}

fn single(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

fn is_reference(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|key| matches!(key.as_str(), TEXT | BYTES | JSON | PLAIN))
}

/// Puts the large values back. The function finds them.
pub(crate) fn unpack(
    value: Value,
    find: &mut impl FnMut(&Digest) -> Result<Vec<u8>, StoreError>,
) -> Result<Value, StoreError> {
    match value {
        Value::Array(items) => {
            items.into_iter().map(|item| unpack(item, find)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(fields) if is_reference(&fields) => unpack_reference(fields, find),
        Value::Object(fields) => unpack_fields(fields, find),
        other => Ok(other),
    }
}

fn unpack_fields(
    fields: Map<String, Value>,
    find: &mut impl FnMut(&Digest) -> Result<Vec<u8>, StoreError>,
) -> Result<Value, StoreError> {
    let fields = fields.into_iter().map(|(key, value)| Ok((key, unpack(value, find)?)));
    fields.collect::<Result<_, StoreError>>().map(Value::Object)
}

fn unpack_reference(
    fields: Map<String, Value>,
    find: &mut impl FnMut(&Digest) -> Result<Vec<u8>, StoreError>,
) -> Result<Value, StoreError> {
    let (kind, value) = fields.into_iter().next().ok_or_else(|| corrupt("an empty reference"))?;
    let digest = match value {
        Value::Object(inner) if kind == PLAIN => return unpack_fields(inner, find),
        Value::String(digest) => digest.parse::<Digest>().map_err(corrupt)?,
        other => return Err(corrupt(format!("`{other}` is not a reference to a value"))),
    };
    let body = find(&digest)?;
    match kind.as_str() {
        TEXT => String::from_utf8(body).map(Value::String).map_err(corrupt),
        BYTES => Ok(Value::String(STANDARD.encode(body))),
        _ => unpack(serde_json::from_slice(&body).map_err(corrupt)?, find),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use llm_do_testing::Chance;
    use serde_json::json;

    use super::*;

    fn restored(packed: Value, blobs: &[Blob]) -> Value {
        let kept: HashMap<Digest, Vec<u8>> =
            blobs.iter().map(|blob| (blob.digest, blob.body.clone())).collect();
        unpack(packed, &mut |digest| kept.get(digest).cloned().ok_or_else(|| corrupt("missing"))).unwrap()
    }

    fn random(chance: &mut Chance, depth: usize) -> Value {
        match chance.below(if depth == 0 { 7 } else { 10 }) {
            0 => Value::Null,
            1 => json!(chance.bits()),
            2 => json!(f64::from_bits(chance.bits() & 0x7fdf_ffff_ffff_ffff)),
            3 => json!("é\u{0}\"\\".repeat(chance.below(300))),
            4 => json!(STANDARD.encode(vec![7; chance.below(900)])),
            5 => json!("A".repeat(chance.below(1_200))),
            6 => json!({ ["$text", "$json", "$bytes", "$plain", "a"][chance.below(5)]: chance.bits() }),
            7 => (0..chance.below(40)).map(|_| random(chance, depth - 1)).collect(),
            8 => {
                json!({ ["$text", "$json", "$bytes", "$plain"][chance.below(4)]: random(chance, depth - 1) })
            }
            _ => {
                let fields =
                    (0..chance.below(8)).map(|index| (format!("k{index}"), random(chance, depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    #[test]
    fn random_values_come_back_as_they_were() {
        for seed in 0..2_000 {
            let mut chance = Chance::new(seed);
            let value = random(&mut chance, 4);
            let mut blobs = Vec::new();
            let packed = pack(value.clone(), &mut blobs);
            assert_eq!(restored(packed, &blobs), value, "seed {seed}");
        }
    }

    #[test]
    fn a_text_that_stands_twice_is_kept_once() {
        let text = "word ".repeat(1_000);
        let mut blobs = Vec::new();
        let packed = pack(json!({"a": text, "b": [{"c": text}]}), &mut blobs);
        assert!(packed.to_string().len() < 300, "{packed}");
        assert_eq!(blobs.len(), 2);
        assert_eq!(blobs[0], blobs[1]);
    }

    #[test]
    fn base64_is_kept_as_bytes() {
        let mut blobs = Vec::new();
        pack(json!({"data": STANDARD.encode([1; 3_000])}), &mut blobs);
        assert_eq!(blobs[0].body, [1; 3_000]);
    }
}
