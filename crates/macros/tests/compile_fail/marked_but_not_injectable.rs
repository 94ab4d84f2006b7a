use llm_do_macros::tool;

/// Marks what cannot be injected.
#[tool]
async fn connect(#[inject] _port: u16) {}

fn main() {}
