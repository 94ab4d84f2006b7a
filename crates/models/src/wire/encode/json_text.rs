//! Writes JSON straight into bytes, without building values first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};

/// Writes a value.
pub(super) fn value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing into memory fails only for maps whose keys are not strings, and nothing here has such keys.
    let _ = serde_json::to_writer(out, value);
}

/// Writes a key with its colon.
pub(super) fn key(out: &mut Vec<u8>, key: &str) {
    value(out, key);
    out.push(b':');
}

/// Fields that are set one by one.
pub(super) trait Fields {
    /// Sets a field.
    fn put(&mut self, name: &str, content: impl Into<Value>);

    /// Sets a field where there is something to set.
    fn put_some(&mut self, name: &str, content: Option<impl Into<Value>>) {
        if let Some(content) = content {
            self.put(name, content);
        }
    }
}

impl Fields for Map<String, Value> {
    fn put(&mut self, name: &str, content: impl Into<Value>) {
        self.insert(name.into(), content.into());
    }
}

/// An object that is being written. It is closed when it is dropped.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// A list that is being written. It is closed when it is dropped.
pub(super) struct List<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Begins an object that is one more item of the history.
    pub(super) fn item(out: &'a mut Vec<u8>) -> Self {
        out.push(b',');
        Self::new(out)
    }

    /// Writes a field.
    pub(super) fn field(&mut self, name: &str, content: &(impl Serialize + ?Sized)) -> &mut Self {
        self.key(name);
        value(self.out, content);
        self
    }

    /// Writes a field where there is something to write.
    pub(super) fn some(&mut self, name: &str, content: Option<&(impl Serialize + ?Sized)>) -> &mut Self {
        if let Some(content) = content {
            self.field(name, content);
        }
        self
    }

    /// Writes a field whose content is JSON already.
    pub(super) fn json(&mut self, name: &str, json: &str) -> &mut Self {
        self.key(name);
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    /// Writes bytes as base64 behind a prefix, which needs no escaping.
    pub(super) fn base64(&mut self, name: &str, prefix: &str, bytes: &[u8]) -> &mut Self {
        self.key(name);
        base64(self.out, prefix, bytes);
        self
    }

    /// Writes those fields of an object that are not among `known`.
    pub(super) fn others(&mut self, object: Option<&Map<String, Value>>, known: &[&str]) -> &mut Self {
        for (name, content) in object.into_iter().flatten() {
            if !known.contains(&name.as_str()) {
                self.field(name, content);
            }
        }
        self
    }

    /// Begins an object as a field.
    pub(super) fn object(&mut self, name: &str) -> Object<'_> {
        self.key(name);
        Object::new(self.out)
    }

    /// Begins a list as a field.
    pub(super) fn list(&mut self, name: &str) -> List<'_> {
        self.key(name);
        self.out.push(b'[');
        List { out: self.out, is_empty: true }
    }

    fn key(&mut self, name: &str) {
        separate(self.out, &mut self.is_empty);
        key(self.out, name);
    }
}

impl List<'_> {
    /// Begins an object as an element.
    pub(super) fn object(&mut self) -> Object<'_> {
        separate(self.out, &mut self.is_empty);
        Object::new(self.out)
    }

    /// Writes an element.
    pub(super) fn value(&mut self, content: &(impl Serialize + ?Sized)) {
        separate(self.out, &mut self.is_empty);
        value(self.out, content);
    }

    /// Writes bytes as base64.
    pub(super) fn base64(&mut self, bytes: &[u8]) {
        separate(self.out, &mut self.is_empty);
        base64(self.out, "", bytes);
    }

    /// Returns whether it has no elements.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        self.out.push(b'}');
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.out.push(b']');
    }
}

fn separate(out: &mut Vec<u8>, is_empty: &mut bool) {
    if !std::mem::replace(is_empty, false) {
        out.push(b',');
    }
}

fn base64(out: &mut Vec<u8>, prefix: &str, bytes: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    // The space is exactly what the encoding needs.
    let _ = STANDARD.encode_slice(bytes, &mut out[start..]);
    out.push(b'"');
}
