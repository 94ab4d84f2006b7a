//! The commands that can be typed in a chat of lines.

use llm_do::value::{Input, Schema};
use llm_do_core::{misspelled, parse_strict};

use super::UserRequest;
use crate::input;
use crate::text::visible;
use crate::typed_input::TextSource;

const HELP: &str = "\
/help            shows this text
/model           shows the model that answers; `/model NAME` chooses another
/usage           shows what this conversation has used so far
/approvals       lists what you allowed for this session
/revoke N        withdraws grant N
/call NAME JSON  calls an agent or tool beside the conversation
/goto N          goes back to before your message N; `/goto` lists your messages
/fork            continues in a copy of the conversation; `/fork N` returns to conversation N
/clear           begins a new conversation
/title TEXT      names this chat in `llm-do chats`
/save FILE       writes the conversation as Markdown, or as JSON (.json)
/quit            leaves (also exit, quit or Ctrl-D)
A line that ends in \\ continues on the next one. Ctrl-C stops a turn.";

/// What a line of the user means.
pub(super) enum LineInput {
    Request(UserRequest),
    /// Only something to show.
    Reply(String),
    Empty,
}

/// Reads a line: a command, or a message for an entry with this input schema.
pub(super) fn parse(line: &str, schema: Option<&Schema>) -> LineInput {
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let request = match command {
        "" => return LineInput::Empty,
        "/quit" => UserRequest::Quit,
        "exit" | "quit" if rest.is_empty() => UserRequest::Quit,
        "/help" => return LineInput::Reply(HELP.to_owned()),
        "/usage" => UserRequest::ShowUsage,
        "/approvals" | "/grants" => UserRequest::ListGrants,
        "/revoke" => UserRequest::Revoke(rest.to_owned()),
        "/call" => return call(rest),
        "/model" if rest.is_empty() => UserRequest::ShowModel,
        "/model" => UserRequest::UseModel(rest.to_owned()),
        "/fork" | "/goto" => return numbered(command, rest),
        "/clear" => UserRequest::Clear,
        "/title" if rest.is_empty() => return LineInput::Reply("write `/title TEXT`".to_owned()),
        "/title" => UserRequest::Title(rest.to_owned()),
        "/save" if rest.is_empty() => return LineInput::Reply("write `/save FILE`".to_owned()),
        "/save" => UserRequest::Save(rest.into()),
        _ if command.starts_with('/') && command.len() > 1 && !command[1..].contains('/') => {
            return LineInput::Reply(unknown_command(command));
        }
        _ => match input::from_text(line, schema, TextSource::ChatLine) {
            Ok(input) => UserRequest::Send(input),
            Err(error) => UserRequest::Invalid(error.to_string()),
        },
    };
    LineInput::Request(request)
}

fn call(rest: &str) -> LineInput {
    let (name, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
    let Ok(value) = parse_strict(json) else {
        return LineInput::Reply("write `/call NAME {\"key\": \"value\"}`".to_owned());
    };
    let input = Input::from(value);
    LineInput::Request(match input.names_files() {
        true => {
            let hint = "use `llm-do call PATH NAME --attach FILE`";
            UserRequest::Invalid(input::attaching("the line", hint).to_string())
        }
        false => UserRequest::Call { name: name.to_owned(), input },
    })
}

/// Reads a command that takes a number or nothing.
fn numbered(command: &str, rest: &str) -> LineInput {
    let number = rest.parse().ok();
    if number.is_none() && !rest.is_empty() {
        return LineInput::Reply(format!("write `{command} N`, with a number"));
    }
    LineInput::Request(if command == "/fork" {
        UserRequest::Fork(number)
    } else {
        UserRequest::GoBack(number)
    })
}

fn unknown_command(command: &str) -> String {
    let names = HELP.lines().filter_map(|line| line.strip_prefix('/')?.split_whitespace().next());
    match misspelled(command.trim_start_matches('/'), names) {
        Some(near) => format!("`{}` is not a command; did you mean `/{near}`?", visible(command)),
        None => format!("`{}` is not a command; /help lists them", visible(command)),
    }
}
