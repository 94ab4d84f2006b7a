//! Items of the user may have any name, also those that generated code uses for its own.
#![deny(warnings)]

use llm_do_macros::tool;

/// Shadows.
#[tool]
async fn parameters(facts: u32, reply: u32, arguments: u32, name: String, call: String) -> u32 {
    let _ = (name, call);
    facts + reply + arguments
}

/// Shadows.
#[tool]
fn definition(#[default(tool())] tool: u32, input: Option<Option<u32>>) -> Option<u32> {
    input.flatten().filter(|input| *input == tool)
}

const fn tool() -> u32 {
    3
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Option<T> {
    Some(T),
    None,
}

impl<T> Option<Option<T>> {
    fn flatten(self) -> Option<T> {
        match self {
            Option::Some(inner) => inner,
            Option::None => Option::None,
        }
    }
}

impl<T> Option<T> {
    fn filter(self, keep: impl Fn(&T) -> bool) -> Self {
        match self {
            Option::Some(value) if keep(&value) => Option::Some(value),
            _ => Option::None,
        }
    }
}

mod tools_of_common_names {
    use llm_do_macros::{tool, toolset};

    /// Opens.
    #[tool]
    async fn open() {}

    /// Names.
    #[tool]
    async fn name() {}

    /// Calls.
    #[tool]
    async fn call() {}

    /// Values.
    #[tool]
    async fn value(#[default(FUNCTION)] number: u32) -> u32 {
        number
    }

    const FUNCTION: u32 = 1;

    pub struct Copier;

    #[toolset]
    impl Copier {
        /// Has the name of a method of `Arc`.
        #[tool]
        async fn clone(&self, text: String) -> String {
            text
        }

        /// Has the name of a method of the trait that makes instances.
        #[tool]
        fn functions(&self) {}
    }

    pub fn names() -> Vec<String> {
        let tools: [std::sync::Arc<dyn llm_do_core::Tool>; 4] =
            [open.into(), name.into(), call.into(), value.into()];
        tools.iter().map(|tool| tool.definition().name.to_string()).collect()
    }
}

fn main() {
    use llm_do_core::Toolset;
    assert_eq!(tools_of_common_names::names(), ["open", "name", "call", "value"]);
    let copier = tools_of_common_names::Copier::toolset("copier", |_| Ok(tools_of_common_names::Copier));
    assert_eq!(copier.definitions().len(), 2);

    use llm_do_core::Tool;
    assert_eq!(parameters.definition().input.source()["required"].as_array().map(Vec::len), Some(5));
    assert_eq!(definition.definition().input.source()["required"][0], "input");
}
