//! Tools that run at the provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool that the provider runs. It cannot be stopped call by call, so it is decided about before the request
/// that offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "tool_type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ServerTool {
    /// Searches the web.
    WebSearch {
        /// Searches per request at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 4_294_967_295_u32))]
        max_uses: Option<u32>,
        /// The only domains to search in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allowed_domains: Vec<String>,
        /// Domains to leave out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocked_domains: Vec<String>,
    },
    /// Reads web pages.
    WebFetch {
        /// Pages per request at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 4_294_967_295_u32))]
        max_uses: Option<u32>,
        /// The only domains to read from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allowed_domains: Vec<String>,
        /// Domains to leave out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocked_domains: Vec<String>,
    },
    /// Runs code in the provider's sandbox.
    CodeExecution {},
    /// Makes images.
    ImageGeneration {},
}

impl ServerTool {
    /// Returns the name by which rules and events know it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::WebSearch { .. } => "web_search",
            Self::WebFetch { .. } => "web_fetch",
            Self::CodeExecution {} => "code_execution",
            Self::ImageGeneration {} => "image_generation",
        }
    }
}
