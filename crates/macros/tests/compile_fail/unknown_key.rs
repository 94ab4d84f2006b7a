use llm_do_macros::tool;

/// Misspells a key.
#[tool(aproval = "ask")]
async fn misspelt() {}

/// Uses a key that is not known.
#[tool(colour = "red")]
async fn coloured() {}

/// Says something twice.
#[tool(sequential, access = "read", sequential)]
async fn repeated() {}

fn main() {}
