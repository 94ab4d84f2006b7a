//! The formats of project files: the types of manifests and front matter, their schemas, and what can be checked in one
//! section alone.
//!
//! Nothing here reads a file or looks at another agent: see [`crate::read`] and [`crate::link`].

pub(crate) mod advice;
pub(crate) mod attachment_policy;
pub(crate) mod facts;
pub(crate) mod front_matter;
mod http_headers;
pub(crate) mod input_schema;
pub(crate) mod manifest;
pub(crate) mod model_settings;
pub(crate) mod run_settings;
pub(crate) mod schema;
pub(crate) mod tuning;

pub use http_headers::{HeaderProblem, header_problem};
pub use manifest::{AttachmentSection, LimitsSection, McpServer, Provider};
pub use schema::{header_schema, manifest_schema};
