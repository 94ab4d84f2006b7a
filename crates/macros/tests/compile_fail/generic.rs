use llm_do_macros::tool;

/// Takes anything.
#[tool]
async fn take<T>(value: T) {}

/// Takes anything that has a trait.
#[tool]
async fn take_text(text: impl Into<String>) {}

/// Borrows for a lifetime.
#[tool]
fn borrow<'a>(text: &'a str) -> &'a str {
    text
}

/// Has a condition.
#[tool]
async fn bound()
where
    String: Send,
{
}

/// Returns anything.
#[tool]
async fn give() -> impl Iterator<Item = u32> {
    0..3
}

fn main() {}
