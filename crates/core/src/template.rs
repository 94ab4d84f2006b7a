//! Templates that make a text from an input.

mod tags;

use std::fmt;
use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior};
use thiserror::Error;

use crate::{Digest, Failure, FailureKind, Payload};
use tags::longest_tag;

/// The work that one rendering may do: a template may come with a project that nobody has read.
const FUEL: u64 = 100_000;

/// The longest `{{ ... }}` or `{% ... %}`, in bytes. The library parses long chains of operators recursively, so that
/// they could overflow any stack.
const MAX_TAG_BYTES: usize = 1_000;

/// The most `elif` of a template, for the same reason.
const MAX_ELIF: usize = 200;

type Render = dyn Fn(&Payload) -> Result<String, Failure> + Send + Sync;

/// Turns an input into text.
#[derive(Clone)]
pub struct Template {
    render: Arc<Render>,
    source: Digest,
}

/// Why a template cannot be used. Written as what follows its name: "`prompt` uses ..".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It could overflow the stack of the parser.
    #[error(
        "is too large for a template: a tag has more than {MAX_TAG_BYTES} bytes, or there are more than {MAX_ELIF} `elif`"
    )]
    TooLarge,
    /// It is not written as a template.
    #[error("is not a valid template: {reason}")]
    Syntax {
        /// What is wrong, and in which line.
        reason: String,
    },
    /// It uses a name that the input does not have.
    #[error("uses `{name}`, which the input does not have")]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl Template {
    /// A template made by a function. The source represents the function in the digest that a run is bound to.
    pub fn new(
        source: impl AsRef<[u8]>,
        render: impl Fn(&Payload) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { render: Arc::new(render), source: Digest::of(source) }
    }

    /// A [minijinja](https://docs.rs/minijinja) template over the fields of the input. Names other than these are
    /// errors.
    pub fn parse(source: &str, fields: &[&str]) -> Result<Self, TemplateError> {
        check(source, fields)?;
        let text = source.to_owned();
        Ok(Self::new(source, move |input| render(&text, input)))
    }

    /// Renders the text.
    pub fn render(&self, input: &Payload) -> Result<String, Failure> {
        (self.render)(input)
    }

    /// Returns the digest of its source.
    pub fn digest(&self) -> Digest {
        self.source
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.source)
    }
}

/// Checks a template without rendering it.
pub(crate) fn check(source: &str, fields: &[&str]) -> Result<(), TemplateError> {
    if longest_tag(source) > MAX_TAG_BYTES || source.matches("elif").count() > MAX_ELIF {
        return Err(TemplateError::TooLarge);
    }
    let environment = environment();
    let template = environment.template_from_str(source).map_err(|error| syntax_error(&error))?;
    let is_built_in = |name: &str| environment.globals().any(|(global, _)| global == name);
    let mut used: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    used.sort();
    match used.into_iter().find(|name| !fields.contains(&name.as_str()) && !is_built_in(name)) {
        Some(name) => Err(TemplateError::UnknownName { name }),
        None => Ok(()),
    }
}

fn syntax_error(error: &minijinja::Error) -> TemplateError {
    let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateError::Syntax { reason: format!("{message}{line}") }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
}

pub(crate) fn render(source: &str, input: &Payload) -> Result<String, Failure> {
    let rendered = environment().render_str(source, minijinja::value::Serde(input.value()));
    rendered.map_err(|error| {
        Failure::new(FailureKind::Arguments, format!("the prompt could not be rendered: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(source: &str) -> Result<Template, TemplateError> {
        Template::parse(source, &["input", "attachments"])
    }

    #[test]
    fn a_text_is_made_from_the_input() {
        let prompt = Template::parse("{{ topic }} in {{ words }} words", &["topic", "words"]).unwrap();
        let input = Payload::new(json!({"topic": "Rust", "words": 5}));
        assert_eq!(prompt.render(&input).unwrap(), "Rust in 5 words");
    }

    #[test]
    fn a_name_that_the_input_lacks_and_bad_syntax_are_errors() {
        let error = Template::parse("{{ topc }}", &["topic"]).unwrap_err();
        assert_eq!(error, TemplateError::UnknownName { name: "topc".to_owned() });
        let error = parse("{{ input").unwrap_err();
        assert!(error.to_string().starts_with("is not a valid template: "), "{error}");
    }

    #[test]
    fn a_chain_that_could_overflow_the_stack_is_refused() {
        for chain in ["|trim", " + 1", "-", ".a", " and 1", " if 1 else 1"] {
            let template = format!("{{{{ 1{} }}}}", chain.repeat(100_000));
            assert_eq!(parse(&template).unwrap_err(), TemplateError::TooLarge, "{chain}");
            // One that is just small enough does no harm.
            let _ = parse(&format!("{{{{ 1{} }}}}", chain.repeat(990 / chain.len())));
        }
        let chain = format!("{{% if input %}}{}{{% endif %}}", "{% elif input %}".repeat(100_000));
        assert!(parse(&chain).is_err());
    }

    #[test]
    fn an_endless_template_runs_out_of_fuel() {
        let endless = parse(
            "{% for a in range(100000) %}{% for b in range(100000) %}{{ input }}{% endfor %}{% endfor %}",
        );
        assert!(endless.unwrap().render(&Payload::new(json!({"input": "x"}))).is_err());
    }
}
