use llm_do_macros::tool;

struct Connection;

/// Takes what nobody gives.
#[tool]
async fn connect(_text: String, _connection: Connection) {}

fn main() {}
