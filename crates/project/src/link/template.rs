//! Prompt templates over the input of an agent.

use llm_do_core::{Template, TemplateError, input_fields};
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::source::{SourceFile, Span};
use crate::suggest::suggest;

/// What is wrong with a template.
#[derive(Debug)]
pub(crate) struct TemplateProblem {
    message: String,
    hint: Option<String>,
}

impl TemplateProblem {
    /// Reports it at the span of the template.
    pub(crate) fn at(self, source: &SourceFile, span: &Span) -> Diagnostic {
        let diagnostic = Diagnostic::error_at(source, span, self.message);
        match self.hint {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        }
    }
}

/// Compiles a template and checks the names that it uses against the input schema.
pub(crate) fn compile(
    what: &str,
    source: &str,
    schema: Option<&Map<String, Value>>,
) -> Result<Template, TemplateProblem> {
    let fields = input_fields(schema);
    Template::parse(source, &fields).map_err(|error| TemplateProblem {
        message: format!("`{what}` {error}"),
        hint: match &error {
            TemplateError::UnknownName { name } => Some(suggest(name, fields.iter().copied())),
            _ => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_that_the_input_lacks_is_found_before_a_run() {
        let schema = json!({"properties": {"topic": {}}});
        let problem = compile("prompt", "{{ topc }}", schema.as_object()).unwrap_err();
        assert_eq!(problem.message, "`prompt` uses `topc`, which the input does not have");
        assert_eq!(problem.hint.as_deref(), Some("did you mean `topic`?"));
    }
}
