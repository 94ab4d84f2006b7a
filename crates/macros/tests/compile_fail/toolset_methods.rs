use llm_do_macros::toolset;

struct Counter;

#[toolset]
impl Counter {
    /// Takes no self.
    #[tool]
    async fn without() {}

    /// Changes itself.
    #[tool]
    async fn change(&mut self) {}

    /// Takes itself.
    #[tool]
    async fn take(self) {}

    #[tool]
    async fn undescribed(&self) {}

    /// Has a name.
    #[tool(name = "same")]
    async fn one(&self) {}

    /// Has the same name.
    #[tool(name = "same")]
    async fn two(&self) {}

    /// Wants no caller.
    #[tool(no_caller)]
    async fn uncalled(&self) {}

    /// Does both.
    #[tool]
    #[close]
    async fn both(&self) {}

    #[close]
    fn close(&self) {}

    #[close]
    async fn close_well(&self) {}

    #[close]
    async fn close_again(&self) {}
}

fn main() {}
