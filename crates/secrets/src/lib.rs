//! Finds secrets: in the name of a file, in its content, in any text; and masks those whose value is known.
//!
//! Names say where to look, content decides: a certificate, a public key or an example is not a secret, whatever its file
//! is called. A few files are secret by their name alone ([`NameRule::Credentials`]).
//!
//! This crate reads no files and decides nothing about approvals. It does not find secrets that look like ordinary
//! text, such as a password in a note.

mod config;
mod file_name;
mod known;
mod mask;
mod placeholder;
mod policy;
mod private_key;
mod redact;
mod scan;
mod token;

pub use file_name::{ConfigFormat, NameRule, name_rule, secret_name_globs};
pub use known::KnownSecrets;
pub use mask::{REMOVED, SecretMask, StreamMask, all_forms, plain_forms};
pub use policy::{HEAD_BYTES, SecretFiles, SecretGlobError, secret_kind};
pub use redact::redact;
pub use scan::{Secret, SecretKind, secrets_in};
