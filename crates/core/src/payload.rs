//! Arguments and inputs in canonical form.
//!
//! A [`Payload`] is parsed once and never changes: the gate shows it, a grant hashes it, the record stores
//! it, the tool receives it. Two payloads are equal exactly if their digests are.
//!
//! The canonical text follows RFC 8785 (sorted keys, shortest numbers) with one deliberate difference:
//! integers beyond 2^53 keep all their digits, so that two different arguments never share a digest.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Digest, parse_arguments};

/// An immutable JSON value with its canonical text and digest.
#[derive(Clone)]
pub struct Payload(Arc<Canonical>);

struct Canonical {
    value: Value,
    text: Box<str>,
    digest: Digest,
    unparsed: bool,
    repair: Option<&'static str>,
}

impl Payload {
    /// Brings a value into canonical form.
    pub fn new(value: Value) -> Self {
        Self::repaired(value, None)
    }

    /// The value `null`, which every run needs once and all share.
    pub fn null() -> Self {
        static NULL: LazyLock<Payload> = LazyLock::new(|| Payload::new(Value::Null));
        NULL.clone()
    }

    /// Reads the argument text of a model. A text that cannot be read is kept, so that the refusal can show
    /// and count it.
    pub fn from_model(text: &str) -> Self {
        match parse_arguments(text) {
            Ok(arguments) => Self::repaired(arguments.value, arguments.repair),
            Err(_) => Self::unparsed(text),
        }
    }

    fn repaired(mut value: Value, repair: Option<&'static str>) -> Self {
        normalize(&mut value);
        let text = canonical_text(&value);
        let digest = Digest::hash(&text);
        Self(Arc::new(Canonical { value, text: text.into(), digest, unparsed: false, repair }))
    }

    fn unparsed(text: &str) -> Self {
        let digest = Digest::hash_parts([b"unparsed".as_slice(), text.as_bytes()]);
        let value = Value::String(text.to_owned());
        Self(Arc::new(Canonical { value, text: text.into(), digest, unparsed: true, repair: None }))
    }

    /// Serializes a value into a payload.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_value(value).map(Self::new)
    }

    /// Returns the value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Reads the value as a Rust type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.0.value)
    }

    /// Returns the value as an object, if it is one.
    pub fn object(&self) -> Option<&Map<String, Value>> {
        self.0.value.as_object()
    }

    /// Returns the text where it is all that was given, as to an agent without a schema.
    pub fn lone_text(&self) -> Option<&str> {
        self.object().filter(|object| object.len() == 1)?.get("input")?.as_str()
    }

    /// Returns the canonical text; for unparsed arguments, the text as it came.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the digest of the canonical text.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Says what was repaired when the text of a model was read.
    pub fn repair(&self) -> Option<&'static str> {
        self.0.repair
    }

    /// Returns whether this is the text of arguments that could not be read.
    pub fn is_unparsed(&self) -> bool {
        self.0.unparsed
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self::new(value)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.text)
    }
}

/// The only key of an object that stands for arguments which could not be read.
const UNPARSED: &str = "$unparsed";

/// The only key of an object that stands for a value which would otherwise be read as one of these two objects.
const ESCAPED: &str = "$value";

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = &self.0.value;
        if self.is_unparsed() {
            return serializer.collect_map([(UNPARSED, value)]);
        }
        match lone_entry(value, UNPARSED).or_else(|| lone_entry(value, ESCAPED)) {
            Some(_) => serializer.collect_map([(ESCAPED, value)]),
            None => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(match (lone_entry(&value, UNPARSED), lone_entry(&value, ESCAPED)) {
            (Some(Value::String(text)), _) => Self::unparsed(text),
            (_, Some(escaped)) => Self::new(escaped.clone()),
            _ => Self::new(value),
        })
    }
}

/// Returns the value of a key if an object has no other.
fn lone_entry<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object().filter(|object| object.len() == 1)?.get(key)
}

/// Brings a value itself into canonical form: what a tool walks over is what its text shows.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(normalize);
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// A float that is exactly an integer, as that integer.
pub(crate) fn whole(float: f64) -> Option<i64> {
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be exact")]
    exact.then_some(float as i64)
}

