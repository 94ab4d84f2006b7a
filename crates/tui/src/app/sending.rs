//! What the person sends: messages, and commands after a slash.

use std::time::Instant;

use llm_do_core::{Input, parse_strict};
use serde_json::{Value, json};

use super::{App, AppAction, Draft, OpenForm, Outgoing};
use crate::completion::attachments;
use crate::form::Form;
use crate::protocol::UiCommand;
use crate::slash_commands::{self, ParsedLine};
use crate::transcript::describe_usage;

impl App {
    pub(super) fn take_line(&mut self, now: Instant) -> AppAction {
        let text = self.editor.take();
        // The message is sent even if the history cannot be written.
        let _ = self.editor.remember(&text);
        self.completion.close();
        let line = text.trim();
        match slash_commands::parse(line) {
            ParsedLine::Command(command, rest) => return self.run_slash_command(command, rest, now),
            ParsedLine::Unknown(word) => {
                self.editor.set_text(&text);
                self.show_hint(&unknown_command(word), now);
            }
            ParsedLine::Message if self.is_lone_answer(line) => {
                self.show_hint("a question waits: press the key alone, without Enter", now);
            }
            ParsedLine::Message => self.take_message(line, &text, now),
        }
        AppAction::Continue
    }

    /// Whether somebody meant to answer the question that waits.
    fn is_lone_answer(&self, line: &str) -> bool {
        !self.questions.is_empty() && ["y", "yes", "n", "no", "a", "q"].contains(&line)
    }

    /// Sends a message, or says what is wrong with it for an agent whose input is typed.
    fn take_message(&mut self, line: &str, text: &str, now: Instant) {
        let command = self.message(line);
        match self.refusal_of(&command) {
            Some(problem) => {
                self.editor.set_text(text);
                self.show_hint(&problem, now);
            }
            None => self.send(command, Draft::Text(text.to_owned())),
        }
    }

    /// What the schema of a typed input has against a message. One with files is known when they have been read.
    fn refusal_of(&self, command: &UiCommand) -> Option<String> {
        let schema = self.options.input_schema.as_ref()?;
        if let UiCommand::SubmitInput(value) = command
            && Input::from(value.clone()).names_files()
        {
            return Some("JSON in a line cannot attach files: use the form".to_owned());
        }
        match command {
            UiCommand::SubmitInput(value) => Some(schema.accept(value.clone()).err()?.first()?.to_string()),
            UiCommand::Send { text, attachments } if attachments.is_empty() => {
                let value = Input::from(text.as_str()).into_payload().value().clone();
                let problems = schema.accept(value).err()?;
                // The person wrote no field, so the first problem would be about one that nobody wrote.
                let fields = schema.describe_fields().map(|fields| format!("it takes {fields}"));
                let expected = fields.or_else(|| problems.first().map(ToString::to_string))?;
                Some(format!("write the input as JSON: {expected}"))
            }
            _ => None,
        }
    }

    /// A typed input can be written as JSON; for an agent that takes a text, JSON is text.
    fn message(&self, line: &str) -> UiCommand {
        let object = || parse_strict(line).ok().filter(Value::is_object);
        if let Some(object) = self.options.input_schema.as_ref().and_then(|_| object()) {
            return UiCommand::SubmitInput(object);
        }
        let attachments = attachments(line, &self.options.directory);
        UiCommand::Send { text: line.to_owned(), attachments }
    }

    /// Sends a message, or keeps it until the turn is over.
    pub(super) fn send(&mut self, command: UiCommand, draft: Draft) {
        if self.busy {
            self.queued.push_back(Outgoing { command, draft });
            return;
        }
        if let Some(text) = command.to_text() {
            self.transcript.message(&text);
        }
        if let UiCommand::Send { attachments, .. } = &command {
            self.transcript.attached(attachments);
        }
        self.busy = true;
        self.has_sent = true;
        self.sent = Some(draft);
        self.send_command(command);
    }

