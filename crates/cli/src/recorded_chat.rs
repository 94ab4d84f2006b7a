//! A chat of the record that goes on: which one, and what becomes of a turn that was cut off.

use std::path::Path;

use llm_do::event::RunId;
use llm_do::record::{ProjectSource, Settlement};
use llm_do::value::Key;
use llm_do_core::EventBody;
use llm_do_record::{Reader, RecordedTurn, SessionFilter, SessionStatus, SessionSummary, short_id};

use crate::arguments::{CutOffChoice, ProjectArguments, RecordArguments, SessionArguments};
use crate::command_error::CommandError;
use crate::location::{self, ProjectLocation};
use crate::output;
use crate::record::{self, project_of};
use crate::terminal_question;
use crate::text::{shortened, visible_line};
use crate::unknown;

/// How much of a message a question shows.
const MAX_SHOWN_CHARS: usize = 60;

/// A chat that goes on.
pub(crate) struct RecordedChat {
    pub(crate) id: RunId,
    pub(crate) title: String,
    /// What was said last.
    pub(crate) turns: Vec<RecordedTurn>,
    pub(crate) way: ChatWay,
}

/// How a chat goes on.
pub(crate) enum ChatWay {
    /// As itself.
    Continue(CutOffTurn),
    /// In a copy that ends with a turn, or with the last one.
    Copy { last: Option<u32> },
}

/// What becomes of a turn that was cut off, if there is one.
pub(crate) enum CutOffTurn {
    /// It goes on, after what the user said about calls that may have happened.
    Resume(Vec<(Key, Settlement)>),
    /// It is dropped.
    Drop,
}

/// Finds the chat that is to go on, and what it was begun with; none if a new one begins.
pub(crate) fn choose(
    arguments: &SessionArguments,
    record: &RecordArguments,
    project: &ProjectArguments,
) -> Result<Option<(RecordedChat, Option<ProjectLocation>)>, CommandError> {
    let (reader, session) = match (&arguments.resume, &arguments.fork) {
        (Some(id), _) | (None, Some(id)) => find(record, id)?,
        (None, None) if arguments.continue_last => newest(record, project)?,
        (None, None) => return Ok(None),
    };
    let location = match &project.path {
        Some(_) => None,
        None => source_of(&reader, session.id)?.map(location_of).transpose()?,
    };
    let turns = reader.turns(session.id).map_err(|error| record::failed(&error))?;
    let way = match arguments.fork {
        Some(_) => ChatWay::Copy { last: arguments.at },
        None => {
            refuse_open(&reader, &session)?;
            ChatWay::Continue(cut_off_turn(&reader, &session, &turns, arguments)?)
        }
    };
    Ok(Some((RecordedChat { id: session.id, title: session.title, turns, way }, location)))
}

/// Finds a chat by the beginning of its id, or `last`.
pub(crate) fn find(arguments: &RecordArguments, id: &str) -> Result<(Reader, SessionSummary), CommandError> {
    let reader = record::reader(arguments)?.ok_or_else(nothing)?;
    let line = |session: &SessionSummary| format!("  {}  {}", session.id, visible_line(&session.title));
    match reader.find_session(id) {
        Ok(session) => Ok((reader, session)),
        Err(error) => Err(record::not_found(error, id, "chat", line)),
    }
}

fn nothing() -> CommandError {
    record::nothing_recorded("chats")
}

