//! Prompt templates over the input of an agent.

use llm_do_core::{Failure, FailureKind, Payload, Template};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::check::meant;
use crate::diagnostic::{Diagnostic, Source};
use crate::tags::longest_tag;

/// The work that a template may do: it comes with a project that nobody may have read.
const FUEL: u64 = 100_000;

/// The longest `{{ ... }}` or `{% ... %}`, in bytes, and the most `elif` of a template. The library follows long
/// chains of operators by recursion, so that they could use up any stack.
const LONGEST_TAG: usize = 1_000;
const MOST_ELIF: usize = 200;

/// What is wrong with a template.
#[derive(Debug)]
pub(crate) struct TemplateProblem {
    message: String,
    hint: Option<String>,
}

impl TemplateProblem {
    /// Says it at the place of the template.
    pub(crate) fn at(self, source: &Source, place: &std::ops::Range<usize>) -> Diagnostic {
        let diagnostic = Diagnostic::at(source, place, self.message);
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
    if longest_tag(source) > LONGEST_TAG || source.matches("elif").count() > MOST_ELIF {
        let message = format!(
            "`{what}` is too large for a template: a tag has more than {LONGEST_TAG} bytes, or there are more than {MOST_ELIF} `elif`"
        );
        return Err(TemplateProblem { message, hint: None });
    }
    let environment = environment();
    let template = environment.template_from_str(source).map_err(|error| {
        let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
        let words = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        TemplateProblem { message: format!("`{what}` is no template: {words}{line}"), hint: None }
    })?;
    let known = known_names(schema);
    let is_built_in = |name: &str| environment.globals().any(|(global, _)| global == name);
    let mut used: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    used.sort();
    if let Some(name) = used.iter().find(|name| !known.contains(&name.as_str()) && !is_built_in(name)) {
        let message = format!("`{what}` uses `{name}`, which the input does not have");
        return Err(TemplateProblem { message, hint: Some(meant(name, known)) });
    }
    let text = source.to_owned();
    Ok(Template::new(source, move |input| render(&text, input)))
}

fn known_names(schema: Option<&Map<String, Value>>) -> Vec<&str> {
    match schema {
        Some(schema) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.map(|properties| properties.keys().map(String::as_str).collect()).unwrap_or_default()
        }
        None => vec!["input", "attachments"],
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
}

fn render(source: &str, input: &Payload) -> Result<String, Failure> {
    let rendered = environment().render_str(source, minijinja::value::Serde(input.value()));
    rendered.map_err(|error| {
        Failure::new(FailureKind::Arguments, format!("the prompt could not be made: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_made_from_the_input() {
        let schema = json!({"properties": {"topic": {}, "words": {}}});
        let prompt = compile("prompt", "{{ topic }} in {{ words }} words", schema.as_object()).unwrap();
        let input = Payload::new(json!({"topic": "Rust", "words": 5}));
        assert_eq!(prompt.render(&input).unwrap(), "Rust in 5 words");
    }

    #[test]
    fn a_name_that_the_input_lacks_is_found_before_a_run() {
        let schema = json!({"properties": {"topic": {}}});
        let problem = compile("prompt", "{{ topc }}", schema.as_object()).unwrap_err();
        assert!(problem.message.contains("`topc`"), "{problem:?}");
        assert_eq!(problem.hint.as_deref(), Some("did you mean `topic`?"));
    }

    #[test]
    fn a_chain_that_could_use_up_the_stack_is_refused() {
        for chain in ["|trim", " + 1", "-", ".a", " and 1", " if 1 else 1"] {
            let template = format!("{{{{ 1{} }}}}", chain.repeat(100_000));
            let problem = compile("prompt", &template, None).unwrap_err();
            assert!(problem.message.contains("too large"), "{chain}: {problem:?}");
            // What is just allowed does no harm.
            let _ = compile("prompt", &format!("{{{{ 1{} }}}}", chain.repeat(990 / chain.len())), None);
        }
        let chain = format!("{{% if input %}}{}{{% endif %}}", "{% elif input %}".repeat(100_000));
        assert!(compile("prompt", &chain, None).is_err());
    }

    #[test]
    fn an_endless_template_runs_out_of_fuel() {
        let endless = compile(
            "prompt",
            "{% for a in range(100000) %}{% for b in range(100000) %}{{ input }}{% endfor %}{% endfor %}",
            None,
        )
        .unwrap();
        assert!(endless.render(&Payload::new(json!({"input": "x"}))).is_err());
    }
}
