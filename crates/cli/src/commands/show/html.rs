//! A run as one page for a browser, which loads nothing else.
//!
//! What the run holds was written by models, tools and other people. It is in the page as JSON in which no character can end
//! the element around it, and the script puts it on the page as text only. A policy in the page forbids everything but
//! this script and this style.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llm_do::event::TraceCall;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{ShownRun, pretty};
use crate::commands::runs;
use crate::text::printable;

/// A browser has trouble with pages of more calls.
const MAX_CALLS: usize = 5_000;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the page.
pub(super) fn page(run: &ShownRun) -> String {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>llm-do run</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<noscript>The calls are drawn by a script in this page.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>",
        embedded(&data(run))
    )
}

/// The name by which a policy allows a script or style.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// JSON that can be inside of an element: these characters are only in its strings.
fn embedded(data: &Value) -> String {
    let mut text = data.to_string();
    for c in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        text = text.replace(c, &format!("\\u{:04x}", u32::from(c)));
    }
    text
}

fn data(run: &ShownRun) -> Value {
    let all = run.trace.iter().count();
    let calls: Vec<Value> = run.trace.iter().take(MAX_CALLS).map(call).collect();
    json!({
        "run": runs::object(&run.summary),
        "calls": calls,
        "cut": all.saturating_sub(MAX_CALLS),
    })
}

/// A call. Values are texts already: numbers of a script lose digits.
fn call(call: &TraceCall) -> Value {
    json!({
        "key": call.key.as_str(),
        "kind": call.kind.as_str(),
        "name": printable(&call.name),
        "input": shown(call.input.value()),
        "output": call.output.as_ref().map(|output| shown(&output.to_value())),
        "error": call.error.as_ref().map(|failure| printable(&failure.message)),
        "waits": call.waits_for_answer,
        "ms": call.duration_ms,
        "tokens": call.usage.tokens(),
    })
}

fn shown(value: &Value) -> String {
    printable(&value.as_str().map_or_else(|| pretty(value), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_the_element_around_it() {
        let value = json!({"a": "</script><!--<script>&\u{2028}", "b": "<b>"});
        let text = embedded(&value);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn the_script_makes_no_markup_of_values() {
        for unsafe_way in
            ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval", "setAttribute", "http"]
        {
            assert!(!SCRIPT.contains(unsafe_way), "{unsafe_way}");
        }
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</") && !STYLE.contains("url("));
    }
}
