//! The subsets of JSON Schema that providers accept, as data, and how a schema is written in one of them.

use serde_json::{Map, Value, json};

use super::references::{merged, resolve};
use super::union::{accepts_null, are_disjoint, required, types};

/// A subset of JSON Schema.
pub(super) struct Dialect {
    /// The keywords that are sent as they are.
    keywords: &'static [&'static str],
    /// The formats of strings that are sent.
    formats: &'static [&'static str],
    /// Whether patterns without lookaround are sent.
    patterns: bool,
    /// The largest `minItems` that is sent.
    max_min_items: u64,
    /// Whether a restriction that cannot be sent makes the schema unusable. Otherwise it becomes part of the
    /// description.
    exact: bool,
    /// Whether every field must be required.
    all_required: bool,
    /// Whether objects may have fields that are not named.
    open: bool,
}

const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

const FORMATS_AND_URI: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// What OpenAI enforces with `strict: true`.
pub(super) const OPENAI_STRICT: Dialect = Dialect {
    keywords: &[
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "title",
    ],
    formats: FORMATS,
    patterns: true,
    max_min_items: u64::MAX,
    exact: true,
    all_required: true,
    open: false,
};

/// What Anthropic enforces in `output_config.format`.
pub(super) const ANTHROPIC: Dialect = Dialect {
    keywords: &["const", "description", "enum", "minItems", "title"],
    formats: FORMATS_AND_URI,
    patterns: false,
    max_min_items: 1,
    exact: false,
    all_required: false,
    open: false,
};

/// What Gemini accepts in `responseJsonSchema` and `parametersJsonSchema`.
pub(super) const GEMINI: Dialect = Dialect {
    keywords: &["description", "enum", "maxItems", "maximum", "minItems", "minimum"],
    formats: &[],
    patterns: false,
    max_min_items: u64::MAX,
    exact: false,
    all_required: false,
    open: true,
};

/// Keywords that restrict a value. All others are annotations, which validation ignores.
const ASSERTIONS: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Returns whether a keyword restricts a value.
pub(super) fn is_assertion(key: &str) -> bool {
    ASSERTIONS.contains(&key)
}

/// Returns the only type that a keyword restricts. Beside other types it means nothing.
fn type_restricted_by(key: &str) -> Option<&'static [&'static str]> {
    match key {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Some(&["integer", "number"])
        }
        "minLength" | "maxLength" | "pattern" | "format" => Some(&["string"]),
        "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems"
        | "contains" | "minContains" | "maxContains" | "unevaluatedItems" => Some(&["array"]),
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedProperties" => Some(&["object"]),
        _ => None,
    }
}

impl Dialect {
    /// Writes a schema whose top must be an object.
    pub(super) fn rewrite_root(&self, root: &Value) -> Option<Value> {
        let reference = root.get("$ref").and_then(Value::as_str);
        let mut top = match reference {
            Some(reference) => resolve(root, reference)?.as_object()?.clone(),
            None => root.as_object()?.clone(),
        };
        top.retain(|key, _| !matches!(key.as_str(), "$defs" | "definitions"));
        if types(&top)? != ["object"] || super::has_combiner(&top.clone().into()) {
            return None;
        }
        let mut written = self.within(root, &top.into())?;
        let definitions = self.definitions(root, &written)?;
        if !definitions.is_empty() {
            written["$defs"] = definitions.into();
        }
        Some(written)
    }

    /// Writes the definitions that a schema refers to, and those that they refer to.
    fn definitions(&self, root: &Value, written: &Value) -> Option<Map<String, Value>> {
        let mut definitions = Map::new();
        let mut names = Vec::new();
        collect_names(written, &mut names);
        while let Some(name) = names.pop() {
            if !definitions.contains_key(&name) {
                let source =
                    ["$defs", "definitions"].into_iter().find_map(|key| root.get(key)?.get(&name))?;
                let definition = self.within(root, source)?;
                collect_names(&definition, &mut names);
                definitions.insert(name, definition);
            }
        }
        Some(definitions)
    }

    /// Writes a schema of any type.
    pub(super) fn rewrite(&self, root: &Value) -> Option<Value> {
        self.within(root, root)
    }

    fn within(&self, root: &Value, schema: &Value) -> Option<Value> {
        Rewriter { dialect: self, root, asserts_formats: asserts_formats(root) }.schema(schema)
    }
}

/// Collects the names of the definitions that a written schema refers to.
fn collect_names(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|it| it.strip_prefix("#/$defs/")).map(str::to_owned));
            map.values().for_each(|member| collect_names(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        _ => {}
    }
}

/// Older drafts check formats; since 2019-09 they are annotations.
fn asserts_formats(root: &Value) -> bool {
    let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    ["draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old))
}

struct Rewriter<'a> {
    dialect: &'a Dialect,
    root: &'a Value,
    asserts_formats: bool,
}

/// A schema as it is written, with the restrictions that it cannot hold.
#[derive(Default)]
struct Written {
    map: Map<String, Value>,
    unsent: Vec<String>,
}

