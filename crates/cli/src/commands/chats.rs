//! `llm-do chats`: the chats of the record, listed, shown and forgotten.

use std::fmt::Write;

use llm_do::record::StoreError;
use llm_do_core::counted;
use llm_do_record::{RecordedTurn, SessionFilter, SessionSummary, short_id};
use serde_json::{Value, json};

use crate::arguments::{ChatsAction, ChatsArguments, ForgetArguments, ListOutput};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::host;
use crate::output;
use crate::record::{self, RecordTarget, age, cost, project_of};
use crate::recorded_chat;
use crate::text::{shortened, visible, visible_line};

/// How much of the title a line shows.
const MAX_TITLE_CHARS: usize = 50;

/// Lists the chats of the record, or shows one.
pub(crate) fn chats(arguments: &ChatsArguments) -> Result<Exit, CommandError> {
    match (&arguments.action, &arguments.id) {
        (Some(ChatsAction::Forget(arguments)), _) => forget(arguments),
        (None, Some(id)) => show(arguments, id),
        (None, None) => list(arguments),
    }
}

fn list(arguments: &ChatsArguments) -> Result<Exit, CommandError> {
    let filter = SessionFilter {
        project: arguments.project.as_deref().map(project_of),
        search: arguments.search.clone(),
        limit: Some(arguments.limit),
    };
    let sessions = match record::reader(&arguments.record)? {
        Some(reader) => reader.sessions(&filter).map_err(|error| record::failed(&error))?,
        None => Vec::new(),
    };
    match arguments.output {
        ListOutput::Json => {
            let list: Vec<Value> = sessions.iter().map(object).collect();
            output::to_stdout(&serde_json::to_string_pretty(&list).unwrap_or_default());
        }
        ListOutput::Text if sessions.is_empty() => output::to_stderr("no chats"),
        ListOutput::Text => drop(output::to_stdout(table(&sessions).trim_end())),
    }
    Ok(Exit::Done)
}

fn table(sessions: &[SessionSummary]) -> String {
    let mut text = format!("{:8}  {:7}  {:>5}  {:>4}  {:>9}  title\n", "id", "state", "turns", "age", "cost");
    for session in sessions {
        let (id, state, turns) = (short_id(session.id), session.state.as_str(), session.turns);
        let (age, cost) = (age(session.last), cost(session.cost, session.unpriced));
        let title = shortened(&visible_line(&session.title), MAX_TITLE_CHARS);
        let _ = writeln!(text, "{id:8}  {state:7}  {turns:>5}  {age:>4}  {cost:>9}  {title}");
    }
    text
}

/// A chat as JSON.
fn object(session: &SessionSummary) -> Value {
    json!({
        "session_id": session.id.to_string(),
        "state": session.state.as_str(),
        "entry": session.entry,
        "title": session.title,
        "project": session.project,
        "began": session.began.to_string(),
        "last": session.last.to_string(),
        "turns": session.turns,
        "tokens_in": session.tokens_in,
        "tokens_out": session.tokens_out,
        "cost_usd": (session.unpriced == 0).then(|| session.cost.dollars()),
    })
}

/// Shows what was said in a chat, as far as the record keeps it at hand.
fn show(arguments: &ChatsArguments, id: &str) -> Result<Exit, CommandError> {
    let (reader, session) = recorded_chat::find(&arguments.record, id)?;
    let turns = reader.turns(session.id).map_err(|error| record::failed(&error))?;
    match arguments.output {
        ListOutput::Json => {
            let mut object = object(&session);
            object["messages"] = turns.iter().map(turn_object).collect();
            output::to_stdout(&serde_json::to_string_pretty(&object).unwrap_or_default());
        }
        ListOutput::Text => drop(output::to_stdout(described(&session, &turns).trim_end())),
    }
    Ok(Exit::Done)
}

fn turn_object(turn: &RecordedTurn) -> Value {
    json!({
        "turn": turn.ordinal,
        "run_id": turn.run.map(|run| run.to_string()),
        "text": turn.text,
        "answer": turn.answer,
        "status": turn.status.map(llm_do::event::Status::as_str),
    })
}

fn described(session: &SessionSummary, turns: &[RecordedTurn]) -> String {
    let title = visible_line(&session.title);
    let mut text = format!("chat {}: {title}\n", short_id(session.id));
    let _ = writeln!(text, "state    {}", session.state.as_str());
    if let Some(project) = &session.project {
        let _ = writeln!(text, "project  {}", visible_line(&project.display().to_string()));
    }
    for turn in turns {
        let run = turn.run.map(|run| format!("  (run {})", short_id(run))).unwrap_or_default();
        let _ = writeln!(text, "\n{}> {}{run}", turn.ordinal, visible(turn.text.trim_end()));
        match (&turn.answer, turn.status) {
            (Some(answer), _) if !answer.is_empty() => {
                let _ = writeln!(text, "{}", visible(answer.trim_end()));
            }
            (_, Some(status)) => {
                let _ = writeln!(text, "[no answer: {status}]");
            }
            (_, None) if turn.run.is_some() => {
                let _ = writeln!(text, "[no answer yet]");
            }
            (_, None) => {}
        }
    }
    text
}

/// Removes a chat and its runs from the record.
fn forget(arguments: &ForgetArguments) -> Result<Exit, CommandError> {
    let (reader, session) = recorded_chat::find(&arguments.record, &arguments.id)?;
    drop(reader);
    let Some(record) = RecordTarget::new(&arguments.record).open()? else { return Ok(Exit::Failed) };
    let removed = host::block_on(async {
        record.forget_session(session.id).await.map_err(|error| match error {
            StoreError::Held { .. } => CommandError::failed_with_hint(
                format!("chat {} is open in another process", short_id(session.id)),
                "leave it there first",
            ),
            error => record::failed(&error),
        })
    })?;
    let turns = usize::try_from(session.turns).unwrap_or(usize::MAX);
    output::to_stderr(&match removed {
        true => format!("forgot chat {} and its {}", short_id(session.id), counted(turns, "turn")),
        false => format!("chat {} is gone already", short_id(session.id)),
    });
    Ok(Exit::Done)
}
