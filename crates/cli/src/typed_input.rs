//! Explains a typed input to somebody who gave a text: which fields there are, and how to write them.

use llm_do::value::{Input, Schema};
use serde_json::json;

use crate::command_error::CommandError;
use crate::text::visible_line;

/// A text that is longer is not repeated in an example.
const MAX_REPEATED: usize = 60;

/// Where a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextSource {
    /// As an argument or on stdin.
    CommandLine,
    /// As a line of a chat.
    ChatLine,
}

/// Refuses a text for something whose input has other fields. Nothing is guessed: the hint shows what to write.
pub(crate) fn refuse_text(
    input: &Input,
    schema: Option<&Schema>,
    source: TextSource,
) -> Result<(), CommandError> {
    let (Some(schema), Input::Text(text)) = (schema, input) else { return Ok(()) };
    if schema.fits(&json!({"input": text})) {
        return Ok(());
    }
    let Some(fields) = schema.describe_fields() else { return Ok(()) };
    let mut example = schema.example();
    if let Some(field) = schema.only_required_text().filter(|_| is_repeated(text)) {
        example[field] = text.as_str().into();
    }
    let example = example.to_string();
    let hint = match source {
        TextSource::CommandLine => {
            let quoted = shlex::try_quote(&example).map_or(example.clone(), |quoted| quoted.into_owned());
            format!("use `--input-json {}`", visible_line(&quoted))
        }
        TextSource::ChatLine => format!("write it as JSON: `{}`", visible_line(&example)),
    };
    let message = format!("this takes {}, not a text", visible_line(&fields));
    Err(CommandError::with_hint(message, hint))
}

/// Returns whether a text can be repeated in an example as it was written.
fn is_repeated(text: &str) -> bool {
    let needs_quotes = |c: char| c.is_control() || ['"', '\'', '\\'].contains(&c);
    text.chars().count() <= MAX_REPEATED && !text.contains(needs_quotes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(schema: serde_json::Value, text: &str, source: TextSource) -> Option<String> {
        let schema = Schema::new(schema).unwrap();
        let refused = refuse_text(&Input::from(text), Some(&schema), source);
        refused.err().map(|problem| problem.to_string())
    }

    #[test]
    fn a_text_for_typed_fields_is_answered_with_the_fields_and_an_example() {
        let plan = json!({"type": "object", "required": ["topic"], "properties": {
            "topic": {"type": "string"}, "days": {"type": "integer"}}});
        assert_eq!(
            refusal(plan.clone(), "Rust", TextSource::CommandLine).as_deref(),
            Some(
                "error: this takes `topic` (string), `days` (integer, optional), not a text\n\
                 hint: use `--input-json '{\"topic\":\"Rust\"}'`"
            )
        );
        for text in ["x".repeat(500), "it's".to_owned(), "a\nb".to_owned(), "{\"topic\"".to_owned()] {
            let refusal = refusal(plan.clone(), &text, TextSource::ChatLine).unwrap();
            assert!(refusal.ends_with("hint: write it as JSON: `{\"topic\":\"..\"}`"), "{refusal}");
        }
    }

    #[test]
    fn a_text_that_fits_is_not_refused() {
        let text =
            json!({"type": "object", "required": ["input"], "properties": {"input": {"type": "string"}}});
        assert_eq!(refusal(text, "hello", TextSource::CommandLine), None);
        assert!(refuse_text(&Input::from("hello"), None, TextSource::ChatLine).is_ok());
    }
}
