//! Generated code passes the lints that the users' crates may have.
#![deny(warnings, missing_docs, unreachable_pub, rust_2018_idioms, unused_qualifications, missing_debug_implementations)]
#![forbid(unsafe_code)]

use llm_do_core::{CallContext, Tool, ToolError, Toolset};
use llm_do_macros::{tool, toolset};

/// Is private.
#[tool(approval = "pre_approved")]
async fn private(text: String) -> Result<String, ToolError> {
    Ok(text)
}

/// Is public.
#[tool]
pub fn public(#[default(1)] number: u32) -> u32 {
    number
}

/// Is seen in its crate.
#[tool(sequential)]
pub(crate) async fn crate_wide() {}

mod inner {
    use super::*;

    /// Is seen by its parent.
    #[tool(no_caller)]
    pub(super) async fn for_the_parent(call: &CallContext) -> String {
        call.path().to_owned()
    }

    /// Is old.
    #[tool]
    #[deprecated = "use another one"]
    pub(crate) fn old(list: Vec<String>) -> usize {
        list.len()
    }

    /// Takes many parameters, which is the user's own choice.
    #[tool]
    #[expect(clippy::too_many_arguments)]
    pub(super) fn wide(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) -> u8 {
        a + b + c + d + e + f + g + h
    }
}

/// Is left out by its condition.
#[tool]
#[cfg(any())]
async fn conditional(missing: Missing) {}

#[tool(description = "Has no doc comment.")]
pub fn undocumented() {}

struct Private;

#[toolset]
impl Private {
    /// Is a tool.
    #[tool]
    async fn act(&self, other: Option<bool>) -> Option<bool> {
        other
    }

    /// Is left out by its condition.
    #[tool]
    #[cfg(any())]
    async fn conditional(&self, missing: Missing) {}
}

/// Is public.
#[derive(Debug)]
pub struct Public;

#[toolset]
impl Public {
    /// Returns a copy of itself, by a name that only an `impl` block knows.
    #[tool]
    fn compare(&self, number: u32) -> Result<u32, <Self as Fails>::Error> {
        Ok(number)
    }

    #[close]
    async fn finish(&self) {}
}

trait Fails {
    type Error;
}

impl Fails for Public {
    type Error = std::fmt::Error;
}

fn main() {
    /// Stands in a function.
    #[tool]
    async fn nested() -> Local {
        Local
    }

    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Local;

    let tools: [std::sync::Arc<dyn Tool>; 6] =
        [private.into(), public.into(), crate_wide.into(), undocumented.into(), nested.into(), inner::wide.into()];
    let names: Vec<_> = tools.iter().map(|tool| tool.definition().name.to_string()).collect();
    assert_eq!(names, ["private", "public", "crate_wide", "undocumented", "nested", "wide"]);
    assert_eq!(inner::for_the_parent.definition().name, "for_the_parent");
    #[allow(deprecated)]
    let old: std::sync::Arc<dyn Tool> = inner::old.into();
    assert_eq!(old.definition().name, "old");
    assert_eq!(Private::toolset("private", |_| Ok(Private)).definitions().len(), 1);
    assert_eq!(Public::toolset("public", |_| Ok(Public)).definitions().len(), 1);
}
