//! Finds the field at which a value does not fit, and says why in words for whoever fills it in.
//!
//! What fits is for the schema to say, exactly as it says so when the value is sent.

use llm_do_core::SchemaProblem;
use serde_json::{Map, Value};

use super::Form;

/// A problem of the whole value, or of one field.
#[derive(Debug, PartialEq)]
pub(super) struct Finding {
    /// The field; none where the problem lies between several.
    pub(super) field: Option<usize>,
    pub(super) message: String,
}

impl Form {
    /// Returns what the schema has against an object.
    pub(super) fn findings(&self, object: Map<String, Value>) -> Vec<Finding> {
        let value = Value::Object(object);
        let problems = self.schema.accept(value.clone()).err().unwrap_or_default();
        problems.iter().map(|problem| self.finding(problem, &value)).collect()
    }

    fn finding(&self, problem: &SchemaProblem, value: &Value) -> Finding {
        let steps = steps_of(problem);
        let named = |name: &str| self.fields.iter().position(|field| field.name == name);
        if let Some(index) = steps.first().and_then(|name| named(name)) {
            let value = value.get(&steps[0]).unwrap_or(&Value::Null);
            return Finding {
                field: Some(index),
                message: describe_problem(value, &steps[1..], &problem.message),
            };
        }
        // A field can be needed because of what another one says.
        let is_missed = |name: &str| problem.message == format!("missing required field `{name}`");
        if let Some(index) = self.fields.iter().position(|field| is_missed(&field.name)) {
            return Finding { field: Some(index), message: super::field::NEEDED.to_owned() };
        }
        let message = match problem.message.strip_prefix(&value.to_string()) {
            Some(rest) => format!("the whole input{rest}"),
            None => format!("the whole input: {}", problem.message),
        };
        Finding { field: None, message }
    }
}

/// The way to the value that has the problem: an unknown key is a problem of the object that has it.
fn steps_of(problem: &SchemaProblem) -> Vec<String> {
    let mut steps: Vec<String> =
        problem.pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    if problem.pointer.trim_start_matches('/').replace('/', ".") != problem.field {
        steps.pop();
    }
    steps
}

/// The path below the field, if any, and what is wrong there. The value itself is in the field already.
fn describe_problem(value: &Value, steps: &[String], message: &str) -> String {
    let mut here = value;
    let mut path = Vec::new();
    for step in steps {
        let index = if here.is_array() { step.parse::<usize>().ok() } else { None };
        path.push(index.map_or_else(|| format!("`{step}`"), |index| format!("item {}", index + 1)));
        here = index.map_or_else(|| here.get(step), |index| here.get(index)).unwrap_or(&Value::Null);
    }
    let location = path.join(", ");
    match message.strip_prefix(&here.to_string()) {
        Some(rest) => format!("{location}{rest}").trim_start().to_owned(),
        None if location.is_empty() => message.to_owned(),
        None => format!("{location}: {message}"),
    }
}
