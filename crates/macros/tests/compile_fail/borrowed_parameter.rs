use llm_do_macros::tool;

/// Borrows what the model gives.
#[tool]
async fn borrow(text: &str) {}

/// Borrows inside another type.
#[tool]
async fn borrow_inside(texts: Vec<&str>) {}

/// Borrows in order to change.
#[tool]
async fn change(call: &mut llm_do_core::CallContext) {}

/// Returns what is borrowed.
#[tool]
fn give() -> &str {
    ""
}

/// Is conditional.
#[tool]
async fn conditional(#[cfg(unix)] text: String) {}

fn main() {}