/// Writes a value as canonical JSON.
pub fn canonical_text(value: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(value, &mut text);
    // JSON is UTF-8, and nothing else was written.
    String::from_utf8(text).unwrap_or_default()
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => write_number(number, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => write_object(map, out),
        Value::Null | Value::Bool(_) | Value::String(_) => write_plain(value, out),
    }
}

/// Writes compact JSON, in which strings are escaped as RFC 8785 asks.
fn write_plain(value: &impl Serialize, out: &mut Vec<u8>) {
    // Neither serializing plain values nor writing into memory can fail.
    let _ = serde_json::to_writer(out, value);
}

fn write_object(map: &Map<String, Value>, out: &mut Vec<u8>) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    // RFC 8785 orders keys by UTF-16 code units, which differs from byte order beyond the basic plane.
    entries.sort_by(|(a, _), (b, _)| {
        if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
    });
    out.push(b'{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_plain(key, out);
        out.push(b':');
        write_canonical(value, out);
    }
    out.push(b'}');
}

fn write_number(number: &serde_json::Number, out: &mut Vec<u8>) {
    match number.as_f64() {
        Some(float) if !number.is_i64() && !number.is_u64() => {
            let float = if float == 0.0 { 0.0 } else { float };
            if float.fract() == 0.0 && whole(float).is_none() {
                // Without an exponent it would be the text of an integer that is another number.
                return out.extend_from_slice(format!("{float:e}").as_bytes());
            }
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(float).as_bytes());
        }
        _ => write_plain(number, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_and_number_spelling_do_not_matter() {
        let a: Value = serde_json::from_str(r#"{"b": 1e3, "a": [1.0, -0.0, "x\u0041"]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a": [1, 0, "xA"], "b": 1000}"#).unwrap();
        assert_eq!(Payload::new(a).text(), Payload::new(b).text());
    }

    #[test]
    fn large_integers_keep_their_digits() {
        let a = Payload::new(json!({"id": 9007199254740993_i64}));
        let b = Payload::new(json!({"id": 9007199254740992_i64}));
        assert_ne!(a.digest(), b.digest());
        assert_eq!(a.text(), r#"{"id":9007199254740993}"#);
    }

    #[test]
    fn a_large_float_and_an_integer_of_the_same_digits_differ() {
        let float = Payload::new(json!({"id": 1_234_567_890_123_456_800_f64}));
        let integer = Payload::new(json!({"id": 1_234_567_890_123_456_800_i64}));
        assert_ne!(float.digest(), integer.digest());
        assert_eq!(float.text(), r#"{"id":1.2345678901234568e18}"#);
    }

    #[test]
    fn a_payload_is_read_back_as_it_was_written() {
        let payloads = [
            Payload::from_model("{\"path\": "),
            Payload::from_model("{\"a\": 1}"),
            Payload::new(json!({"$unparsed": "x"})),
            Payload::new(json!({"$value": {"$unparsed": "x"}})),
            Payload::new(json!({"$unparsed": "x", "more": 1})),
            Payload::new(json!("text")),
        ];
        for payload in payloads {
            let text = serde_json::to_string(&payload).unwrap();
            let read: Payload = serde_json::from_str(&text).unwrap();
            assert_eq!((&read, read.is_unparsed()), (&payload, payload.is_unparsed()), "{text}");
        }
    }

    /// Without exact reading of floats, one in ten would come back as another number, and so with another digest.
    #[test]
    fn floats_are_read_back_exactly() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let bits = random.u64(..);
            let float = f64::from_bits(bits);
            if float.is_finite() {
                let text = serde_json::to_string(&float).unwrap();
                assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), bits, "{text}");
            }
        }
    }

    #[test]
    fn keys_are_sorted_by_utf16_code_units() {
        let value = json!({"\u{fb33}": 1, "\u{1f600}": 2, "a": 3});
        assert_eq!(canonical_text(&value), "{\"a\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }
}
