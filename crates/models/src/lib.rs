//! The models of llm-do: those of providers, those that need none, and the catalog that finds them by name.
//!
//! - Models of providers ([`providers`]) are asked over a [`Transport`]: the network ([`HttpTransport`]), or a recording of it
//!   ([`Cassette`]). Keys and addresses come from an [`Environment`].
//! - [`Script`] answers with replies that its author wrote, in code or in a YAML file (`script:FILE`).
//! - [`TestModel`] calls every tool once (`test`), or says what it is told (`test:echo`).
//! - [`StandardModels`] knows them by name, and others that are added to it; [`StandardPrices`] knows what they cost.
//!
//! This crate knows `llm-do-core` only: it runs no tools and keeps no conversation.
//!
//! # Scripts in code
//!
//! ```
//! use llm_do_models::{Script, asks, contains, result_of, says, thinks};
//! use serde_json::json;
//!
//! let model = Script::new([
//!     thinks("A file will do.").and(asks("write_file", json!({"path": "a.txt", "content": "a"}))),
//!     says("Written."),
//!     says("I cannot read that.").when(result_of("read_file").and(contains("error"))),
//! ]);
//! ```
//!
//! # Scripts in files
//!
//! A file is a list of replies, or a mapping with `mode` and `replies`. The modes are `in_order` (the
//! default), `each_call` and `by_turn`; see [`Script::new`], [`Script::each_call`] and [`Script::by_turn`].
//!
//! ```
//! # let text = r#"
//! mode: by_turn
//! replies:
//!   - think: Two files, at once.
//!     ask: {read_file: {path: a.txt}, list_files: }      # tool: arguments
//!   - ask:                                               # the same tool twice
//!       - {name: read_file, arguments: {path: b.txt}}
//!       - {name: read_file, arguments: {path: c.txt}}
//!   - raw: {name: read_file, text: '{"path": '}          # argument text that is not JSON
//!   - say: Half of an answer, slowly
//!     delay: 1.5s
//!     pace: 20ms                                         # between its words
//!     usage: {input: 1200, output: 4}                    # instead of an estimate
//!     stop: max_tokens
//!   - cut: The connection broke in the mid
//!   - fail: {kind: rate_limit, message: slow down, retry_after: 20s}
//!   - say: I am the reviewer.                            # whenever all of `when` holds
//!     when: {instructions: You review, contains: who are you, result_of: whoami}
//! # "#;
//! # llm_do_models::Script::from_yaml(text).map(|_| ()).unwrap_or_else(|error| panic!("{error}"));
//! ```
//!
//! A reply with `when` is given as often as it fits, or once with `once: true`. The parts of a reply happen
//! in this order, whatever the order of its keys: `delay`, `think`, `say`, `ask`, `raw`, `cut`, `fail`.
//! The kinds of failures are those of [`ModelErrorKind`](llm_do_core::ModelErrorKind), the reasons to stop
//! those of [`StopReason`](llm_do_core::StopReason), both in `snake_case`.

mod cassette;
mod environment;
mod http;
mod mask;
mod model_patterns;
mod names;
mod prices;
mod profiles;
mod provider;
mod registry;
mod regular_file;
mod remote;
mod scripted;
mod transport;
mod wire;

pub use cassette::{Cassette, CassetteError, CassetteMode};
pub use environment::{Environment, KeyStoreError, Variable};
pub use http::{HttpSettings, HttpTransport};
pub use prices::{KnownModel, StandardPrices, full_names, known_models};
pub use profiles::profile_of;
pub use provider::{
    BuiltinProvider, DeclaredProvider, Describe, DescribedModel, DescribedProvider, PROTOCOLS, account_of,
    provider_names, providers,
};
pub use registry::StandardModels;
pub use scripted::{
    Condition, Script, ScriptFileError, ScriptedReply, TestModel, asks, asks_all, asks_raw, contains, cut,
    fails, instructed, replies, result_of, says, thinks,
};
pub use transport::{ByteStream, Chunks, Transport};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use wire::fuzzing;
