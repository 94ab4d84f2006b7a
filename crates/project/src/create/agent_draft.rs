//! Writes agent files.

use std::collections::BTreeMap;

use llm_do_core::{Access, Approval, ApprovalRule, AttachmentPolicy, Limits};
use serde_json::{Map, Value, json};

use crate::document::{self, Language};

/// Why the text of an agent file cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentDraftError {
    /// The header cannot be written as YAML, or cannot be read back.
    #[error("the header cannot be written as YAML: {0}")]
    Yaml(String),
    /// The header would be read back as something else.
    #[error("the header cannot be written as YAML without loss")]
    Lossy,
}

/// What an agent file shall say.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentDraft {
    /// The name.
    pub name: String,
    /// Whether an agent or code creates it, and may replace it later.
    pub generated: bool,
    /// What the agent does, as its callers read it.
    pub description: String,
    /// The model.
    pub model: Option<String>,
    /// Single tools.
    pub tools: Vec<String>,
    /// Tools that need more access here than they do by themselves, single ones or tools of a toolset.
    pub tool_access: Vec<(String, Access)>,
    /// Toolsets and agents, with settings or null.
    pub toolsets: Vec<(String, Value)>,
    /// The agents that may be called from it.
    pub agents: Vec<String>,
    /// Approval rules.
    pub approval: Vec<ApprovalRule>,
    /// Tools that only a person or code may call.
    pub manual_only: Vec<String>,
    /// What it and everything below it may do at most.
    pub access: Access,
    /// Its budgets.
    pub limits: Limits,
    /// Which files it takes, where that is not what the project says.
    pub attachment_policy: Option<AttachmentPolicy>,
    /// The schema of its input.
    pub input_schema: Option<Map<String, Value>>,
    /// The schema of its answer.
    pub output_schema: Option<Map<String, Value>>,
    /// The instructions.
    pub instructions: String,
}

impl AgentDraft {
    /// An agent with instructions and the defaults for everything else.
    pub fn new(name: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            generated: false,
            description: String::new(),
            model: None,
            tools: Vec::new(),
            tool_access: Vec::new(),
            toolsets: Vec::new(),
            agents: Vec::new(),
            approval: Vec::new(),
            manual_only: Vec::new(),
            access: Access::Admin,
            limits: Limits::default(),
            attachment_policy: None,
            input_schema: None,
            output_schema: None,
            instructions: instructions.into(),
        }
    }

    /// Returns the whole text of the file. It is read back, so that it means what was meant.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written as YAML, or would be read as something else.
    pub fn text(&self) -> Result<String, AgentDraftError> {
        let header = Value::Object(self.header());
        let yaml =
            serde_saphyr::to_string(&header).map_err(|error| AgentDraftError::Yaml(error.to_string()))?;
        let read =
            document::read(&yaml, Language::Yaml).map_err(|error| AgentDraftError::Yaml(error.message))?;
        if read.to_value() != header {
            return Err(AgentDraftError::Lossy);
        }
        Ok(format!("---\n{}\n---\n\n{}\n", yaml.trim_end(), self.instructions.trim()))
    }

    /// The header; what has its default is left out.
    fn header(&self) -> Map<String, Value> {
        let toolset = |(name, settings): &(String, Value)| match settings {
            Value::Null => json!(name),
            settings => json!({ name: settings }),
        };
        let toolsets: Vec<Value> = self.toolsets.iter().map(toolset).collect();
        let access = (self.access != Access::Admin).then(|| self.access.as_str());
        let fields = [
            ("name", json!(self.name)),
            ("generated", json!(self.generated.then_some(true))),
            ("description", json!(self.description)),
            ("model", json!(self.model)),
            ("tools", self.tool_entries()),
            ("toolsets", json!(toolsets)),
            ("agents", json!(self.agents)),
            ("approval", approval(&self.approval)),
            ("manual_only", json!(self.manual_only)),
            ("access", json!(access)),
            ("limits", limits(&self.limits)),
            ("attachment_policy", json!(self.attachment_policy)),
            ("input_schema", json!(self.input_schema)),
            ("output_schema", json!(self.output_schema)),
        ];
        let said = fields.into_iter().filter(|(_, value)| !is_empty(value));
        said.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl AgentDraft {
    /// The tools by name, and those whose access is demanded as objects.
    fn tool_entries(&self) -> Value {
        let is_plain = |tool: &&String| self.tool_access.iter().all(|(name, _)| name != *tool);
        let plain = self.tools.iter().filter(is_plain).map(|tool| json!(tool));
        let demanding =
            self.tool_access.iter().map(|(name, access)| json!({"name": name, "access": access.as_str()}));
        plain.chain(demanding).collect()
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Of several rules with one pattern the strictest is written: it is the one that holds.
fn approval(rules: &[ApprovalRule]) -> Value {
    let mut strictest: BTreeMap<&str, Approval> = BTreeMap::new();
    for rule in rules {
        let known = strictest.entry(&rule.pattern).or_insert(rule.approval);
        *known = (*known).max(rule.approval);
    }
    json!(strictest)
}

fn limits(limits: &Limits) -> Value {
    let fields = [
        ("turns", json!(limits.turns)),
        ("repeats", json!(limits.repeats)),
        ("tool_calls", json!(limits.tool_calls)),
        ("requests", json!(limits.requests)),
        ("tokens", json!(limits.tokens)),
        ("cost", json!(limits.cost.map(|money| money.dollars()))),
        ("time", json!(limits.time.map(|time| time.as_secs_f64()))),
    ];
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::agent_file;
    use crate::source::SourceFile;

    #[test]
    fn what_is_written_is_read_back_as_it_was_meant() {
        let odd =
            "yes: no\n---\n# \"quoted\" 'x' \\ {a: b} [c] & * ! | > % @ ` \u{202e}\u{0}\u{7f}\u{85}\u{2028}";
        let mut draft = AgentDraft::new("helper", format!("Do it.\n---\nname: other\n---\n{odd}"));
        draft.description = odd.to_owned();
        draft.toolsets =
            vec![("files".into(), Value::Null), ("shell".into(), json!({"root": odd, "n": 1.5}))];
        draft.agents = vec!["*".into(), "null".into(), "1".into(), "true".into(), "~".into()];
        draft.approval = vec![
            ApprovalRule { pattern: "write_*".into(), approval: Approval::Ask },
            ApprovalRule { pattern: "write_*".into(), approval: Approval::Blocked },
        ];
        draft.access = Access::Write;
        draft.limits.turns = Some(3);
        let text = draft.text().unwrap();
        let file = agent_file::read(SourceFile::new("helper.agent", text.as_str())).unwrap();
        assert_eq!(file.header.to_value(), Value::Object(draft.header()), "{text}");
        assert_eq!(&*file.instructions, draft.instructions.trim());
        assert_eq!(file.header.to_value()["approval"], json!({"write_*": "blocked"}));
        assert_eq!(file.header.to_value()["access"], "write");
    }

    #[test]
    fn what_is_not_said_is_not_written() {
        assert_eq!(AgentDraft::new("a", " Do it. ").text().unwrap(), "---\nname: a\n---\n\nDo it.\n");
    }
}
