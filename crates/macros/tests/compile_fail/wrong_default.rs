use llm_do_macros::tool;

/// Has a default of another type.
#[tool]
async fn mismatched(#[default("many")] _limit: u32) {}

/// Has no default.
#[tool]
async fn empty(#[default] _limit: u32) {}

fn main() {}
