//! `#[needs(..)]`: a test that is reported as ignored where the machine lacks something.

use llm_do_capabilities::{Capability, missing_at_build};
use proc_macro::{TokenStream, TokenTree};

/// Ignores a test if a capability that it needs was not found when the tests were built.
///
/// The attribute comes first, before `#[test]` or `#[tokio::test]`. The names are those of `LLM_DO_REQUIRE`:
///
/// ```
/// use llm_do_testing_macros::needs;
///
/// #[needs(python, sandbox)]
/// #[tokio::test]
/// async fn a_python_tool_cannot_write_outside() {}
/// ```
///
/// Unknown names are refused:
///
/// ```compile_fail
/// # use llm_do_testing_macros::needs;
/// #[needs(phyton)]
/// fn test() {}
/// ```
#[proc_macro_attribute]
pub fn needs(names: TokenStream, test: TokenStream) -> TokenStream {
    match ignored_reason(names) {
        Ok(None) => test,
        Ok(Some(reason)) => attribute(&format!("#[ignore = {reason:?}]"), test),
        Err(message) => attribute(&format!("::core::compile_error!({message:?});"), test),
    }
}

/// Puts a line of code before an item.
fn attribute(line: &str, item: TokenStream) -> TokenStream {
    let mut tokens: TokenStream = line.parse().unwrap_or_default();
    tokens.extend(item);
    tokens
}

fn ignored_reason(names: TokenStream) -> Result<Option<String>, String> {
    let mut reason = None;
    for name in names {
        let name = match name {
            TokenTree::Ident(name) => name.to_string(),
            TokenTree::Punct(comma) if comma.as_char() == ',' => continue,
            other => return Err(format!("expected the name of a capability, found `{other}`")),
        };
        let capability: Capability = name.parse().map_err(|unknown| format!("{unknown}"))?;
        let missing = missing_at_build(capability).map(|why| format!("needs {capability}: {why}"));
        reason = reason.or(missing);
    }
    Ok(reason)
}
