//! Typed callers: Rust code calls a tool by its function's signature, through the gate.

use std::any::Any;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Probe;
use crate::{Approved, CallContext, Failure, FailureKind, FromCall, Output, Schema, ToolDefinition};

/// Writes one argument; `None` where the call provides it and not the caller.
pub type ArgumentWriter<T> = fn(&T) -> Option<Result<Value, serde_json::Error>>;

/// Reads the answer of a tool as what its function returns.
pub type AnswerReader<T> = fn(&Output) -> Result<T, Failure>;

/// A call of a tool while its arguments are gathered.
pub struct TypedCall {
    definition: &'static ToolDefinition,
    arguments: Result<Map<String, Value>, Failure>,
}

impl TypedCall {
    /// A call without arguments.
    pub fn new(definition: &'static ToolDefinition) -> Self {
        Self { definition, arguments: Ok(Map::new()) }
    }

    /// Adds an argument.
    #[must_use]
    pub fn with<T>(mut self, name: &str, value: &T, writer: ArgumentWriter<T>) -> Self {
        let Ok(arguments) = &mut self.arguments else { return self };
        match writer(value) {
            // As a model would, a caller leaves out what is optional and not given.
            Some(Ok(Value::Null)) if is_optional(&self.definition.input, name) => {}
            Some(Ok(value)) => {
                arguments.insert(name.to_owned(), value);
            }
            Some(Err(error)) => self.arguments = Err(unwritable(name, &error)),
            None => {}
        }
        self
    }

    /// Makes the call and reads the answer.
    pub fn send<T: 'static>(
        self,
        call: &CallContext,
        reader: AnswerReader<T>,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let call = call.clone();
        Box::pin(async move {
            let arguments = Value::Object(self.arguments?);
            reader(&call.call(&self.definition.name, arguments).await?)
        })
    }
}

/// Returns whether an argument may be absent and is then nothing else than null.
fn is_optional(input: &Schema, name: &str) -> bool {
    let required = input.source().get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
    let default = input.source().get("properties").and_then(|all| all.get(name)?.get("default"));
    !is_required && default.is_none()
}

fn unwritable(name: &str, error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Arguments, format!("`{name}` cannot be written as JSON: {error}"))
}

/// First choice: the call provides the value, so the one given is ignored.
pub trait IgnoredArgument<T> {
    /// Returns how the argument is written.
    fn argument(&self) -> ArgumentWriter<T>;
}

impl<T: FromCall> IgnoredArgument<T> for &&&Probe<T> {
    fn argument(&self) -> ArgumentWriter<T> {
        |_| None
    }
}

/// Second choice: the value is an argument.
pub trait WrittenArgument<T> {
    /// Returns how the argument is written.
    fn argument(&self) -> ArgumentWriter<T>;
}

impl<T: Serialize> WrittenArgument<T> for &&Probe<T> {
    fn argument(&self) -> ArgumentWriter<T> {
        |value| Some(serde_json::to_value(value))
    }
}

/// Third choice: the value would be an argument but cannot be written.
pub trait UnwritableArgument<T> {
    /// Cannot be called: nothing implements [`CallerArgument`].
    fn argument(&self) -> ArgumentWriter<T>
    where
        T: CallerArgument;
}

impl<T: DeserializeOwned> UnwritableArgument<T> for &Probe<T> {
    fn argument(&self) -> ArgumentWriter<T>
    where
        T: CallerArgument,
    {
        T::write
    }
}

/// Last choice: the type is not a parameter at all, which the definition of the tool explains.
pub trait NoArgument<T> {
    /// Returns how the argument is written.
    fn argument(&self) -> ArgumentWriter<T>;
}

impl<T> NoArgument<T> for Probe<T> {
    fn argument(&self) -> ArgumentWriter<T> {
        |_| None
    }
}

/// Explains a parameter that no typed caller can write. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "the typed caller of a tool cannot write `{Self}`",
    label = "does not implement `serde::Serialize`",
    note = "derive `serde::Serialize` for it, or leave the typed caller out: `#[tool(no_caller)]`"
)]
pub trait CallerArgument {
    /// Writes the value.
    fn write(&self) -> Option<Result<Value, serde_json::Error>>;
}

/// First choice: a result under another name, of which the answer is the value.
pub trait ResultAnswer<T> {
    /// Returns how the answer is read.
    fn answer(&self) -> AnswerReader<T>;
}

impl<T: DeserializeOwned + 'static, E> ResultAnswer<Result<T, E>> for &&Probe<Result<T, E>> {
    fn answer(&self) -> AnswerReader<Result<T, E>> {
        |output| read_answer(output).map(Ok)
    }
}

/// Second choice: the answer is the value.
pub trait ReadAnswer<T> {
    /// Returns how the answer is read.
    fn answer(&self) -> AnswerReader<T>;
}

impl<T: DeserializeOwned + 'static> ReadAnswer<T> for &Probe<T> {
    fn answer(&self) -> AnswerReader<T> {
        read_answer
    }
}

/// Last choice: the value cannot be read.
pub trait NoAnswer<T> {
    /// Cannot be called: nothing implements [`CallerAnswer`].
    fn answer(&self) -> AnswerReader<T>
    where
        T: CallerAnswer;
}

impl<T> NoAnswer<T> for Probe<T> {
    fn answer(&self) -> AnswerReader<T>
    where
        T: CallerAnswer,
    {
        T::read
    }
}

/// Explains a result that no typed caller can read. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "the typed caller of a tool cannot read `{Self}`",
    label = "does not implement `serde::Deserialize` for owned data",
    note = "derive `serde::Deserialize` for it, or leave the typed caller out: `#[tool(no_caller)]`"
)]
pub trait CallerAnswer: Sized {
    /// Reads the value.
    fn read(output: &Output) -> Result<Self, Failure>;
}

fn read_answer<T: DeserializeOwned + 'static>(output: &Output) -> Result<T, Failure> {
    // An output is wanted with its attachments; of a tool that returns nothing, only that it is done.
    let whole: [Box<dyn Any>; 2] = [Box::new(output.clone()), Box::new(())];
    match whole.into_iter().find_map(|value| value.downcast::<T>().ok()) {
        Some(value) => Ok(*value),
        None => output.parse(),
    }
}

/// A return type that is a result, whatever it is called.
pub trait ReturnsResult {
    /// The value.
    type Value;
}

impl<T, E> ReturnsResult for Result<T, E> {
    type Value = T;
}

/// A parameter that the typed caller leaves out, judging by the name of its type.
pub trait LeftOut {
    /// Does nothing: the type is injected indeed.
    fn left_out(&self) {}
}

impl<T: FromCall> LeftOut for &Probe<T> {}

impl Probe<Approved> {
    /// Does nothing: the type is injected indeed.
    pub fn left_out(&self) {}
}

/// Another type of the same name, which the typed caller would have to be given.
pub trait NotLeftOut<T> {
    /// Cannot be called: nothing implements [`InjectedType`].
    fn left_out(&self)
    where
        T: InjectedType;
}

impl<T> NotLeftOut<T> for Probe<T> {
    fn left_out(&self)
    where
        T: InjectedType,
    {
    }
}

/// Explains a type that only has the name of an injected one. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has the name of an injected type but is not injected",
    label = "would be missing in the typed caller of the tool",
    note = "give the type another name, or leave the typed caller out: `#[tool(no_caller)]`"
)]
pub trait InjectedType {}
