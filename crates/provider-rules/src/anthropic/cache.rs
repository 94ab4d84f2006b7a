//! Marks for prompt caching.

use serde_json::Value;

use super::{blocks, is_type};
use crate::ProviderRefusal;
use crate::json::{is_set, items, text};
use crate::refusal::Check;

const MAX_MARKS: usize = 4;

/// Checks the marks in the order in which prompts are cached: tools, system, messages.
pub(super) fn check(body: &Value, messages: &[Value]) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.cache_control", message));
    let content = messages.iter().flat_map(blocks).flat_map(|block| {
        let nested = items(block, "content").iter().filter(|_| is_type(block, "tool_result"));
        nested.chain([block])
    });
    let all = items(body, "tools").iter().chain(items(body, "system")).chain(content);
    let marked: Vec<&Value> = all.filter(|block| is_set(&block["cache_control"])).collect();
    if marked.iter().any(|block| is_type(block, "text") && text(block, "text").is_empty()) {
        return refuse("cache_control cannot be set for empty text blocks".to_owned());
    }
    let count = marked.len() + usize::from(is_set(&body["cache_control"]));
    if count > MAX_MARKS {
        return refuse(format!("A maximum of 4 blocks with cache_control may be provided. Found {count}."));
    }
    check_lifetimes(&marked)
}

/// A lifetime of an hour must not come after one of five minutes.
fn check_lifetimes(marked: &[&Value]) -> Check {
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.cache_control", message));
    let mut has_short = false;
    for block in marked {
        match block["cache_control"]["ttl"].as_str() {
            None | Some("5m") => has_short = true,
            Some("1h") if has_short => {
                return refuse(
                    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
                );
            }
            Some("1h") => {}
            Some(_) => return refuse("cache_control.ephemeral.ttl: Input should be '5m' or '1h'"),
        }
    }
    Ok(())
}
