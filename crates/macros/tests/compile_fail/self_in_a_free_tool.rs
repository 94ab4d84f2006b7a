struct Counter;

impl Counter {
    /// Counts.
    #[llm_do_macros::tool]
    async fn count(&self) {}
}

fn main() {}
