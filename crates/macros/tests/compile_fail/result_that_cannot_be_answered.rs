use llm_do_macros::tool;

struct Handle;

/// Gives what cannot be written.
#[tool(no_caller)]
async fn open() -> Handle {
    Handle
}

/// Fails with a value that is not an error.
#[tool]
async fn fail() -> Result<String, String> {
    Err("text".into())
}

fn main() {}
