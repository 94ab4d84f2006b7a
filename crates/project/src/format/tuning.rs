//! Which of its own settings an agent may change.

use llm_do_core::Tuning;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::front_matter::HeaderDocument;
use crate::globs::glob_problem;
use crate::source::Span;

/// The key of the section.
const KEY: &str = "tuning";

/// Reads which settings an agent may tune, and reports invalid ranges.
pub(crate) fn tuning(agent: HeaderDocument<'_>, out: &mut Diagnostics) -> Tuning {
    let Some(section) = &agent.header.tuning else { return Tuning::default() };
    let mut refuse = |key: &str, message: String, hint: &str| {
        let span = agent.node.field(KEY).map_or(Span::START, |field| span_of(&field.value, key));
        out.push(
            Diagnostic::error_at(agent.source, &span, format!("`{KEY}.{key}`: {message}")).with_hint(hint),
        );
    };
    const ORDER: &str = "write the smaller value first: `[0, 1]`";
    if let Some((least, most)) = section.temperature {
        if least > most {
            refuse("temperature", format!("{least} is more than {most}"), ORDER);
        }
        if least < 0.0 || most > 2.0 {
            refuse("temperature", "it is outside the range 0 to 2".to_owned(), "write values from 0 to 2");
        }
    }
    if let Some((least, most)) = section.max_tokens {
        if least > most {
            refuse("max_tokens", format!("{least} is more than {most}"), ORDER);
        }
        if least == 0 {
            refuse("max_tokens", "0 leaves no room for an answer".to_owned(), "write at least 1");
        }
    }
    for glob in &section.models {
        if glob_problem(glob).is_some() {
            let hint = "write names with `*`, such as `anthropic:*`";
            refuse("models", format!("`{glob}` is not a name or glob"), hint);
        }
    }
    Tuning {
        temperature: section.temperature,
        max_tokens: section.max_tokens,
        models: section.models.clone(),
    }
}
