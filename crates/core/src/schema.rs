//! JSON Schemas that are compiled once and explain themselves.
//!
//! A schema accepts a value or says, field by field, what is wrong and what is expected. References to
//! other documents are never fetched: neither from the network nor from files.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::arguments::json_type;
use crate::name::{Name, nearest};

/// A compiled JSON Schema.
#[derive(Clone)]
pub struct Schema {
    source: Arc<Value>,
    validator: Arc<Validator>,
}

/// More problems than these help nobody; a hostile value could have any number of them.
const MAX_PROBLEMS: usize = 200;

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a usable JSON Schema: {0}")]
pub struct SchemaError(String);

/// One way in which a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaProblem {
    /// The field, as a dotted path; empty for the value itself.
    pub field: String,
    /// The place, as a JSON pointer: the field itself, or the unknown key.
    pub pointer: String,
    /// What is wrong and what is expected.
    pub message: String,
}

/// A value that fits, completed with the schema's defaults.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Accepted {
    /// The completed value.
    pub value: Value,
    /// What had to be repaired, for the record.
    pub repairs: Vec<String>,
}

impl Schema {
    /// Compiles a schema.
    pub fn new(source: Value) -> Result<Self, SchemaError> {
        let validator = jsonschema::options()
            .with_retriever(NoRetrieval)
            .build(&source)
            .map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self { source: Arc::new(source), validator: Arc::new(validator) })
    }

    /// Generates the schema of a Rust type, without references where the type allows it.
    pub fn for_type<T: JsonSchema>() -> Result<Self, SchemaError> {
        Self::new(schema_value_of::<T>())
    }

    /// Generates the schema of a Rust type. A type whose schema cannot be used accepts nothing, which a first test
    /// shows.
    pub(crate) fn from_type<T: JsonSchema>() -> Self {
        Self::for_type::<T>().unwrap_or_else(|_| Self::nothing())
    }

    /// Generates the schema of a typed input. Unless the type says otherwise, fields that it does not have are
    /// refused: a misspelled optional field would be dropped silently.
    pub(crate) fn for_input<T: JsonSchema>() -> Self {
        let mut source = schema_value_of::<T>();
        if let Some(object) = source.as_object_mut().filter(|object| object.contains_key("properties")) {
            let says_otherwise = ["unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref"];
            if !says_otherwise.iter().any(|key| object.contains_key(*key)) {
                object.entry("additionalProperties").or_insert(false.into());
            }
        }
        Self::new(source).unwrap_or_else(|_| Self::nothing())
    }

    /// Generates the schema of what a Rust type is written as, which can differ from what it is read from.
    pub fn for_output<T: JsonSchema>() -> Result<Self, SchemaError> {
        Self::new(generated::<T>(SchemaSettings::draft2020_12().for_serialize()))
    }

    /// The schema of a callable without parameters.
    pub fn empty() -> Self {
        Self::object([], [])
    }

    /// Builds an object schema from properties and the names of the required ones.
    ///
    /// A property that is not a schema makes the object accept nothing, which a first test shows.
    pub fn object(
        properties: impl IntoIterator<Item = (String, Value)>,
        required: impl IntoIterator<Item = String>,
    ) -> Self {
        let properties: Map<String, Value> = properties.into_iter().collect();
        let required: Vec<String> = required.into_iter().collect();
        let source = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        Self::new(source).unwrap_or_else(|_| Self::nothing())
    }

    fn nothing() -> Self {
        let source = json!(false);
        #[expect(clippy::expect_used, reason = "`false` is a schema in every draft")]
        let validator = jsonschema::options().build(&source).expect("`false` is a schema");
        Self { source: Arc::new(source), validator: Arc::new(validator) }
    }

    /// Returns the schema as JSON.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Returns whether a value fits as it is.
    pub fn fits(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Completes a value with defaults and checks it; or says everything that is wrong.
    pub fn accept(&self, mut value: Value) -> Result<Accepted, Vec<SchemaProblem>> {
        let mut repairs = Vec::new();
        let mut problems = Vec::new();
        complete(&self.source, &mut value, "", &mut repairs, &mut problems);
        if problems.is_empty() && self.validator.is_valid(&value) {
            return Ok(Accepted { value, repairs });
        }
        problems.extend(self.problems(&value));
        Err(problems)
    }

    /// Lists what is wrong with a value.
    pub fn problems(&self, value: &Value) -> Vec<SchemaProblem> {
        let errors = self.validator.iter_errors(value);
        errors.flat_map(|error| self.problems_of(&error)).take(MAX_PROBLEMS).collect()
    }

    /// One problem, or one for each unknown key.
    fn problems_of(&self, error: &ValidationError<'_>) -> Vec<SchemaProblem> {
        let pointer = error.instance_path().as_str().to_owned();
        let field = pointer.trim_start_matches('/').replace('/', ".");
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.known_properties(error);
                let problem = |name: &String| {
                    let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    SchemaProblem { field: field.clone(), pointer, message: unknown_field(name, &known) }
                };
                unexpected.iter().take(MAX_PROBLEMS).map(problem).collect()
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                match meant_form(error, context) {
                    Some(errors) => errors.iter().flat_map(|error| self.problems_of(error)).collect(),
                    None => vec![SchemaProblem { message: self.explain(error), field, pointer }],
                }
            }
            _ => vec![SchemaProblem { message: self.explain(error), field, pointer }],
        }
    }

    fn explain(&self, error: &ValidationError<'_>) -> String {
        let found = error.instance();
        match error.kind() {
            ValidationErrorKind::Type { kind } => {
                format!("expected {}, got {}", expected(kind), json_type(found))
            }
            ValidationErrorKind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                let written =
                    found.as_object().map(|map| map.keys().map(String::as_str)).into_iter().flatten();
                let known = self.known_properties(error);
                let unknown = written.filter(|key| !known.contains(key));
                match nearest(property, unknown) {
                    Some(near) => format!("missing required field `{property}` (you wrote `{near}`)"),
                    None => format!("missing required field `{property}`"),
                }
            }
            ValidationErrorKind::Pattern { pattern } if pattern == Name::PATTERN => {
                format!("expected {}, got {found}", Name::RULE)
            }
            ValidationErrorKind::Enum { options } => {
                format!("expected one of {}, got {found}", listed(options))
            }
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
                if let Some(message) = self.kinds_of_object(error) {
                    return message;
                }
                match self.alternatives(error) {
                    forms if forms.is_empty() => {
                        format!("{} fits none of the allowed forms", json_type(found))
                    }
                    forms => format!("expected {}, got {found}", forms.join(" or ")),
                }
            }
            _ => error.to_string(),
        }
    }

    /// The allowed kinds of an object, where a field with a fixed value tells them apart.
    fn kinds_of_object(&self, error: &ValidationError<'_>) -> Option<String> {
        let found = error.instance().as_object()?;
        let forms = self.source.pointer(error.schema_path().as_str()).and_then(Value::as_array)?;
        let fixed = |form: &Value| {
            let properties = form.get("properties")?.as_object()?;
            properties
                .iter()
                .find_map(|(key, property)| Some((key.clone(), property.get("const")?.as_str()?.to_owned())))
        };
        let kinds: Vec<(String, String)> = forms.iter().filter_map(fixed).collect();
        let key = &kinds.first()?.0;
        let known: Vec<&str> = kinds.iter().map(|(_, kind)| kind.as_str()).collect();
        Some(match found.get(key).and_then(Value::as_str) {
            Some(written) => match nearest(written, known.iter().copied()) {
                Some(near) => format!("unknown `{key}` `{written}`, did you mean `{near}`?"),
                None => format!("unknown `{key}` `{written}`, expected one of {}", known.join(", ")),
            },
            None => format!("missing required field `{key}`, one of {}", known.join(", ")),
        })
    }

    /// The alternatives of a schema in words: fixed values, else types.
    fn alternatives(&self, error: &ValidationError<'_>) -> Vec<String> {
        let forms = self.source.pointer(error.schema_path().as_str()).and_then(Value::as_array);
        let mut message: Vec<String> = forms.into_iter().flatten().flat_map(form_message).collect();
        message.retain(|word| word != "null");
        message.dedup();
        message
    }

    /// Properties of the object schema in which an error arose.
    fn known_properties(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let location = error.schema_path().as_str();
        let parent = location.rsplit_once('/').map_or("", |(parent, _)| parent);
        let schema = self.source.pointer(parent);
        let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        properties.map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    }
}

