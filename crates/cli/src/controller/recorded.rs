//! A chat of the record that goes on in this process.

use llm_do::record::{ProjectChanges, ResumeError, StoreError};
use llm_do::value::Input;
use llm_do_core::counted;
use llm_do_record::{RecordedTurn, short_id};

use super::{ChatSession, Controller, while_attended};
use crate::command_error::CommandError;
use crate::recorded_chat::{ChatWay, CutOffTurn, RecordedChat};
use crate::text::{visible, visible_line};

/// How many of the last turns are shown again.
const SHOWN_TURNS: usize = 5;

impl RecordedChat {
    /// Returns whether a turn that was cut off goes on before the user says anything.
    pub(super) fn resumes_turn(&self) -> bool {
        let is_cut_off = self.turns.last().is_some_and(|turn| turn.status.is_none());
        is_cut_off && matches!(self.way, ChatWay::Continue(CutOffTurn::Resume(_)))
    }
}

impl Controller {
    /// Puts a recorded chat in the place of the new one, and shows what was said last.
    pub(super) async fn continue_chat(&mut self, recorded: RecordedChat) -> Result<(), CommandError> {
        let runtime = self.host.runtime.clone();
        let restored = match &recorded.way {
            ChatWay::Continue(_) => runtime.restore_session(recorded.id).await,
            ChatWay::Copy { last } => runtime.fork_recorded_session(recorded.id, *last).await,
        };
        let session = restored.map_err(|error| self.cannot_continue(&recorded, error))?;
        let turns = session.turns().await;
        let is_there = |turn: &&RecordedTurn| turns.iter().any(|there| there.ordinal == turn.ordinal);
        self.show_earlier(&recorded, recorded.turns.iter().filter(is_there).collect());
        if let Some(text) = describe_changes(session.changes()) {
            self.front_end.remark(&text);
        }
        let model = session.chosen_model().map(|model| model.to_string());
        if let Some(chat) = self.sessions.get_mut(self.current) {
            *chat = ChatSession { session, model };
        }
        self.front_end.show_model(self.model());
        match recorded.way {
            ChatWay::Continue(way) => self.settle_cut_off(way).await,
            ChatWay::Copy { .. } => Ok(()),
        }
    }

    /// Goes on with a turn that was cut off, or drops it.
    async fn settle_cut_off(&mut self, way: CutOffTurn) -> Result<(), CommandError> {
        let mut resume = self.host.resume_options();
        let Some(ChatSession { session, .. }) = self.sessions.get_mut(self.current) else { return Ok(()) };
        let Some(turn) = session.cut_off_turn() else { return Ok(()) };
        match way {
            CutOffTurn::Resume(settlements) if session.cut_off_run().is_some() => {
                resume.settlements = settlements;
            }
            CutOffTurn::Resume(_) | CutOffTurn::Drop => {
                session.drop_turn().await;
                self.front_end.remark("the last message was not answered; it is dropped");
                self.front_end.offer_draft(&turn.text);
                return Ok(());
            }
        }
        self.front_end.show_message(&Input::from(turn.text), true);
        self.front_end.show_busy();
        let host = &self.host;
        let resumed = session.resume_turn(resume, |run| host.interrupts.watch(run));
        let (result, is_leaving) = while_attended(resumed, host, &mut self.front_end).await;
        let result = result.map_err(|error| {
            self.has_ended = true;
            CommandError::failed(error.to_string())
        })?;
        self.finish(&result, is_leaving).await;
        self.front_end.show_ready();
        Ok(())
    }

    fn cannot_continue(&mut self, recorded: &RecordedChat, error: ResumeError) -> CommandError {
        self.has_ended = true;
        let id = short_id(recorded.id);
        match error {
            ResumeError::Store(StoreError::Held { holder, .. }) => CommandError::failed_with_hint(
                format!("chat {id} is open in {holder}"),
                format!("`llm-do chat --fork {id}` goes on in a copy"),
            ),
            ResumeError::Store(error) => {
                CommandError::failed(format!("chat {id} cannot be continued: {error}"))
            }
            ResumeError::NoTurn { .. } => {
                CommandError::with_hint(error.to_string(), format!("`llm-do chats {id}` shows its turns"))
            }
            other => CommandError::usage(other.to_string()),
        }
    }

    fn show_earlier(&self, recorded: &RecordedChat, turns: Vec<&RecordedTurn>) {
        let (id, title) = (short_id(recorded.id), visible_line(&recorded.title));
        let way = match recorded.way {
            ChatWay::Continue(_) => "chat",
            ChatWay::Copy { .. } => "a copy of chat",
        };
        self.front_end.remark(&format!("{way} {id}: {title} ({})", counted(turns.len(), "turn")));
        let hidden = turns.len().saturating_sub(SHOWN_TURNS);
        if hidden > 0 {
            let earlier = counted(hidden, "earlier turn");
            self.front_end.remark(&format!("{earlier}: `llm-do chats {id}` shows all"));
        }
        for turn in turns.iter().skip(hidden) {
            self.front_end.show_message(&Input::from(turn.text.as_str()), true);
            match turn.answer.as_deref().filter(|answer| !answer.is_empty()) {
                Some(answer) => self.front_end.remark(&visible(answer)),
                None => self.front_end.remark("[no answer]"),
            }
        }
    }
}

/// Says that the project is not the one of the last turn.
fn describe_changes(changes: &ProjectChanges) -> Option<String> {
    if !changes.concern_project() {
        return None;
    }
    Some(match changes.to_string() {
        names if names.is_empty() => "the project has changed since the last turn".to_owned(),
        names => format!("the project has changed since the last turn: {names}"),
    })
}
