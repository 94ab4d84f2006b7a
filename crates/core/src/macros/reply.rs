//! What a function returns, as what a tool answers.

use schemars::JsonSchema;
use serde::Serialize;

use super::Probe;
use crate::{Output, Schema, ToolError, ToolReply};

/// How what a function returns becomes the answer of its tool.
pub struct FunctionReply<R, V> {
    returned: Returned<R, V>,
    written: Written<V>,
}

impl<R, V> FunctionReply<R, V> {
    /// Answers with what the function returned.
    pub(super) fn give(self, returned: R) -> ToolReply {
        (self.returned.split)(returned).and_then(self.written.write)
    }

    /// Returns the schema of the value, where it has a useful one.
    pub(super) fn schema(&self) -> Option<Schema> {
        (self.written.schema)()
    }
}

impl<R, V> Clone for FunctionReply<R, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, V> Copy for FunctionReply<R, V> {}

/// How a return type is split into value and error.
pub struct Returned<R, V> {
    split: fn(R) -> Result<V, ToolError>,
}

impl<R, V> Returned<R, V> {
    /// Returns a probe of the value's type.
    pub fn value(&self) -> Probe<V> {
        Probe::new()
    }

    /// Joins it with how the value is written.
    pub fn written(self, written: Written<V>) -> FunctionReply<R, V> {
        FunctionReply { returned: self, written }
    }
}

impl<R, V> Clone for Returned<R, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, V> Copy for Returned<R, V> {}

/// First choice: a result whose error a tool can answer with.
pub trait FallibleReturn<V, E> {
    /// Splits it.
    fn returned(&self) -> Returned<Result<V, E>, V>;
}

impl<V, E: Into<ToolError>> FallibleReturn<V, E> for &&Probe<Result<V, E>> {
    fn returned(&self) -> Returned<Result<V, E>, V> {
        Returned { split: |result| result.map_err(Into::into) }
    }
}

/// Second choice: a result with any other error, which is refused.
pub trait UnknownErrorReturn<V, E> {
    /// Cannot be called: nothing implements [`ToolFailure`].
    fn returned(&self) -> Returned<Result<V, E>, V>
    where
        E: ToolFailure;
}

impl<V, E> UnknownErrorReturn<V, E> for &Probe<Result<V, E>> {
    fn returned(&self) -> Returned<Result<V, E>, V>
    where
        E: ToolFailure,
    {
        Returned { split: |result| result.map_err(ToolFailure::into_error) }
    }
}

/// Last choice: a plain value.
pub trait PlainReturn<V> {
    /// Takes it as it is.
    fn returned(&self) -> Returned<V, V>;
}

impl<V> PlainReturn<V> for Probe<V> {
    fn returned(&self) -> Returned<V, V> {
        Returned { split: Ok }
    }
}

/// Explains an error that a tool cannot answer with. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "does not turn into a `ToolError`",
    note = "return `ToolError`, made with `ToolError::new(..)` or `.map_err(ToolError::new)`, or an error that implements `std::error::Error`"
)]
pub trait ToolFailure {
    /// Turns it into an error of a tool.
    fn into_error(self) -> ToolError;
}

/// How a value becomes an output.
pub struct Written<V> {
    write: fn(V) -> ToolReply,
    schema: fn() -> Option<Schema>,
}

impl<V> Clone for Written<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Written<V> {}

/// First choice: an output, or text and the like, which needs no schema.
pub trait OutputValue<V> {
    /// Writes it.
    fn written(&self) -> Written<V>;
}

impl<V: Into<Output>> OutputValue<V> for &&&Probe<V> {
    fn written(&self) -> Written<V> {
        Written { write: |value| Ok(value.into()), schema: || None }
    }
}

/// Second choice: a value with a schema.
pub trait DescribedValue<V> {
    /// Writes it.
    fn written(&self) -> Written<V>;
}

impl<V: Serialize + JsonSchema> DescribedValue<V> for &&Probe<V> {
    fn written(&self) -> Written<V> {
        Written { write: write_json, schema: || Schema::for_output::<V>().ok() }
    }
}

/// Third choice: a value without a schema.
pub trait SerializedValue<V> {
    /// Writes it.
    fn written(&self) -> Written<V>;
}

impl<V: Serialize> SerializedValue<V> for &Probe<V> {
    fn written(&self) -> Written<V> {
        Written { write: write_json, schema: || None }
    }
}

/// Last choice: the type is not a result of a tool.
pub trait NoValue<V> {
    /// Cannot be called: nothing implements [`ToolValue`].
    fn written(&self) -> Written<V>
    where
        V: ToolValue;
}

impl<V> NoValue<V> for Probe<V> {
    fn written(&self) -> Written<V>
    where
        V: ToolValue,
    {
        Written { write: |value| Ok(value.into_output()), schema: || None }
    }
}

/// Explains a type that no tool can answer with. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "does not turn into an `Output`",
    note = "derive `serde::Serialize` (and `schemars::JsonSchema`, to describe it), or return `String`, `serde_json::Value` or `Output`"
)]
pub trait ToolValue {
    /// Turns it into an output.
    fn into_output(self) -> Output;
}

fn write_json<V: Serialize>(value: V) -> ToolReply {
    Ok(Output::json(serde_json::to_value(value)?))
}
