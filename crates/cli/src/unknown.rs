//! Calls of a recorded run of which nobody knows whether they happened, and what the user says about them.

use llm_do::Output;
use llm_do::event::Event;
use llm_do::record::{Settlement, UnknownCall, unknown_calls};
use llm_do::value::Key;
use serde_json::Value;
use std::sync::Arc;

use crate::command_error::CommandError;
use crate::terminal_question;
use crate::text::{shortened, visible_line};

/// How much of the arguments a line shows.
const MAX_INPUT_CHARS: usize = 200;

const HINT: &str = "find out what happened, then say so for each: `--unknown CALL=done` (it happened; `CALL=done:JSON` gives its result), \
    `--unknown CALL=again` (it did not: do it now), or `--unknown tell` (the agent is told that nobody knows)";

/// Something that the user says about unknown calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UnknownAnswer {
    /// About all of them about which nothing else is said.
    TellAll,
    /// About one call.
    One(String, Settlement),
}

impl std::str::FromStr for UnknownAnswer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "tell" {
            return Ok(Self::TellAll);
        }
        let expected =
            || "expected `tell`, `CALL=tell`, `CALL=again`, `CALL=done` or `CALL=done:JSON`".to_owned();
        let (call, answer) = text.split_once('=').ok_or_else(expected)?;
        let happened = |output| Settlement::Happened { output };
        let settlement = match answer.split_once(':') {
            None if answer == "tell" => Settlement::Unknown,
            None if answer == "again" => Settlement::DidNotHappen,
            None if answer == "done" => happened(Output::json(Value::Null)),
            Some(("done", json)) => {
                let value = serde_json::from_str(json);
                happened(Output::json(
                    value.map_err(|error| format!("the result is not valid JSON: {error}"))?,
                ))
            }
            _ => return Err(expected()),
        };
        Ok(Self::One(call.to_owned(), settlement))
    }
}

/// Returns what became of each unknown call: what the flags say, else what the user answers at the terminal. Without a
/// terminal, lists those about which nothing is said.
pub(crate) fn settlements(
    events: &[Arc<Event>],
    answers: &[UnknownAnswer],
) -> Result<Vec<(Key, Settlement)>, CommandError> {
    let unknown = unknown_calls(events);
    check_named(&unknown, answers)?;
    let mut settled = Vec::new();
    let mut open = Vec::new();
    for call in unknown {
        match said(&call, answers) {
            Some(settlement) => settled.push((call.call.id.clone(), settlement)),
            None => open.push(call),
        }
    }
    settled.extend(ask_about(&open)?);
    Ok(settled)
}

/// Refuses an answer about a call whose outcome is known, or that is not there.
fn check_named(unknown: &[UnknownCall], answers: &[UnknownAnswer]) -> Result<(), CommandError> {
    let is_unknown = |call: &str| unknown.iter().any(|unknown| unknown.call.id == call);
    let wrong = answers.iter().find_map(|answer| match answer {
        UnknownAnswer::One(call, _) if !is_unknown(call) => Some(call),
        _ => None,
    });
    let Some(call) = wrong else { return Ok(()) };
    let message = format!("the run has no call `{}` whose outcome is unknown", visible_line(call));
    Err(if unknown.is_empty() {
        CommandError::usage(message)
    } else {
        CommandError::with_hint(message, format!("these are unknown:\n{}", list(unknown)))
    })
}

/// Returns what the flags say about a call.
fn said(unknown: &UnknownCall, answers: &[UnknownAnswer]) -> Option<Settlement> {
    let one = answers.iter().rev().find_map(|answer| match answer {
        UnknownAnswer::One(call, settlement) if unknown.call.id == call.as_str() => Some(settlement.clone()),
        _ => None,
    });
    one.or_else(|| answers.contains(&UnknownAnswer::TellAll).then_some(Settlement::Unknown))
}

/// Asks about calls at the terminal, after all of them were listed.
fn ask_about(open: &[UnknownCall]) -> Result<Vec<(Key, Settlement)>, CommandError> {
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let listed =
        format!("these calls had begun when the process ended, and may have happened:\n{}", list(open));
    let mut settled = Vec::new();
    for (index, call) in open.iter().enumerate() {
        let before = if index == 0 { format!("{listed}\n\n") } else { String::new() };
        match ask_one(&before, call)? {
            Some(settlement) => settled.push((call.call.id.clone(), settlement)),
            None => return Err(CommandError::failed_with_hint(listed, HINT)),
        }
    }
    Ok(settled)
}

/// Asks about one call; nothing if there is no terminal.
fn ask_one(before: &str, call: &UnknownCall) -> Result<Option<Settlement>, CommandError> {
    let question = format!(
        "{before}{}\n[d] it happened  [a] it did not: do it now  [t] tell the agent that nobody knows  [s] stop > ",
        list(std::slice::from_ref(call))
    );
    let Some(answer) = terminal_question::ask(&question) else { return Ok(None) };
    match answer.as_str() {
        "d" | "D" => Ok(Some(Settlement::Happened { output: ask_for_result() })),
        "a" | "A" => Ok(Some(Settlement::DidNotHappen)),
        "t" | "T" => Ok(Some(Settlement::Unknown)),
        _ => Err(CommandError::usage("the run was not continued")),
    }
}

fn ask_for_result() -> Output {
    let mut question = "its result as JSON (Enter: it gave nothing) > ".to_owned();
    loop {
        let answer = terminal_question::ask(&question).unwrap_or_default();
        if answer.is_empty() {
            return Output::json(Value::Null);
        }
        match serde_json::from_str(&answer) {
            Ok(value) => return Output::json(value),
            Err(error) => question = format!("that is not valid JSON: {error}\nits result as JSON > "),
        }
    }
}

fn list(unknown: &[UnknownCall]) -> String {
    let line = |unknown: &UnknownCall| {
        let input = shortened(&visible_line(unknown.input.text()), MAX_INPUT_CHARS);
        let began = unknown.began.strftime("%Y-%m-%d %H:%M:%S UTC");
        format!("  {}  {} {input}, begun {began}", unknown.call.id, visible_line(&unknown.call.path))
    };
    unknown.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_a_call_and_what_became_of_it() {
        let one = |text: &str| match text.parse().unwrap() {
            UnknownAnswer::One(call, settlement) => (call, settlement),
            UnknownAnswer::TellAll => panic!("all"),
        };
        assert_eq!("tell".parse(), Ok(UnknownAnswer::TellAll));
        assert_eq!(one("1/t1/0=again"), ("1/t1/0".to_owned(), Settlement::DidNotHappen));
        assert_eq!(one("1=tell").1, Settlement::Unknown);
        let result = serde_json::json!({"id": 7});
        assert_eq!(one("1=done:{\"id\": 7}").1, Settlement::Happened { output: Output::json(result) });
        for wrong in ["", "1", "1=", "1=maybe", "1=done:{", "1=again:7"] {
            assert!(wrong.parse::<UnknownAnswer>().is_err(), "{wrong}");
        }
    }
}
