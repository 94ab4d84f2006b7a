//! Templates that make a text from an input.

mod bounds;
mod guard;
mod template_tags;

use std::fmt;
use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior};
use thiserror::Error;

use crate::{Digest, Failure, FailureKind, Payload};
use bounds::BoundedOutput;
use template_tags::{TemplatePiece, count_operators, pieces};

/// The work that one rendering may do: a template may come with a project that nobody has read.
const FUEL: u64 = 100_000;

/// The longest `{{ ... }}` or `{% ... %}`, in bytes. The library parses long chains of operators recursively, so that
/// they could overflow any stack.
const MAX_TAG_BYTES: usize = 1_000;

/// The most `elif` of a template, for the same reason.
const MAX_ELIF: usize = 200;

/// The most operators of one tag that make texts longer: `~` and `+`, and `*`, which the library limits to 100 MB each.
const MAX_JOINING: usize = 64;
const MAX_REPEATING: usize = 3;

/// The most bytes of text that loops in captured blocks write, as far as it is in the template.
const MAX_CAPTURED_BYTES: u64 = 16 * 1024 * 1024;

/// The most bytes that a template makes if nothing else is said.
pub const DEFAULT_TEMPLATE_BYTES: usize = 1024 * 1024;

type Render = dyn Fn(&Payload, usize) -> Result<String, Failure> + Send + Sync;

/// Turns an input into text.
#[derive(Clone)]
pub struct Template {
    render: Arc<Render>,
    source: Digest,
    limit: usize,
}

