use llm_do_macros::tool;

/// Has a name with a space.
#[tool(name = "find files")]
async fn spaced() {}

/// Has a name that models cannot write.
#[tool]
async fn größe() {}

/// Has no name.
#[tool(name = "")]
async fn empty() {}

fn main() {}
