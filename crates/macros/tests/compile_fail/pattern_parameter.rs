use llm_do_macros::tool;

/// Takes a pair.
#[tool]
async fn take((left, right): (u32, u32)) {}

/// Takes something without a name.
#[tool]
async fn ignore(_: u32) {}

fn main() {}