    fn run_slash_command(&mut self, command: &str, rest: &str, now: Instant) -> AppAction {
        let number = rest.parse().ok();
        match command {
            "/help" => self.transcript.glossary(slash_commands::help()),
            "/model" if rest.is_empty() => self.show_model(),
            "/model" => self.start_command(UiCommand::UseModel(rest.to_owned())),
            "/approvals" => self.send_command(UiCommand::ListGrants),
            "/revoke" => self.send_command(UiCommand::Revoke(rest.to_owned())),
            "/usage" => self.transcript.remark(&self.usage()),
            "/tree" => self.show_tree(true),
            "/call" => self.call(rest, now),
            "/fork" | "/goto" if number.is_none() && !rest.is_empty() => {
                self.show_hint(&format!("write `{command} N`, with a number"), now);
            }
            "/fork" | "/goto" | "/clear" if self.busy => {
                self.show_hint("not while a turn runs; Esc stops it", now)
            }
            "/fork" => self.start_command(UiCommand::Fork(number)),
            "/goto" => self.start_command(UiCommand::GoBack(number)),
            "/clear" => {
                self.start_command(UiCommand::Clear);
                return AppAction::Clear;
            }
            "/title" if rest.is_empty() => self.show_hint("write `/title TEXT`", now),
            "/title" => self.start_command(UiCommand::Title(rest.to_owned())),
            "/save" if rest.is_empty() => self.show_hint("write `/save FILE`", now),
            "/save" => self.start_command(UiCommand::Save(rest.into())),
            _ => self.send_command(UiCommand::Quit),
        }
        AppAction::Continue
    }

    /// Shows which model answers, and offers others.
    fn show_model(&mut self) {
        self.transcript.remark(&match &self.options.model {
            Some(model) => format!("the model is `{model}`"),
            None => "no model answers here: this is a function".to_owned(),
        });
        if !self.options.models.is_empty() {
            self.editor.set_text("/model ");
            self.completion.update(&self.editor);
        }
    }

    /// Sends a command whose end the program reports: messages wait until then.
    fn start_command(&mut self, command: UiCommand) {
        self.busy = true;
        self.send_command(command);
    }

    fn usage(&self) -> String {
        let by_model =
            self.call_tree.usage().iter().map(|(model, usage)| format!("{model}: {}", describe_usage(usage)));
        let mut lines: Vec<String> = by_model.collect();
        lines.push(format!("in all: {}", describe_usage(&self.call_tree.total())));
        lines.join("\n")
    }

    /// Calls something beside the conversation; without an input, a form asks for it.
    fn call(&mut self, rest: &str, now: Instant) {
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            return self.show_hint("write `/call NAME` or `/call NAME {\"key\": \"value\"}`", now);
        }
        if text.is_empty() {
            return self.call_by_form(name);
        }
        match parse_strict(text) {
            Ok(input) if Input::from(input.clone()).names_files() => {
                self.editor.set_text(&format!("/call {rest}"));
                self.show_hint(
                    &format!("JSON in a line cannot attach files: `/call {name}` shows a form"),
                    now,
                );
            }
            Ok(input) => {
                let command = UiCommand::Call { name: name.to_owned(), input };
                self.send(command, Draft::Text(format!("/call {rest}")));
            }
            Err(error) => {
                self.editor.set_text(&format!("/call {rest}"));
                self.show_hint(&format!("not valid JSON: {error}"), now);
            }
        }
    }

    fn call_by_form(&mut self, name: &str) {
        let schema = self.options.callables.iter().find(|(known, _)| known == name).map(|(_, schema)| schema);
        match schema.and_then(|schema| Form::new(name, schema)) {
            Some(form) => self.form = Some(OpenForm { form, call: Some(name.to_owned()) }),
            None => {
                let command = UiCommand::Call { name: name.to_owned(), input: json!({}) };
                self.send(command, Draft::Text(format!("/call {name}")));
            }
        }
    }
}

fn unknown_command(word: &str) -> String {
    match slash_commands::misspelled(word) {
        Some(near) => format!("did you mean `{near}`? there is no `{word}`"),
        None => format!("there is no command `{word}`; /help lists them"),
    }
}