/// Finds the newest chat of a project that nobody has open.
fn newest(
    arguments: &RecordArguments,
    project: &ProjectArguments,
) -> Result<(Reader, SessionSummary), CommandError> {
    let reader = record::reader(arguments)?.ok_or_else(nothing)?;
    let location = location::locate(project)?;
    let root = project_of(location.root());
    let filter = SessionFilter { project: Some(root.clone()), ..SessionFilter::default() };
    let sessions = reader.sessions(&filter).map_err(|error| record::failed(&error))?;
    let (open, closed): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|session| session.state == SessionStatus::Open);
    let newest = closed.into_iter().next().ok_or_else(|| {
        let shown = visible_line(&root.display().to_string());
        match open.first() {
            None => CommandError::with_hint(
                format!("there is no chat with {shown} yet"),
                "`llm-do chat` begins one; `llm-do chats` lists those of all projects",
            ),
            Some(session) => is_open(&reader, session),
        }
    })?;
    if let Some(newer) = open.iter().find(|session| session.last > newest.last) {
        let (id, title) = (short_id(newer.id), visible_line(&newer.title));
        output::early_notice(&format!("the newer chat {id} ({title}) is open in another process"));
    }
    Ok((reader, newest))
}

fn refuse_open(reader: &Reader, session: &SessionSummary) -> Result<(), CommandError> {
    match session.state {
        SessionStatus::Open => Err(is_open(reader, session)),
        _ => Ok(()),
    }
}

fn is_open(reader: &Reader, session: &SessionSummary) -> CommandError {
    let holder = reader.holder(session.id).ok().flatten().unwrap_or_else(|| "another process".to_owned());
    let id = short_id(session.id);
    CommandError::failed_with_hint(
        format!("chat {id} is open in {holder}"),
        format!("`llm-do chat --fork {id}` goes on in a copy"),
    )
}

/// What the project of a session was loaded from.
fn source_of(reader: &Reader, session: RunId) -> Result<Option<ProjectSource>, CommandError> {
    let events = reader.events(session, None).map_err(|error| record::failed(&error))?;
    Ok(events.iter().find_map(|event| match &event.body {
        EventBody::SessionStarted(start) => start.source.clone(),
        _ => None,
    }))
}

fn location_of(source: ProjectSource) -> Result<ProjectLocation, CommandError> {
    let ProjectSource { path, set, .. } = source;
    if Path::new(&path).exists() {
        return Ok(ProjectLocation { set, ..ProjectLocation::new(path) });
    }
    Err(CommandError::with_hint(
        format!(
            "the project of the chat is gone: {} does not exist",
            visible_line(&path.display().to_string())
        ),
        "put it back where it was, or name it: `llm-do chat PATH --resume ID`",
    ))
}

/// Decides what becomes of the last turn, if it was cut off: what the flag says, else what the user answers at the terminal.
/// Without a terminal, it goes on.
fn cut_off_turn(
    reader: &Reader,
    session: &SessionSummary,
    turns: &[RecordedTurn],
    arguments: &SessionArguments,
) -> Result<CutOffTurn, CommandError> {
    let cut_off = turns.iter().rev().find(|turn| turn.status.is_none() && turn.run.is_some());
    let Some((turn, run)) = cut_off.and_then(|turn| Some((turn, turn.run?))) else {
        return Ok(CutOffTurn::Drop);
    };
    let choice = match arguments.cut_off {
        Some(choice) => choice,
        None => ask(session, turn),
    };
    match (choice, reader.events(run, None)) {
        (CutOffChoice::Resume, Ok(events)) => {
            Ok(CutOffTurn::Resume(unknown::settlements(&events, &arguments.unknown)?))
        }
        // Nothing of its run was recorded.
        (CutOffChoice::Resume, Err(_)) => Ok(CutOffTurn::Resume(Vec::new())),
        (CutOffChoice::Drop, _) => Ok(CutOffTurn::Drop),
    }
}

fn ask(session: &SessionSummary, turn: &RecordedTurn) -> CutOffChoice {
    let text = shortened(&visible_line(&turn.text), MAX_SHOWN_CHARS);
    let question = format!(
        "the last message of chat {} was cut off before it was answered:\n  {text}\n[r] go on with it  [d] drop it \
         (what its calls did stays done)  [r]: ",
        short_id(session.id)
    );
    match terminal_question::ask(&question).as_deref() {
        Some("d" | "drop") => CutOffChoice::Drop,
        _ => CutOffChoice::Resume,
    }
}
