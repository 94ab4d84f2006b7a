//! An approver that follows its whim and writes down what it allowed.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use llm_do::approval::{Answer, ApprovalRequest, Approver, ApproverError};
use llm_do_testing::Chance;
use serde_json::Value;

/// What was asked and answered.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    tool: String,
    arguments: String,
    answer: Answer,
}

/// Answers at random, the same for the same request of the same case.
#[derive(Debug, Clone)]
pub(crate) struct Whim {
    seed: u64,
    log: Arc<Mutex<Vec<Answered>>>,
}

impl Whim {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, log: Arc::default() }
    }

    pub(crate) fn log(&self) -> Vec<Answered> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn refusals(&self) -> usize {
        self.log().iter().filter(|answered| matches!(answered.answer, Answer::Deny(_))).count()
    }

    /// Returns whether a call with this mark was allowed: itself, with the edited arguments, or by a grant that was
    /// given for the same tool.
    pub(crate) fn allowed(&self, name: &str, mark: &str) -> bool {
        let tool = if name == "mv" { "shell" } else { name };
        self.log().iter().any(|answered| match &answered.answer {
            Answer::Once => has_mark(&answered.arguments, mark),
            Answer::Edit(edited) => has_mark(&edited.to_string(), mark),
            Answer::Session(scope) => {
                has_mark(&answered.arguments, mark)
                    || (answered.tool == tool && *scope != llm_do::approval::Scope::Exact)
            }
            Answer::Revise(_) | Answer::Deny(_) | Answer::Stop | Answer::Park => false,
        })
    }
}

/// An edited mark contains the original one, but is another.
fn has_mark(text: &str, mark: &str) -> bool {
    text.match_indices(mark).any(|(at, _)| !text[at + mark.len()..].starts_with('e'))
}

impl Approver for Whim {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let mut chance = Chance::at(self.seed, &["approver", &request.id, request.arguments.text()]);
        let answer = match chance.below(10) {
            0..=2 => Answer::Once,
            3 | 4 if !request.scopes.is_empty() => Answer::Session(chance.one_of(&request.scopes).clone()),
            3 | 4 => Answer::Once,
            5 => Answer::Edit(edited(request.arguments.value())),
            6 if edited(request.arguments.value()) == *request.arguments.value() => Answer::Once,
            6 => Answer::Revise(edited(request.arguments.value())),
            7 | 8 => Answer::Deny("not now".to_owned()),
            _ if chance.percent(20) => Answer::Stop,
            _ => return Box::pin(std::future::ready(Err(ApproverError("gone".to_owned())))),
        };
        let arguments = request.arguments.text().to_owned();
        let tool = request.name.to_string();
        self.log.lock().unwrap().push(Answered { tool, arguments, answer: answer.clone() });
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Puts an `e` behind every mark that has none.
fn edited(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => Value::String(edit_marks(text)),
        Value::Array(list) => list.iter().map(edited).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), edited(value))).collect(),
        other => other.clone(),
    }
}

fn edit_marks(text: &str) -> String {
    let mut edited = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("mark") {
        let end = rest[at + 4..].find('m').map_or(rest.len(), |end| at + 4 + end + 1);
        edited.push_str(&rest[..end]);
        edited.push('e');
        rest = rest[end..].strip_prefix('e').unwrap_or(&rest[end..]);
    }
    edited + rest
}
