//! What the code written by `#[tool]` and `#[toolset]` is made of.
//!
//! The macros write little more than the names and types of a function; everything that can be said in
//! plain generic code is here. A free function becomes a [`Function`] behind a unit type
//! ([`FunctionTool`]), the methods of a type become the [`Function`]s of its instances ([`Instance`]).
//!
//! Whether a parameter comes from the model or from the call, and what a result turns into, is decided by
//! type: see [`Probe`].
//!
//! Only generated code names what is here. It reaches everything through this module, so that it needs one
//! path and users need no further dependencies.
#![doc(hidden)]

mod caller;
mod function;
mod instance;
mod parameter;
mod probe;
mod reply;

pub use futures::future::BoxFuture;

pub use crate::{
    Access, Approval, Assessment, CallContext, Effect, Failure, FromCall, Name, Opening, Output, Payload,
    Tool, ToolError,
};
pub use caller::{
    AnswerReader, ArgumentWriter, CallerAnswer, CallerArgument, IgnoredArgument, InjectedType, LeftOut,
    NoAnswer, NoArgument, NotLeftOut, ReadAnswer, ResultAnswer, ReturnsResult, TypedCall, UnwritableArgument,
    WrittenArgument,
};
pub use function::{Function, FunctionTool, define};
pub use instance::{Instance, InstanceToolset};
pub use parameter::{
    Declaration, Facts, InjectedParameter, InputParameter, NoParameter, Parameter, Parameters, ToolParameter,
    default_json,
};
pub use probe::Probe;
pub use reply::{
    DescribedValue, FallibleReturn, FunctionReply, NoValue, OutputValue, PlainReturn, Returned,
    SerializedValue, ToolFailure, ToolValue, UnknownErrorReturn, Written,
};