/// The one of several allowed forms that the value was meant to have: right in kind, wrong in a detail.
fn meant_form<'e>(
    error: &ValidationError<'_>,
    forms: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e Vec<ValidationError<'static>>> {
    let is_scalar = !error.instance().is_object() && !error.instance().is_array();
    let is_other_form = |inner: &ValidationError<'_>| {
        let same_instance = inner.instance_path().as_str() == error.instance_path().as_str();
        let other_kind = matches!(inner.kind(), ValidationErrorKind::Type { .. }) && same_instance;
        other_kind || matches!(inner.kind(), ValidationErrorKind::Constant { .. })
    };
    let mut meant = forms.iter().filter(|errors| !errors.is_empty() && !errors.iter().any(is_other_form));
    let is_left_out_else = forms.iter().filter(|errors| !errors.iter().any(wants_null)).count() == 1;
    match (meant.next(), meant.next()) {
        (Some(form), None) if !is_scalar || is_left_out_else => Some(form),
        _ => None,
    }
}

/// Returns whether nothing but `null` would have been right.
fn wants_null(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) })
}

fn unknown_field(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown field `{name}`, did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown field `{name}`, no fields are expected"),
        None => format!("unknown field `{name}`, expected: {}", known.join(", ")),
    }
}

/// The values of an enumeration, without the `null` that only means that a value may be left out.
fn listed(options: &Value) -> Value {
    match options {
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).cloned().collect(),
        other => other.clone(),
    }
}

