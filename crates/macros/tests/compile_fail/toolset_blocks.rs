use llm_do_macros::toolset;

struct Counter;
struct Holder<T>(T);

#[toolset]
impl Counter {
    fn no_tool(&self) {}
}

#[toolset]
impl Clone for Counter {
    fn clone(&self) -> Self {
        Self
    }
}

#[toolset]
impl<T> Holder<T> {
    /// Acts.
    #[tool]
    async fn act(&self) {}
}

#[toolset(name = "counter")]
impl Counter {}

#[toolset]
fn counter() {}

fn main() {}
