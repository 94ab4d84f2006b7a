use llm_do_core::{CallContext, FromCall, MissingNeed};
use llm_do_macros::tool;

struct Extractor;

impl FromCall for Extractor {
    fn from_call(_call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(Self)
    }
}

/// Is injected by name.
#[tool]
async fn by_name(#[default(1)] _number: llm_do_core::Need<u32>) {}

/// Is injected by mark.
#[tool]
async fn by_mark(#[inject] #[default(1)] _extractor: Extractor) {}

/// Is injected by type.
#[tool(no_caller)]
async fn by_type(#[default(1)] _extractor: Extractor) {}

fn main() {}