/// Why a template cannot be used. Written as what follows its name: "`prompt` uses ..".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It could overflow the stack of the parser.
    #[error(
        "is too large for a template: a tag has more than {MAX_TAG_BYTES} bytes or more than {MAX_JOINING} operators, or there are more than {MAX_ELIF} `elif`"
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
        Self::bounded(source, move |input, _| render(input))
    }

    /// A [minijinja](https://docs.rs/minijinja) template over the fields of the input. Names other than these are
    /// errors. It makes at most [`DEFAULT_TEMPLATE_BYTES`], unless [`max_bytes`](Self::max_bytes) says otherwise.
    pub fn parse(source: &str, fields: &[&str]) -> Result<Self, TemplateError> {
        check(source, fields)?;
        let text = source.to_owned();
        Ok(Self::bounded(source, move |input, limit| render(&text, input, limit)))
    }

    fn bounded(
        source: impl AsRef<[u8]>,
        render: impl Fn(&Payload, usize) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { render: Arc::new(render), source: Digest::hash(source), limit: DEFAULT_TEMPLATE_BYTES }
    }

    /// Sets how many bytes a text template may make. What a function makes is not limited.
    #[must_use]
    pub fn max_bytes(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Renders the text.
    pub fn render(&self, input: &Payload) -> Result<String, Failure> {
        (self.render)(input, self.limit)
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
    let is_too_large = |piece: &TemplatePiece<'_>| match piece {
        TemplatePiece::Text(_) => false,
        TemplatePiece::Tag(tag) => {
            tag.len() > MAX_TAG_BYTES
                || count_operators(tag, b"~+") > MAX_JOINING
                || count_operators(tag, b"*") > MAX_REPEATING
        }
    };
    if pieces(source).iter().any(is_too_large) || source.matches("elif").count() > MAX_ELIF {
        return Err(TemplateError::TooLarge);
    }
    let environment = environment();
    guard::guarded(source)
        .map_err(|tag| TemplateError::Syntax { reason: format!("`{tag}` cannot be read") })?;
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

pub(crate) fn render(source: &str, input: &Payload, limit: usize) -> Result<String, Failure> {
    let failed = |error: String| {
        Failure::new(FailureKind::Arguments, format!("the prompt could not be rendered: {error}"))
            .with_hint("if the text must be that large, raise `runtime.max_template_bytes`")
    };
    let guarded = guard::guarded(source).map_err(|tag| failed(format!("`{tag}` cannot be read")))?;
    let mut environment = environment();
    bounds::bind(&mut environment, limit);
    let captured = guarded.longest_captured.max(1) as u64;
    environment.set_fuel(Some(FUEL.min(MAX_CAPTURED_BYTES.div_ceil(captured))));
    let mut output = BoundedOutput { bytes: Vec::new(), limit };
    let template =
        environment.template_from_str(&guarded.source).map_err(|error| failed(error.to_string()))?;
    let context = minijinja::value::Serde(input.value());
    template.render_captured_to(context, &mut output).map_err(|error| failed(described(&error)))?;
    String::from_utf8(output.bytes).map_err(|error| failed(error.to_string()))
}

/// Describes an error with its cause: that the output is too large is only told there.
fn described(error: &minijinja::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
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

    /// Renders a template that must not make a large text, and returns the error.
    fn refused(source: &str) -> String {
        let template = parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        template.render(&Payload::new(json!({"input": "0123456789"}))).unwrap_err().message
    }

    #[test]
    fn a_text_that_grows_by_itself_ends_the_rendering() {
        let thirty = |tag: &str| tag.repeat(30);
        for source in [
            format!("{{% set a = input %}}{}{{{{ a }}}}", thirty("{% set a = a ~ a %}")),
            format!("{{% set a = input %}}{}{{{{ a }}}}", thirty("{% set a = a + a %}")),
            format!("{{% set a = input %}}{}{{{{ a }}}}", thirty("{% set a = [a, a]|join %}")),
            format!("{{% set a = [input] %}}{}{{{{ a }}}}", thirty("{% set a = [a, a] %}")),
            format!("{{% set a = input %}}{}{{{{ a }}}}", thirty("{% set a %}{{ a }}{{ a }}{% endset %}")),
            "{% set ns = namespace(a=input) %}{% for i in range(40) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}".into(),
            "{% set ns = namespace(a=input) %}{% for i in range(40) %}{% set ns = namespace(a=ns.a ~ ns.a) %}{% set a = ns.a ~ ns.a %}{% endfor %}{% for i in range(90000) %}{{ input }}{{ input }}{{ input }}{% endfor %}".into(),
            (0..30).fold("{% set a0 = input %}".to_owned(), |source, n| {
                format!("{source}{{% for a{} in [a{n} ~ a{n}] %}}", n + 1)
            }) + &thirty("{% endfor %}"),
            (0..30).fold("{% set a0 = input %}".to_owned(), |source, n| {
                format!("{source}{{% with a{} = a{n} ~ a{n} %}}", n + 1)
            }) + &thirty("{% endwith %}"),
            "{% macro f(a, n) %}{% if n > 0 %}{{ f(a ~ a, n - 1) }}{% endif %}{% endmacro %}{{ f(input, 40) }}".into(),
            "{% for a in [input] recursive %}{{ loop([a ~ a]) }}{% endfor %}".into(),
            "{{ ([input] * 10000000)|join }}".into(),
            "{{ input|replace('', 'x' * 90000000) }}".into(),
            "{{ input|indent(4000000000, true) }}".into(),
            "{{ '%900000000d'|format(1) }}".into(),
            "{{ 'x' * 90000000 }}".into(),
            "{% set a %}{% for i in range(30000) %}".to_owned() + &"x".repeat(100_000) + "{% endfor %}{% endset %}",
            "{% for i in range(30000) %}".to_owned() + &"x".repeat(100_000) + "{% endfor %}",
        ] {
            let error = refused(&source);
            assert!(error.contains("larger than") || error.contains("fuel"), "{source:.200}: {error}");
        }
    }

    #[test]
    fn a_template_that_works_goes_on_working() {
        let source = "{% set greeting = 'Hello ' ~ input %}{%- for word in input|split(' ') if word -%}\n\
                      {{ loop.index }}. {{ word|upper|indent(2) }}{% endfor %}\n{% macro twice(a, b='!') %}{{ a }}{{ a }}{{ b }}{% endmacro %}\
                      {{ twice(greeting) }}{% with n = [1, 2] %}{{ n|join('-') }}{{ n|tojson }}{% endwith %}{% set block -%} x {% endset %}[{{ block }}]";
        let template = parse(source).unwrap();
        let text = template.render(&Payload::new(json!({"input": "big world"}))).unwrap();
        assert_eq!(text, "1. BIG2. WORLD\nHello big worldHello big world!1-2[1, 2][x ]");
    }

    #[test]
    fn the_limit_can_be_changed_and_is_named() {
        let template = parse("{{ input }}{{ input }}").unwrap();
        let input = Payload::new(json!({"input": "x".repeat(600_000)}));
        let failure = template.render(&input).unwrap_err();
        assert!(failure.message.contains("larger than 1048576 bytes"), "{failure:?}");
        assert!(failure.hint.unwrap().contains("`runtime.max_template_bytes`"));
        assert_eq!(template.max_bytes(2_000_000).render(&input).unwrap().len(), 1_200_000);
    }
}
