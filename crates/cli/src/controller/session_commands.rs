//! The commands of a chat that change its conversation: another model, a fork, going back, a new one, saving.

use std::io::ErrorKind;
use std::path::Path;

use llm_do::model::ModelChoice;

use super::{ChatSession, Controller, markdown};
use crate::model_name;
use crate::text::{notice_line, shortened, visible};

/// How much of a message is shown in a list.
const MAX_SHOWN: usize = 70;

impl Controller {
    /// Lets another model answer from the next message on.
    pub(super) async fn use_model(&mut self, model: &str) {
        match model_name::complete(model, Some(&self.host.project)) {
            Ok(name) => {
                self.choose_model(&name).await;
                self.front_end.remark(&format!("`{}` answers from now on", visible(&name)));
            }
            Err(error) => self.refuse(&error.to_string()),
        }
    }

    async fn choose_model(&mut self, name: &str) {
        let Some(chat) = self.sessions.get_mut(self.current) else { return };
        chat.session.use_model(Some(ModelChoice::from(name))).await;
        chat.model = Some(name.to_owned());
        self.front_end.show_model(self.model());
    }

    /// Continues in a copy of the conversation, or in another one.
    pub(super) async fn fork(&mut self, number: Option<u32>) {
        let count = self.sessions.len();
        match number.map(|number| number as usize) {
            Some(number) if (1..=count).contains(&number) => self.current = number - 1,
            Some(number) => {
                let message = format!("conversation {number} does not exist; {}", describe_count(count));
                return self.front_end.remark(&message);
            }
            None => {
                let Some(chat) = self.sessions.get_mut(self.current) else { return };
                let copy = ChatSession { session: chat.session.fork().await, model: chat.model.clone() };
                self.sessions.push(copy);
                self.current = count;
            }
        }
        self.front_end.show_model(self.model());
        self.front_end.remark(&format!(
            "this is conversation {} of {}; `/fork N` goes to another one",
            self.current + 1,
            self.sessions.len()
        ));
    }

    /// Goes back to before a message, or lists the messages.
    pub(super) async fn go_back(&mut self, number: Option<u32>) {
        let Some(ChatSession { session, .. }) = self.sessions.get_mut(self.current) else { return };
        let Some(number) = number else {
            let turns = session.turns().await;
            let lines =
                turns.iter().map(|turn| format!("{}  {}", turn.ordinal, shortened(&turn.text, MAX_SHOWN)));
            let lines: Vec<String> = lines.collect();
            let empty = "the conversation has no messages yet".to_owned();
            return self.front_end.remark(&if lines.is_empty() { empty } else { lines.join("\n") });
        };
        match session.go_back(number).await {
            Ok(text) => {
                let message = format!("back to before message {number}; the effects of calls are not undone");
                self.front_end.remark(&message);
                self.front_end.offer_draft(&text);
            }
            Err(failure) => self.front_end.remark(&failure.message),
        }
    }

    /// Begins a new conversation with the same model.
    pub(super) async fn clear(&mut self) {
        let session = self.new_session();
        if let Some(chat) = self.sessions.get_mut(self.current) {
            let notices = std::mem::replace(&mut chat.session, session).close().await;
            let model = chat.model.clone();
            notices.iter().for_each(|text| self.front_end.remark(&notice_line(text)));
            if let Some(model) = model {
                self.choose_model(&model).await;
            }
        }
        self.front_end.remark("a new conversation begins");
    }

    /// Names the chat in the record.
    pub(super) async fn name_chat(&mut self, title: &str) {
        let Some(ChatSession { session, .. }) = self.sessions.get_mut(self.current) else { return };
        if session.id().is_none() {
            let reason = "the chat is recorded from its first message on, unless nothing is recorded";
            return self.front_end.remark(reason);
        }
        session.set_title(title).await;
        self.front_end.remark(&format!("this chat is named `{}`", visible(title)));
    }

    /// Writes the conversation to a new file.
    pub(super) async fn save(&mut self, path: &Path) {
        let Some(ChatSession { session, .. }) = self.sessions.get(self.current) else { return };
        let messages = session.messages().await;
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => serde_json::to_string_pretty(&messages).unwrap_or_default(),
            _ => markdown::from_messages(&messages),
        };
        let shown = visible(&path.display().to_string());
        self.front_end.remark(&match write_new(path, &text) {
            Ok(()) => format!("{} messages written to `{shown}`", messages.len()),
            Err(error) => format!("`{shown}` was not written: {}", describe_write_error(&error)),
        });
    }
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn describe_write_error(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => "a file of that name exists already; choose another name".to_owned(),
        ErrorKind::NotFound => "its directory does not exist".to_owned(),
        ErrorKind::PermissionDenied => "you have no permission to write there".to_owned(),
        _ => error.to_string(),
    }
}

fn describe_count(count: usize) -> String {
    match count {
        1 => "this is the only one".to_owned(),
        _ => format!("they are numbered 1 to {count}"),
    }
}
