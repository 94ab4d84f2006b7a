use llm_do_macros::tool;

/// Has a default that is too large.
#[tool]
async fn take(#[default(300)] _limit: u8) {}

fn main() {}
