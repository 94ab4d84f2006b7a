//! What a project may do without anybody being asked, and the record of who agreed to it.
//!
//! A [`Power`] is something that a project does without a question at the moment it happens: run code, send a key,
//! loosen an approval, reach beyond its directory. [`TrustStore`] keeps, for each directory, the powers that a person
//! agreed to; a project is silent as long as its powers are a subset of them.
//!
//! This crate finds no powers (that is `llm-do-project`), asks no questions (that is the command line), and runs
//! nothing.

mod code_digest;
mod entry;
mod identity;
mod owner;
mod power;
mod store;
mod worktree;

pub use code_digest::{CodeDigests, code_digests};
pub use entry::{TrustEntry, TrustSource};
pub use identity::{DirectoryIdentity, is_too_wide};
pub use owner::{ForeignFile, foreign_files, is_private_to, is_writable_by_others};
pub use power::{Changes, DeclaredPower, Location, Power, PowerClass, Powers};
pub use store::{Lookup, StoreError, TrustStore, make_private};