/// What one alternative of a schema allows: fixed values, else types.
fn form_message(form: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match form.get("const").or_else(|| form.get("enum")).or_else(|| form.get("type")) {
        Some(Value::Array(items)) => items.iter().map(word).collect(),
        Some(value) => vec![word(value)],
        None => {
            let inner = form.get("anyOf").or_else(|| form.get("oneOf")).and_then(Value::as_array);
            inner.into_iter().flatten().flat_map(form_message).collect()
        }
    }
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            // That a value may be left out is not news to whoever wrote one.
            let message = several.iter().map(|one| one.to_string()).filter(|word| word != "null");
            message.collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Returns the schema of a Rust type as JSON: subschemas inlined, without what only validators for other
/// languages use.
pub fn schema_value_of<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12())
}

fn generated<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// Drops integer formats and titles of Rust types, which mean nothing to a model.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let integer_format = map.get("format").and_then(Value::as_str).is_some_and(is_number_format);
            if integer_format {
                map.shift_remove("format");
            }
            if map.get("title").is_some_and(Value::is_string) {
                map.shift_remove("title");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn is_number_format(format: &str) -> bool {
    matches!(format, "float" | "double") || format.starts_with("int") || format.starts_with("uint")
}

/// Fills in defaults, reads `null` for an optional value as absent, and refuses integers beyond 64 bits.
fn complete(
    schema: &Value,
    value: &mut Value,
    field: &str,
    repairs: &mut Vec<String>,
    problems: &mut Vec<SchemaProblem>,
) {
    if schema.get("type").is_some_and(|kind| kind == "integer")
        && value.is_f64()
        && value.as_f64().is_some_and(|f| f.fract() == 0.0)
    {
        let pointer = format!("/{}", field.replace('.', "/"));
        let message = format!("{value} does not fit into 64 bits");
        problems.push(SchemaProblem { field: field.to_owned(), pointer, message });
    }
    match value {
        Value::Object(map) => complete_object(schema, map, field, repairs, problems),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    complete(item_schema, item, &join(field, &index.to_string()), repairs, problems);
                }
            }
        }
        _ => {}
    }
}

fn complete_object(
    schema: &Value,
    map: &mut Map<String, Value>,
    field: &str,
    repairs: &mut Vec<String>,
    problems: &mut Vec<SchemaProblem>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|item| item == name));
    for (name, property) in properties {
        let path = join(field, name);
        if map.get(name) == Some(&Value::Null) && !is_required(name) && forbids_null(property) {
            map.shift_remove(name);
            repairs.push(format!("`{path}`: null read as absent"));
        }
        match (map.get_mut(name), property.get("default")) {
            (Some(value), _) => complete(property, value, &path, repairs, problems),
            // Some schemas write that there is no default as one that does not fit.
            (None, Some(Value::Null)) if forbids_null(property) => {}
            (None, Some(default)) => {
                map.insert(name.clone(), default.clone());
            }
            (None, None) => {}
        }
    }
}

