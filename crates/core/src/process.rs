//! Agents as processes: programs that they start, long texts behind descriptors, what they may tune.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Access, Digest, Failure, Name};

/// An agent that another one can start by a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The name by which it is started.
    pub name: Name,
    /// The agent.
    pub agent: Name,
    /// What it does, for whoever may start it.
    pub description: String,
}

/// The programs that an agent can start, as tools see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkedPrograms(pub Arc<[Program]>);

impl LinkedPrograms {
    /// Returns a program by its name.
    pub fn get(&self, name: &str) -> Option<&Program> {
        self.0.iter().find(|program| program.name == name)
    }
}

type MakePreamble = dyn Fn() -> BoxFuture<'static, Result<String, Failure>> + Send + Sync;

/// Makes the text before the instructions of an agent, when a call of it begins: facts about its surroundings,
/// and files.
#[derive(Clone)]
pub struct Preamble {
    make: Arc<MakePreamble>,
    source: Digest,
}

impl Preamble {
    /// A preamble made by a function. The source represents the function in the pin of a run.
    pub fn new(
        source: impl AsRef<[u8]>,
        make: impl Fn() -> BoxFuture<'static, Result<String, Failure>> + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), source: Digest::hash(source) }
    }

    /// Makes the text.
    pub async fn text(&self) -> Result<String, Failure> {
        (self.make)().await
    }

    /// Returns the digest of its source.
    pub fn digest(&self) -> Digest {
        self.source
    }
}

impl fmt::Debug for Preamble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Preamble({:?})", self.source)
    }
}

/// How one agent is offered a tool: under another name, with other words, with less access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolOverride {
    /// The tool's own name.
    pub tool: Name,
    /// The name under which it is offered instead.
    pub alias: Option<Name>,
    /// Replaces its description.
    pub description: Option<String>,
    /// What it needs at least, where that differs.
    pub access: Option<Access>,
    /// Replaces descriptions of parameters.
    pub parameters: Vec<(String, String)>,
}

/// Which of its own settings the calls of an agent may change, and how far. By default none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The lowest and the highest temperature.
    pub temperature: Option<(f64, f64)>,
    /// The lowest and the highest number of output tokens.
    pub max_tokens: Option<(u64, u64)>,
    /// Names or globs of models.
    pub models: Vec<String>,
}

/// What the answer of a tool changes in the conversation of the agent that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// It is a [`Jump`]: the conversation goes on from an earlier message.
    Goto,
    /// It is a [`Tune`]: the next requests have other settings.
    Tune,
}

/// Goes on from an earlier message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jump {
    /// The message that is gone back to, as `msg_3`.
    pub position: String,
    /// What the conversation goes on with.
    pub message: String,
}

/// Changes settings of the next requests; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tune {
    /// The temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Name>,
}

impl Tuning {
    /// Returns whether nothing may be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ToolOverride {
    /// An override that changes nothing yet.
    pub fn new(tool: impl Into<Name>) -> Self {
        Self { tool: tool.into(), alias: None, description: None, access: None, parameters: Vec::new() }
    }

    /// Returns the schema of the tool's parameters with the other words in it.
    pub fn described(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        for (name, message) in &self.parameters {
            // By its name and not by a pointer, in which some characters mean something else.
            let parameter = schema.get_mut("properties").and_then(|parameters| parameters.get_mut(name));
            if let Some(Value::Object(parameter)) = parameter {
                parameter.insert("description".into(), message.as_str().into());
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_reach_parameters_whatever_their_names_hold() {
        let names = ["plain", "a/b", "a~b", "~1", ""];
        let mut change = ToolOverride::new("tool");
        change.parameters = names.map(|name| (name.to_owned(), format!("about {name}"))).into();
        let properties = names.map(|name| (name.to_owned(), json!({"type": "string"})));
        let schema = json!({"properties": Value::Object(properties.into_iter().collect())});
        let described = change.described(&schema);
        for name in names {
            assert_eq!(described["properties"][name]["description"], format!("about {name}"));
        }
    }
}
