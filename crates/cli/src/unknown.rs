//! Calls of a recorded run of which nobody knows whether they happened, and what the user says about them.

use llm_do::Output;
use llm_do::event::Event;
use llm_do::record::{Settlement, UnknownCall, unknown_calls};
use llm_do::value::Key;
use serde_json::Value;
use std::sync::Arc;

use crate::command_error::CommandError;
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

/// Returns what became of each unknown call, or lists those about which nothing is said.
pub(crate) fn settlements(
    events: &[Arc<Event>],
    answers: &[UnknownAnswer],
) -> Result<Vec<(Key, Settlement)>, CommandError> {
    let unknown = unknown_calls(events);
    for answer in answers {
        if let UnknownAnswer::One(call, _) = answer
            && !unknown.iter().any(|unknown| unknown.call.id == call.as_str())
        {
            let message = format!("the run has no call `{}` whose outcome is unknown", visible_line(call));
            return Err(if unknown.is_empty() {
                CommandError::usage(message)
            } else {
                CommandError::with_hint(message, format!("these are unknown:\n{}", list(&unknown)))
            });
        }
    }
    let said = |unknown: &UnknownCall| {
        let one = answers.iter().rev().find_map(|answer| match answer {
            UnknownAnswer::One(call, settlement) if unknown.call.id == call.as_str() => {
                Some(settlement.clone())
            }
            _ => None,
        });
        one.or_else(|| answers.contains(&UnknownAnswer::TellAll).then_some(Settlement::Unknown))
    };
    let (settled, open): (Vec<_>, Vec<_>) =
        unknown.into_iter().map(|unknown| (said(&unknown), unknown)).partition(|(said, _)| said.is_some());
    if open.is_empty() {
        let settled = settled.into_iter();
        return Ok(settled.filter_map(|(said, unknown)| Some((unknown.call.id.clone(), said?))).collect());
    }
    let open: Vec<UnknownCall> = open.into_iter().map(|(_, unknown)| unknown).collect();
    Err(CommandError::failed_with_hint(
        format!("these calls had begun when the process ended, and may have happened:\n{}", list(&open)),
        HINT,
    ))
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