fn forbids_null(property: &Value) -> bool {
    match (property.get("type"), property.get("enum")) {
        (Some(Value::String(one)), _) => one != "null",
        (Some(Value::Array(several)), _) => !several.iter().any(|one| one == "null"),
        (None, Some(Value::Array(options))) => !options.iter().any(Value::is_null),
        _ => false,
    }
}

fn join(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// Refuses every reference to another document: a hostile schema must not cause a request.
struct NoRetrieval;

impl jsonschema::Retrieve for NoRetrieval {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("references to other documents are not followed (`{uri}`)").into())
    }
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.field, self.message)
        }
    }
}

/// Writes several problems as one line.
pub fn join_problems(problems: &[SchemaProblem]) -> String {
    problems.iter().map(SchemaProblem::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.source)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(schema: Value, value: Value) -> String {
        join_problems(&Schema::new(schema).unwrap().accept(value).unwrap_err())
    }

    #[test]
    fn a_reference_to_another_document_is_not_fetched() {
        let error = Schema::new(json!({"$ref": "http://127.0.0.1:9/schema.json"})).unwrap_err();
        assert!(error.to_string().contains("not a usable JSON Schema"), "{error}");
    }

    #[test]
    fn a_misnamed_field_is_named_with_the_one_that_was_meant() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
        let message = refusal(schema, json!({"file_path": "x"}));
        assert!(message.contains("missing required field `path` (you wrote `file_path`)"), "{message}");
        assert!(message.contains("unknown field `file_path`, did you mean `path`?"), "{message}");
    }

    #[test]
    fn a_limit_is_named_also_where_the_value_may_be_null() {
        let schema = json!({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]});
        assert_eq!(refusal(schema.clone(), json!(99)), "99 is greater than the maximum of 9");
        assert_eq!(refusal(schema, json!("x")), "expected integer, got \"x\"");
    }

    #[test]
    fn a_bad_name_is_explained_without_a_regular_expression() {
        let schema = json!({"type": "string", "pattern": Name::PATTERN});
        let expected = "expected 1 to 64 letters, digits, `_` and `-`, got \"a b\"";
        assert_eq!(refusal(schema, json!("a b")), expected);
    }

    #[test]
    fn of_very_many_problems_only_the_first_are_listed() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 1});
        let values: Map<String, Value> = (0..1_000).map(|number| (format!("k{number}"), json!(1))).collect();
        assert_eq!(Schema::new(schema).unwrap().problems(&values.clone().into()).len(), MAX_PROBLEMS);
        let none = Schema::empty();
        assert_eq!(none.problems(&values.into()).len(), MAX_PROBLEMS);
    }

    #[test]
    fn defaults_are_filled_in_at_every_level() {
        let schema = json!({"type": "object", "properties": {"options": {"type": "object", "properties": {"depth": {"type": "integer", "default": 3}}}}});
        let accepted = Schema::new(schema).unwrap().accept(json!({"options": {}})).unwrap();
        assert_eq!(accepted.value, json!({"options": {"depth": 3}}));
    }

    #[test]
    fn a_default_of_null_is_none_where_null_does_not_fit() {
        let schema =
            json!({"properties": {"a": {"type": "string", "default": null}, "b": {"default": null}}});
        let accepted = Schema::new(schema).unwrap().accept(json!({})).unwrap();
        assert_eq!(accepted.value, json!({"b": null}));
    }

    #[test]
    fn a_rust_type_gives_a_schema_without_references_and_rust_names() {
        #[derive(JsonSchema)]
        #[expect(dead_code)]
        struct Inner {
            count: u32,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code)]
        struct Outer {
            inner: Inner,
        }
        let text = Schema::for_type::<Outer>().unwrap().source().to_string();
        assert!(!text.contains("$ref") && !text.contains("uint32") && !text.contains("title"), "{text}");
    }
}
