//! How an input becomes the first message of an agent.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::template::{self, Template, TemplateError};
use crate::{Digest, Failure, FailureKind, InputPart, Payload, input_attachments};

/// The typed input of an agent: its schema comes from the type, and the type says what the model reads.
///
/// ```
/// use llm_do_core::{AgentArgs, AgentSpec, Attachment, InputPart};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct PitchInput {
///     /// The name of the company.
///     company: String,
///     deck: String,
/// }
///
/// impl AgentArgs for PitchInput {
///     fn prompt_messages(&self) -> Vec<InputPart> {
///         vec![format!("Evaluate the pitch of {}.", self.company).into(), Attachment::path(&self.deck).into()]
///     }
/// }
///
/// let agent = AgentSpec::new("evaluator", "You evaluate pitch decks.").input_of::<PitchInput>();
/// ```
pub trait AgentArgs: DeserializeOwned + JsonSchema {
    /// Returns what the model reads: texts and attachments in order. It must have no effects, because the gate calls
    /// it too.
    fn prompt_messages(&self) -> Vec<InputPart>;
}

type MakeParts = dyn Fn(&Payload) -> BoxFuture<'static, Result<Vec<InputPart>, Failure>> + Send + Sync;

/// Turns an input into the first message of an agent: text and attachments in order.
///
/// It has no effects: the gate makes the message too, to show what an agent would be given. A text is a prompt: a
/// [minijinja](https://docs.rs/minijinja) template over the fields of the input, checked when the project is built.
#[derive(Clone)]
pub struct Prompt {
    make: Arc<MakeParts>,
    source: Digest,
    template: Option<Arc<str>>,
}

impl Prompt {
    /// A prompt whose text a function makes; the attachments of the input follow. The source represents the function
    /// in the digest that a run is bound to: change it when the function changes.
    pub fn new(
        source: impl AsRef<[u8]>,
        render: impl Fn(&Payload) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> Self {
        Template::new(source, render).into()
    }

    /// A prompt made elsewhere, such as by the class of an input in another language.
    pub fn made_by(
        source: impl AsRef<[u8]>,
        make: impl Fn(&Payload) -> BoxFuture<'static, Result<Vec<InputPart>, Failure>> + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), source: Digest::hash(source), template: None }
    }

    /// A prompt that a typed input makes.
    pub(crate) fn from_args<T: AgentArgs>() -> Self {
        let make = |input: &Payload| -> BoxFuture<'static, Result<Vec<InputPart>, Failure>> {
            let read = input.parse::<T>().map(|args| args.prompt_messages());
            let parts = read.map_err(|error| Failure::new(FailureKind::Arguments, error.to_string()));
            Box::pin(std::future::ready(parts))
        };
        Self::made_by(std::any::type_name::<T>(), make)
    }

    /// Makes the message.
    pub async fn parts(&self, input: &Payload) -> Result<Vec<InputPart>, Failure> {
        (self.make)(input).await
    }

    /// Checks a prompt that is a template against the schema of its input.
    pub fn check(&self, schema: Option<&Map<String, Value>>) -> Result<(), TemplateError> {
        let check = |source: &Arc<str>| template::check(source, &input_fields(schema));
        self.template.as_ref().map_or(Ok(()), check)
    }

    /// Returns the digest of its source.
    pub fn digest(&self) -> Digest {
        self.source
    }
}

/// Returns the fields that a template may name. Without a schema, an input is a text with attachments.
pub fn input_fields(schema: Option<&Map<String, Value>>) -> Vec<&str> {
    let Some(schema) = schema else { return vec!["input", "attachments"] };
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().map(String::as_str).collect()).unwrap_or_default()
}

impl From<Template> for Prompt {
    fn from(template: Template) -> Self {
        let source = template.digest();
        let make = move |input: &Payload| -> BoxFuture<'static, Result<Vec<InputPart>, Failure>> {
            let attachments = input_attachments(input).into_iter().map(InputPart::Attachment);
            let text = template.render(input).map(InputPart::Text);
            let parts = text.map(|text| std::iter::once(text).chain(attachments).collect());
            Box::pin(std::future::ready(parts))
        };
        Self { make: Arc::new(make), source, template: None }
    }
}

impl From<&str> for Prompt {
    fn from(source: &str) -> Self {
        let text: Arc<str> = source.into();
        let rendered = text.clone();
        let limit = template::DEFAULT_TEMPLATE_BYTES;
        let template = Template::new(source, move |input| template::render(&rendered, input, limit));
        Self { template: Some(text), ..template.into() }
    }
}

impl From<String> for Prompt {
    fn from(source: String) -> Self {
        source.as_str().into()
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prompt({:?})", self.source)
    }
}
