//! Parameters: taken from the model, or from the call.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use super::Probe;
use crate::{
    Approved, CallContext, Failure, FailureKind, FromCall, NeedSpec, Schema, ToolError, schema_value_of,
};

/// What is written about a parameter in the source of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Its key in the arguments.
    pub name: &'static str,
    /// What it means, for the model; empty where nothing is said.
    pub description: &'static str,
    /// What it is where the model leaves it out.
    pub default: Option<fn() -> Value>,
}

/// One parameter of a tool: how it is declared, and how its value is got.
pub struct Parameter<T> {
    facts: Facts,
    declare: fn(&Facts, &mut Declaration),
    take: fn(&Facts, &Approved, &CallContext) -> Result<T, ToolError>,
}

impl<T> Clone for Parameter<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Parameter<T> {}

/// What a tool takes and needs, gathered from its parameters.
#[derive(Debug, Default)]
pub struct Declaration {
    properties: Vec<(String, Value)>,
    required: Vec<String>,
    needs: Vec<NeedSpec>,
}

impl Declaration {
    /// Returns the schema of the arguments.
    pub(super) fn input(&self) -> Schema {
        Schema::object(self.properties.clone(), self.required.clone())
    }

    /// Returns the context values that are needed, each once.
    pub(super) fn needs(self) -> Vec<NeedSpec> {
        let mut needs = Vec::new();
        for need in self.needs {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    fn add_input<T: JsonSchema + DeserializeOwned>(&mut self, facts: &Facts) {
        let default = facts.default.map(|default| default());
        if default.is_none() && read_absent::<T>().is_err() {
            self.required.push(facts.name.to_owned());
        }
        self.properties.push((facts.name.to_owned(), property::<T>(facts, default)));
    }
}

fn property<T: JsonSchema>(facts: &Facts, default: Option<Value>) -> Value {
    let mut schema = match schema_value_of::<T>() {
        Value::Object(schema) => schema,
        // A schema may also be `true`, to which nothing could be added.
        _ => Map::new(),
    };
    schema.values_mut().for_each(|part| move_references(part, facts.name));
    if !facts.description.is_empty() {
        schema.insert("description".into(), facts.description.into());
    }
    if let Some(default) = default {
        schema.insert("default".into(), default);
    }
    Value::Object(schema)
}

/// Lets the references of a recursive type start at the arguments instead of at the type itself.
fn move_references(schema: &mut Value, parameter: &str) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(path) = reference.strip_prefix('#')
            {
                *reference = format!("#/properties/{parameter}{path}");
            }
            map.values_mut().for_each(|part| move_references(part, parameter));
        }
        Value::Array(items) => items.iter_mut().for_each(|part| move_references(part, parameter)),
        _ => {}
    }
}

/// All parameters of a tool, as nested pairs: `(first, (second, ()))`.
pub trait Parameters: Copy + Send + Sync + 'static {
    /// Their values, nested in the same way.
    type Values: Send + 'static;

    /// Adds each to a declaration.
    fn declare(&self, declaration: &mut Declaration);

    /// Gets the value of each.
    fn take(&self, approved: &Approved, call: &CallContext) -> Result<Self::Values, ToolError>;
}

impl Parameters for () {
    type Values = ();

    fn declare(&self, _declaration: &mut Declaration) {}

    fn take(&self, _approved: &Approved, _call: &CallContext) -> Result<(), ToolError> {
        Ok(())
    }
}

impl<T: Send + 'static, Rest: Parameters> Parameters for (Parameter<T>, Rest) {
    type Values = (T, Rest::Values);

    fn declare(&self, declaration: &mut Declaration) {
        let (parameter, rest) = self;
        (parameter.declare)(&parameter.facts, declaration);
        rest.declare(declaration);
    }

    fn take(&self, approved: &Approved, call: &CallContext) -> Result<Self::Values, ToolError> {
        let (parameter, rest) = self;
        let value = (parameter.take)(&parameter.facts, approved, call)?;
        Ok((value, rest.take(approved, call)?))
    }
}

/// First choice: the type is taken from the call.
pub trait InjectedParameter<T> {
    /// Makes the parameter.
    fn parameter(&self, facts: Facts) -> Parameter<T>;
}

impl<T: FromCall + 'static> InjectedParameter<T> for &&Probe<T> {
    fn parameter(&self, facts: Facts) -> Parameter<T> {
        self.injected(facts)
    }
}

impl<T> Probe<T> {
    /// Makes a parameter that is taken from the call and hidden from the model.
    pub fn injected(&self, facts: Facts) -> Parameter<T>
    where
        T: FromCall + 'static,
    {
        Parameter {
            facts,
            declare: |_, declaration| T::needs(&mut declaration.needs),
            take: |_, _, call| Ok(T::from_call(call)?),
        }
    }
}

/// Second choice: the type is taken from the arguments.
pub trait InputParameter<T> {
    /// Makes the parameter.
    fn parameter(&self, facts: Facts) -> Parameter<T>;
}

impl<T: JsonSchema + DeserializeOwned + Send + 'static> InputParameter<T> for &Probe<T> {
    fn parameter(&self, facts: Facts) -> Parameter<T> {
        Parameter {
            facts,
            declare: |facts, declaration| declaration.add_input::<T>(facts),
            take: |facts, approved, _| read_argument(facts, approved),
        }
    }
}

/// The arguments themselves, for a tool that must find again what its assessment found.
impl Probe<Approved> {
    /// Makes the parameter.
    pub fn parameter(&self, facts: Facts) -> Parameter<Approved> {
        Parameter { facts, declare: |_, _| {}, take: |_, approved, _| Ok(approved.clone()) }
    }
}

/// Last choice: the type is not a parameter of a tool.
pub trait NoParameter<T> {
    /// Cannot be called: nothing implements [`ToolParameter`].
    fn parameter(&self, facts: Facts) -> Parameter<T>
    where
        T: ToolParameter;
}

impl<T> NoParameter<T> for Probe<T> {
    fn parameter(&self, facts: Facts) -> Parameter<T>
    where
        T: ToolParameter,
    {
        T::parameter(facts)
    }
}

/// Explains a type that is not a parameter. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    label = "neither taken from the model nor injected",
    note = "to take it from the model, derive `serde::Deserialize` and `schemars::JsonSchema`",
    note = "to inject it, implement `FromCall`, or take a context value as `Need<T>`; `#[default]` is for what the model gives",
    note = "either way it must be `Send` and `'static`"
)]
pub trait ToolParameter: Sized {
    /// Makes the parameter.
    fn parameter(facts: Facts) -> Parameter<Self>;
}

fn read_argument<T: DeserializeOwned>(facts: &Facts, approved: &Approved) -> Result<T, ToolError> {
    let read = match (approved.value().get(facts.name), facts.default) {
        (Some(value), _) => T::deserialize(value),
        (None, Some(default)) => T::deserialize(default()),
        (None, None) => read_absent(),
    };
    read.map_err(|error| {
        ToolError::from_failure(Failure::new(FailureKind::Arguments, format!("`{}`: {error}", facts.name)))
    })
}

/// Reads a value that is not there, which optional types allow.
fn read_absent<T: DeserializeOwned>() -> Result<T, serde_json::Error> {
    T::deserialize(Absent)
}

/// A value that is not there.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("a value is required"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Writes the value of a `#[default]` as JSON.
///
/// One that cannot be written becomes null, which does not fit the parameter: the first call without the
/// argument shows it.
pub fn default_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