impl Rewriter<'_> {
    fn schema(&self, schema: &Value) -> Option<Value> {
        let Value::Object(map) = schema else {
            return self.dialect.open.then(|| json!({}));
        };
        if let Some(reference) = map.get("$ref") {
            return self.reference(reference.as_str()?, map);
        }
        let mut written = Written::default();
        let map = self.simplified(map, &mut written)?;
        if let Some(kinds) = split_types(&map) {
            return self.split(&map, &kinds, written);
        }
        let kinds = types(&map);
        for (key, value) in &map {
            let is_void = match (type_restricted_by(key), &kinds) {
                (Some(restricted), Some(kinds)) => !restricted.iter().any(|kind| kinds.contains(kind)),
                _ => false,
            };
            if !is_void {
                self.keyword(key, value, &mut written)?;
            }
        }
        self.typed(kinds.as_deref(), &map, &mut written)?;
        Some(written.described())
    }

    /// Keeps a reference to a definition. Only descriptions can be beside it, in a union of one.
    fn reference(&self, reference: &str, map: &Map<String, Value>) -> Option<Value> {
        let beside: Map<String, Value> = map
            .iter()
            .filter(|(key, _)| matches!(key.as_str(), "title" | "description"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let is_restricted = map.keys().any(|key| key != "$ref" && is_assertion(key));
        if is_restricted && self.dialect.exact {
            return None;
        }
        resolve(self.root, reference)?;
        let target = match reference.strip_prefix("#/definitions/").or(reference.strip_prefix("#/$defs/")) {
            Some(name) if !name.contains('/') => format!("#/$defs/{name}"),
            None if reference == "#" => reference.to_owned(),
            _ => return None,
        };
        let plain = json!({"$ref": target});
        if beside.is_empty() || self.dialect.open {
            return Some(plain);
        }
        let mut wrapped = beside;
        wrapped.insert("anyOf".into(), json!([plain]));
        Some(wrapped.into())
    }

    /// Removes the combiners that a dialect has no word for: `allOf` of one schema, and `oneOf`.
    fn simplified(&self, map: &Map<String, Value>, written: &mut Written) -> Option<Map<String, Value>> {
        let mut map = map.clone();
        if let Some(all) = map.shift_remove("allOf") {
            match all.as_array().map(Vec::as_slice) {
                Some([Value::Object(only)]) => match merged(only.clone(), map.clone()) {
                    Some(Value::Object(both)) => map = both,
                    _ => self.unsent("allOf", &all, written)?,
                },
                _ if !self.dialect.open => return None,
                _ => self.unsent("allOf", &all, written)?,
            }
        }
        if map.contains_key("$ref") || map.contains_key("allOf") {
            return None;
        }
        if let Some(one) = map.shift_remove("oneOf") {
            let branches = one.as_array()?;
            if map.contains_key("anyOf") || (self.dialect.exact && !are_disjoint(self.root, branches)) {
                return None;
            }
            map.insert("anyOf".into(), one);
        }
        Some(map)
    }

    /// Writes a schema of several types, of which one has members, as a union of schemas of one type.
    fn split(&self, map: &Map<String, Value>, kinds: &[&str], mut written: Written) -> Option<Value> {
        let is_combined = ["anyOf", "enum", "const"].iter().any(|key| map.contains_key(*key));
        if is_combined {
            return None;
        }
        let branch = |kind: &&str| {
            let mut branch = map.clone();
            branch.retain(|key, _| is_assertion(key));
            branch.insert("type".into(), (*kind).into());
            self.schema(&branch.into())
        };
        let branches: Option<Vec<Value>> = kinds.iter().map(branch).collect();
        for key in ["title", "description"].into_iter().filter(|key| self.dialect.keywords.contains(key)) {
            written.map.extend(map.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        written.map.insert("anyOf".into(), branches?.into());
        Some(written.described())
    }

    fn keyword(&self, key: &str, value: &Value, written: &mut Written) -> Option<()> {
        match key {
            // Objects and types are written last.
            "type" | "properties" | "required" | "additionalProperties" | "$defs" | "definitions" => {}
            "items" => written.put(key, self.schema(value)?),
            "anyOf" => {
                let branches = value.as_array().filter(|branches| !branches.is_empty())?;
                let branches: Option<Vec<Value>> = branches.iter().map(|it| self.schema(it)).collect();
                written.put(key, branches?);
            }
            "const" if !self.dialect.keywords.contains(&key) => written.put("enum", json!([value])),
            "format" => self.format(value, written)?,
            "pattern" if self.dialect.patterns && is_simple_pattern(value) => written.put(key, value.clone()),
            "minItems" if value.as_u64().is_none_or(|least| least > self.dialect.max_min_items) => {
                self.unsent(key, value, written)?;
            }
            key if self.dialect.keywords.contains(&key) => written.put(key, value.clone()),
            "patternProperties" if !self.dialect.open => return None,
            key if is_assertion(key) => self.unsent(key, value, written)?,
            _ => {}
        }
        Some(())
    }

    fn format(&self, value: &Value, written: &mut Written) -> Option<()> {
        let is_known = value.as_str().is_some_and(|format| self.dialect.formats.contains(&format));
        if is_known {
            written.put("format", value.clone());
            return Some(());
        }
        if self.asserts_formats {
            return self.unsent("format", value, written);
        }
        written.unsent.push(format!("format: {value}"));
        Some(())
    }

    /// Notes a restriction that is not sent, or gives up where the schema must keep its meaning.
    fn unsent(&self, key: &str, value: &Value, written: &mut Written) -> Option<()> {
        if self.dialect.exact {
            return None;
        }
        written.unsent.push(format!("{key}: {value}"));
        Some(())
    }

    /// Writes the types, and what belongs to objects and lists.
    fn typed(&self, kinds: Option<&[&str]>, map: &Map<String, Value>, written: &mut Written) -> Option<()> {
        let is_union = written.map.contains_key("anyOf");
        let is_restricted = written.map.keys().any(|key| is_assertion(key) && key != "anyOf");
        match kinds {
            None if is_union => (!is_restricted || self.dialect.open).then_some(()),
            None => (self.dialect.open && !is_restricted).then_some(()),
            Some(_) if is_union && !self.dialect.open => None,
            Some(["object"]) => {
                written.put("type", "object");
                self.object(map, written)
            }
            Some(["array"]) => {
                written.put("type", "array");
                (self.dialect.open || written.map.contains_key("items")).then_some(())
            }
            Some([]) => None,
            Some([only]) => self.scalar(&[only], json!(only), written),
            Some(several) => self.scalar(several, json!(several), written),
        }
    }

    fn scalar(&self, kinds: &[&str], written_type: Value, written: &mut Written) -> Option<()> {
        // A fixed object or list has no type that a provider enforces.
        let has_members = kinds.iter().any(|kind| matches!(*kind, "object" | "array"));
        if has_members && !self.dialect.open {
            return None;
        }
        written.put("type", written_type);
        Some(())
    }

    fn object(&self, map: &Map<String, Value>, written: &mut Written) -> Option<()> {
        let more = map.get("additionalProperties");
        let fields = map.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let is_closed = more == Some(&Value::Bool(false)) || (more.is_none() && !fields.is_empty());
        if !self.dialect.open && !is_closed {
            return None;
        }
        let names = self.required_names(map, &fields)?;
        let rewrite = |(name, schema): (&String, &Value)| Some((name.clone(), self.schema(schema)?));
        let properties: Map<_, _> = fields.iter().map(rewrite).collect::<Option<_>>()?;
        written.put("properties", properties);
        if !names.is_empty() || self.dialect.all_required {
            written.put("required", names);
        }
        match more {
            _ if !self.dialect.open => written.put("additionalProperties", false),
            Some(Value::Bool(more)) => written.put("additionalProperties", *more),
            Some(more) => written.put("additionalProperties", self.schema(more)?),
            None => {}
        }
        Some(())
    }

    /// Returns the names of the fields that are required: those that the schema says, and where all must be, those
    /// that can be `null` as well.
    fn required_names(&self, map: &Map<String, Value>, fields: &Map<String, Value>) -> Option<Vec<String>> {
        let said = required(map);
        if !said.iter().all(|name| fields.contains_key(*name)) && !self.dialect.open {
            return None;
        }
        if !self.dialect.all_required {
            return Some(said.into_iter().map(str::to_owned).collect());
        }
        let is_required = |(name, schema): (&String, &Value)| {
            let is_required = said.contains(&name.as_str()) || accepts_null(schema);
            is_required.then(|| name.clone())
        };
        fields.iter().map(is_required).collect()
    }
}

impl Written {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.map.insert(key.to_owned(), value.into());
    }

    /// Returns the schema, with the restrictions that are not sent in its description: so the model knows them.
    fn described(mut self) -> Value {
        if !self.unsent.is_empty() {
            let unsent = format!("({})", self.unsent.join(", "));
            let description = match self.map.get("description").and_then(Value::as_str) {
                Some(said) if !said.is_empty() => format!("{said} {unsent}"),
                _ => unsent,
            };
            self.put("description", description);
        }
        self.map.into()
    }
}

/// Returns the types of a schema that has several, if one of them has members.
fn split_types(map: &Map<String, Value>) -> Option<Vec<&str>> {
    let kinds = types(map)?;
    let has_members = kinds.iter().any(|kind| matches!(*kind, "object" | "array"));
    (kinds.len() > 1 && has_members).then_some(kinds)
}

/// Returns whether a pattern has neither lookaround, nor flags, nor references to groups.
fn is_simple_pattern(value: &Value) -> bool {
    let Some(pattern) = value.as_str() else { return false };
    let groups = pattern.match_indices("(?").all(|(at, _)| pattern[at + 2..].starts_with(':'));
    let bytes = pattern.as_bytes();
    let refers = bytes.windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9' | b'k'));
    groups && !refers
}
