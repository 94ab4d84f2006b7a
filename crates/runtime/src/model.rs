//! Requests to models: estimating, reserving, retrying and booking, and the tools that a provider runs itself.

pub(crate) mod ask;
pub(crate) mod server_tools;
