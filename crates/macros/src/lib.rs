//! `#[tool]` and `#[toolset]`: Rust functions and methods as tools of llm-do.
//!
//! The macros read a signature, check it and write down what it contains. What a type *means*, whether a
//! parameter comes from the model or is injected, what a result turns into, is decided by the compiler in
//! `llm_do_core::macros`, to which the written code refers and which does all the work at run time.

mod attributes;
mod caller;
mod definition;
mod documentation;
mod free_function;
mod parameter;
mod signature;
mod support;
mod toolset;

use proc_macro::TokenStream;

/// Makes a tool of a function.
///
/// The function becomes a unit type of the same name that implements `Tool` and turns into an
/// `Arc<dyn Tool>`. Its doc comment describes the tool to the model, doc comments on parameters describe
/// those.
///
/// ```
/// use llm_do_core::{Need, ToolError};
/// use llm_do_macros::tool;
/// # struct ProjectRoot;
///
/// /// Finds files whose name matches a glob.
/// #[tool(access = "read", approval = "pre_approved", effect = "pure")]
/// async fn find_files(
///     root: Need<ProjectRoot>,
///     /// The glob, such as `*.rs`.
///     pattern: String,
///     #[default(200)] limit: u32,
/// ) -> Result<Vec<String>, ToolError> {
///     # let _ = (root, pattern, limit);
///     Ok(Vec::new())
/// }
///
/// let tools = llm_do_core::StatelessToolset::new("files", [find_files.into()]);
/// ```
///
/// # Parameters
///
/// A type that implements `FromCall` (`Need<T>`, `CallContext`, `Cancellation`, `Progress`, one's own) is
/// injected and hidden from the model; `&CallContext` and references to other injected values will do too.
/// `Approved` gives the arguments as the gate allowed them, with the precondition of the assessment. Every
/// other type is taken from the model and needs `Deserialize` and `JsonSchema`. An `Option` need not be
/// given, nor what has a `#[default(..)]`.
///
/// # Results
///
/// A value, or a `Result` whose error turns into a `ToolError`. Text and `Output` are answered as they are,
/// nothing as `done`, everything that implements `Serialize` as JSON. A sync function runs on threads for
/// blocking code.
///
/// # Keys
///
/// | Key | Meaning | Default |
/// | --- | --- | --- |
/// | `name = ".."` | the name by which it is called | that of the function |
/// | `description = ".."` | what it does, for the model | the doc comment |
/// | `access = "read"`, `"write"`, `"admin"` | what it may do at most | `write` |
/// | `approval = "pre_approved"`, `"ask"`, `"blocked"` | whether it must ask | `ask` |
/// | `effect = "pure"`, `"idempotent"`, `"once"`, `"calls"` | what happens when it is begun twice | `once` |
/// | `time_limit = "30s"` | how long a call may run: `ms`, `s`, `m` or `h` | none |
/// | `sequential` | runs alone among the calls of one turn | in parallel |
/// | `manual_only` | only a person or code may call it, never a model | off |
/// | `assess = path` | a `fn(&Payload, &CallContext) -> Assessment` that judges a call | the definition |
/// | `no_caller` | leaves the typed caller out | |
///
/// # Calling it from Rust
///
/// `find_files::call(&call, "*.rs", 200).await?` calls the tool by its name, through the gate, and gives
/// what the function returns. Injected parameters are left out; those that cannot be recognized by name are
/// marked with `#[inject]`. `find_files::direct(..)` is the function itself, for tests of its code.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(free_function::expand(attributes.into(), item.into()))
}

/// Makes a toolset of a type: its methods marked with `#[tool]` are the tools of an instance.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use llm_do_macros::toolset;
///
/// #[derive(Default)]
/// struct Counter(AtomicU32);
///
/// #[toolset]
/// impl Counter {
///     /// Adds to the count and returns it.
///     #[tool(approval = "pre_approved")]
///     async fn add(&self, amount: u32) -> u32 {
///         self.0.fetch_add(amount, Ordering::Relaxed) + amount
///     }
///
///     #[close]
///     async fn close(&self) {}
/// }
///
/// let counter = Counter::toolset("counter", |_opening| Ok(Counter::default()));
/// ```
///
/// Each agent call opens an instance of its own, by the closure; all its tools work on that one. The method
/// marked with `#[close]` runs when the instance is closed. `toolset_async` takes a closure that returns a
/// boxed future.
///
/// The keys of `#[tool]` are those of a function, except that `assess` names a method,
/// `fn(&self, &Payload, &CallContext) -> Assessment`, and that there is no typed caller.
#[proc_macro_attribute]
pub fn toolset(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(toolset::expand(attributes.into(), item.into()))
}

fn written(expansion: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expansion.unwrap_or_else(syn::Error::into_compile_error).into()
}
