//! Secrets that are spread over the events of a recorded stream.
//!
//! In the bytes of a stream, the rest of a secret comes only after the envelope of the next event. So the texts at the
//! same position of successive events are read as one text, whatever the protocol calls them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::mask::Mask;

/// Returns the body without the secrets that its events spell together, or nothing if there are none.
pub(super) fn without_spread_secrets(mask: &Mask, body: &[u8]) -> Option<Vec<u8>> {
    let mut lines: Vec<EventLine<'_>> =
        body.split_inclusive(|byte| *byte == b'\n').map(EventLine::new).collect();
    let mut texts: BTreeMap<String, Vec<&mut String>> = BTreeMap::new();
    for line in &mut lines {
        if let Some(event) = &mut line.event {
            collect(event, String::new(), &mut texts);
        }
    }
    // Not `any`: the texts of every position are to be masked.
    let changed = texts.into_values().filter_map(|texts| mask_together(mask, texts)).count();
    (changed > 0).then(|| lines.into_iter().flat_map(EventLine::into_bytes).collect())
}

/// One line of a body, with the event in it.
struct EventLine<'a> {
    before: &'a [u8],
    event: Option<Value>,
    after: &'a [u8],
}

impl<'a> EventLine<'a> {
    fn new(line: &'a [u8]) -> Self {
        let start = line.iter().position(|byte| matches!(byte, b'{' | b'[')).unwrap_or(line.len());
        let end = line.iter().rposition(|byte| matches!(byte, b'}' | b']')).map_or(0, |last| last + 1);
        let event = line.get(start..end).and_then(|event| serde_json::from_slice(event).ok());
        match event {
            Some(event) => Self { before: &line[..start], event: Some(event), after: &line[end..] },
            None => Self { before: line, event: None, after: &[] },
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let event = self.event.map(|event| event.to_string()).unwrap_or_default();
        [self.before, event.as_bytes(), self.after].concat()
    }
}

/// Adds every text of an event to the texts at the same position of earlier events.
fn collect<'a>(value: &'a mut Value, position: String, texts: &mut BTreeMap<String, Vec<&'a mut String>>) {
    match value {
        Value::String(text) => texts.entry(position).or_default().push(text),
        Value::Array(values) => {
            // Parts that follow each other have the same position, unless they say otherwise.
            values.iter_mut().for_each(|value| collect(value, format!("{position}/*"), texts));
        }
        Value::Object(fields) => {
            let numbers = ["index", "output_index"].into_iter().filter_map(|key| fields.get(key)?.as_u64());
            let position = numbers.fold(position, |position, number| format!("{position}#{number}"));
            for (key, value) in fields {
                collect(value, format!("{position}/{key}"), texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks texts that follow each other, if together they hold a secret.
fn mask_together(mask: &Mask, texts: Vec<&mut String>) -> Option<()> {
    let pieces: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let masked = mask.pieces(&pieces);
    if masked.iter().zip(&pieces).all(|(masked, piece)| masked == piece) {
        return None;
    }
    for (text, masked) in texts.into_iter().zip(masked) {
        *text = String::from_utf8_lossy(&masked).into_owned();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-canary-0123456789";

    fn masked(body: &str) -> Option<String> {
        let mask = Mask::new([KEY.to_owned()]);
        without_spread_secrets(&mask, body.as_bytes()).map(|body| String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_key_that_several_events_spell_is_removed_wherever_it_is_cut() {
        for cut in 0..=KEY.len() {
            let body = format!(
                "event: a\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"<{}\"}}}}]}}\r\n\r\n\
                 : note\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"{}>\"}}}}]}}\r\n\r\ndata: [DONE]\n\n",
                &KEY[..cut],
                &KEY[cut..]
            );
            let masked = masked(&body).unwrap();
            let (first, second) = if cut == 0 { ("<", "[removed]>") } else { ("<[removed]", ">") };
            let expected = body.replace(&format!("<{}", &KEY[..cut]), first);
            assert_eq!(
                masked,
                expected.replace(&format!("\"{}>", &KEY[cut..]), &format!("\"{second}")),
                "{cut}"
            );
        }
    }

    #[test]
    fn calls_that_arrive_side_by_side_are_read_apart() {
        let call = |index: u32, arguments: &str| {
            format!("data: {{\"calls\":[{{\"index\":{index},\"arguments\":\"{arguments}\"}}]}}\n\n")
        };
        let body = call(0, "sk-canary") + &call(1, "x") + &call(0, "-0123456789");
        assert_eq!(masked(&body).unwrap(), call(0, "[removed]") + &call(1, "x") + &call(0, ""));
    }

    #[test]
    fn a_body_without_secrets_is_left_as_it_is() {
        assert_eq!(
            masked("data: {\"a\" : \"sk-canary\"}\n\ndata: {\"b\":\"-0123456789\"}\n\nnot { json\n"),
            None
        );
    }
}
