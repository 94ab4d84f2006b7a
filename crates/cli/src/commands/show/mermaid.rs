//! The calls of a run as a Mermaid flowchart.

use std::fmt::Write;

use llm_do::event::{Trace, TraceCall};

/// Mermaid draws no more than 500 lines between boxes.
const MAX_CALLS: usize = 400;

/// How much of a name a box shows.
const MAX_NAME_CHARS: usize = 60;

/// Returns the diagram: a box per call, below that of its caller.
pub(super) fn diagram(trace: &Trace) -> String {
    let mut text = String::from("flowchart TD\n");
    let mut waiting: Vec<(&TraceCall, Option<usize>)> =
        trace.calls.iter().rev().map(|call| (call, None)).collect();
    let mut count = 0;
    while let Some((call, caller)) = waiting.pop() {
        let index = count;
        count += 1;
        waiting.extend(call.calls.iter().rev().map(|below| (below, Some(index))));
        if index < MAX_CALLS {
            draw(&mut text, index, call, caller);
        }
    }
    if let Some(left) = count.checked_sub(MAX_CALLS).filter(|left| *left > 0) {
        let _ = writeln!(text, "    more[\"{left} more calls\"]");
    }
    text.push_str("    classDef failed stroke:#c00,stroke-width:2px\n    classDef open stroke-dasharray:4");
    text
}

fn draw(text: &mut String, index: usize, call: &TraceCall, caller: Option<usize>) {
    let name: String = call.name.chars().take(MAX_NAME_CHARS).collect();
    let class = match (&call.output, &call.error) {
        (_, Some(_)) => ":::failed",
        (None, None) => ":::open",
        (Some(_), None) => "",
    };
    let _ = writeln!(text, "    c{index}[\"{} {}\"]{class}", call.kind, escaped(&name));
    if let Some(caller) = caller {
        let _ = writeln!(text, "    c{caller} --> c{index}");
    }
}

/// Writes what Mermaid or a browser could take for something else as the number of the character.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | ' ' => escaped.push(c),
            _ => drop(write!(escaped, "#{};", u32::from(c))),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_more_than_the_text_of_a_box() {
        assert_eq!(escaped("read_file"), "read_file");
        assert_eq!(escaped("a\"]\n<b>é"), "a#34;#93;#10;#60;b#62;#233;");
    }
}
