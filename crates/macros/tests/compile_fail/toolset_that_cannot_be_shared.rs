use llm_do_macros::toolset;
use std::cell::Cell;

struct Counter(Cell<u32>);

#[toolset]
impl Counter {
    /// Counts.
    #[tool]
    async fn count(&self) -> u32 {
        self.0.get()
    }
}

fn main() {}
