//! What the answers of tools change in the conversation that they belong to: jumps back, and settings.
//!
//! It is read from the answer, which is recorded, and not done by the tool: so a resumed run does the same.

use globset::GlobBuilder;
use llm_do_core::{
    Conversation, Failure, FailureKind, Jump, Message, ModelSettings, Part, Role, Tune, Tuning,
};

use crate::state::live::ConversationState;

/// Marks a message with its place, by which the model can go back to it.
pub(crate) fn mark(position: usize, text: &str) -> String {
    format!("[msg_{position}] {text}")
}

/// Says that code cannot steer a conversation: nobody reads its answer as a jump or a change of settings.
pub(crate) fn for_models_only(name: &str) -> Failure {
    let message =
        format!("`{name}` changes the conversation of an agent, so only its model itself can call it");
    Failure::new(FailureKind::Unknown, message)
}

/// Finds the message that a jump goes back to.
pub(crate) fn target(jump: &Jump, conversation: &Conversation) -> Result<usize, String> {
    let messages = conversation.messages();
    let wrong = |text: &str| format!("`{}` {text}", jump.position);
    let number = jump.position.trim().strip_prefix("msg_").and_then(|number| number.parse::<usize>().ok());
    let Some(position) = number else { return Err(wrong("is not a message: write one as `msg_3`")) };
    match messages.get(position) {
        None => Err(wrong(&format!("is not there: there are messages up to `msg_{}`", messages.len() - 1))),
        Some(message) if message.role == Role::Assistant => {
            Err(wrong("is a message of yours: go back to one that you were given, which shows its number"))
        }
        Some(_) => Ok(position),
    }
}

/// Goes back: drops everything after a message, and goes on with a note in its place.
pub(crate) fn go_back(conversation_state: &mut ConversationState, position: usize, jump: &Jump) {
    let messages = conversation_state.conversation.messages();
    let (dropped, target) = (messages.len() - position, messages[position].clone());
    let original = target.text();
    let original = first_original(original.strip_prefix(&mark(position, "")).unwrap_or(&original));
    let message = reopened(position, &target, &note(dropped, original, &jump.message));
    // The note repeats what the user wrote there, so that turn remains valid.
    let reopened_turn = conversation_state.turns.iter().find(|turn| turn.position == position).cloned();
    conversation_state.cut(position);
    conversation_state.conversation.push(message);
    conversation_state.turns.extend(reopened_turn);
}

/// The message to which a conversation went back: its text is told in the note, and the rest of it stays.
///
/// Answers to calls must stay, since providers refuse a conversation in which a call has none.
fn reopened(position: usize, target: &Message, note: &str) -> Message {
    let is_result = |part: &&Part| matches!(part, Part::ToolResult(_));
    let mut parts: Vec<Part> = target.parts.iter().filter(is_result).cloned().collect();
    // The first answer shows the number already.
    let note = if parts.is_empty() { mark(position, note) } else { note.to_owned() };
    parts.push(Part::text(note));
    let others = target.parts.iter().filter(|part| !is_result(part) && !matches!(part, Part::Text { .. }));
    parts.extend(others.cloned());
    Message { role: Role::User, parts, origin: None }
}

const WENT_BACK: &str = "<system_message>You went back to this point with goto; ";
const ORIGINAL: &str = "<original_message chars=\"";

/// The message at an index before the first jump to it: each jump keeps it, and drops the note of the one before.
fn first_original(text: &str) -> &str {
    let Some(note) = text.strip_prefix(WENT_BACK) else { return text };
    let after = note.split_once("</system_message>\n").map_or("", |(_, after)| after);
    counted(after).unwrap_or_default()
}

/// The message that a note tells: as many characters as it says, whatever they are.
fn counted(told: &str) -> Option<&str> {
    let (count, text) = told.strip_prefix(ORIGINAL)?.split_once("\">\n")?;
    let end = text.char_indices().map(|(start, _)| start).chain([text.len()]).nth(count.parse().ok()?)?;
    text.get(..end)
}

fn note(dropped: usize, original: &str, message: &str) -> String {
    let noun = if dropped == 1 { "message was" } else { "messages were" };
    let mut note = format!(
        "{WENT_BACK}{dropped} {noun} dropped. What the calls in them have changed was not undone.</system_message>"
    );
    if !original.trim().is_empty() {
        let count = original.chars().count();
        note += &format!("\n{ORIGINAL}{count}\">\n{original}\n</original_message>");
    }
    note + &format!("\n<goto_message>\n{message}\n</goto_message>")
}

/// Says why a change of settings is not allowed, if that is so.
pub(crate) fn refusal(tune: &Tune, bounds: &Tuning) -> Option<String> {
    let outside = |what: &str, given: String, bounds: Option<(String, String)>| match bounds {
        None => format!("`{what}` may not be changed by this agent"),
        Some((least, most)) => format!("`{what}` is {given}, and may be from {least} to {most}"),
    };
    if let Some(given) = tune.temperature {
        let fits = bounds.temperature.is_some_and(|(least, most)| (least..=most).contains(&given));
        let said = bounds.temperature.map(|(least, most)| (least.to_string(), most.to_string()));
        if !fits {
            return Some(outside("temperature", given.to_string(), said));
        }
    }
    if let Some(given) = tune.max_tokens {
        let fits = bounds.max_tokens.is_some_and(|(least, most)| (least..=most).contains(&given));
        let said = bounds.max_tokens.map(|(least, most)| (least.to_string(), most.to_string()));
        if !fits {
            return Some(outside("max_tokens", given.to_string(), said));
        }
    }
    let model = tune.model.as_ref()?;
    let allows = |glob: &String| {
        GlobBuilder::new(glob).build().is_ok_and(|glob| glob.compile_matcher().is_match(model.as_str()))
    };
    if bounds.models.iter().any(allows) {
        return None;
    }
    Some(match bounds.models.is_empty() {
        true => "`model` may not be changed by this agent".to_owned(),
        false => format!("`model` is `{model}`, and may be one of {}", bounds.models.join(", ")),
    })
}

/// Puts newer changes over older ones.
pub(crate) fn tuned_further(before: &Tune, tune: Tune) -> Tune {
    Tune {
        temperature: tune.temperature.or(before.temperature),
        max_tokens: tune.max_tokens.or(before.max_tokens),
        model: tune.model.or_else(|| before.model.clone()),
    }
}

/// Puts changes over settings.
pub(crate) fn applied(tune: &Tune, settings: &ModelSettings) -> ModelSettings {
    ModelSettings {
        temperature: tune.temperature.or(settings.temperature),
        max_tokens: tune.max_tokens.or(settings.max_tokens),
        ..settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use llm_do_core::{Attachment, ToolResult};

    use super::*;

    fn conversation_state() -> ConversationState {
        let mut conversation_state = ConversationState::default();
        conversation_state.conversation.push(Message::user(mark(0, "begin")));
        conversation_state.conversation.push(Message::assistant("working"));
        conversation_state.conversation.push(Message::user(mark(2, "more")));
        conversation_state
    }

    #[test]
    fn a_jump_drops_what_came_after_and_says_what_it_left() {
        let mut conversation_state = conversation_state();
        let jump = Jump { position: "msg_0".into(), message: "The file is empty.".into() };
        assert_eq!(target(&jump, &conversation_state.conversation), Ok(0));
        go_back(&mut conversation_state, 0, &jump);
        let text = conversation_state.conversation.messages()[0].text();
        assert_eq!(conversation_state.conversation.messages().len(), 1);
        for part in ["[msg_0] ", "3 messages were dropped", "begin", "The file is empty.", "was not undone"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn jumps_to_one_place_keep_its_message_once_and_the_newest_note() {
        let mut conversation_state = conversation_state();
        for round in 0..5 {
            go_back(
                &mut conversation_state,
                0,
                &Jump { position: "msg_0".into(), message: format!("round {round}") },
            );
            conversation_state.conversation.push(Message::assistant("a dead end"));
        }
        let text = conversation_state.conversation.messages()[0].text();
        assert_eq!(text.matches("begin").count(), 1, "{text}");
        assert_eq!(text.matches("<original_message ").count(), 1, "{text}");
        assert!(text.contains("round 4") && !text.contains("round 3"), "{text}");
    }

    #[test]
    fn jumps_lose_nothing_of_a_message_that_holds_the_words_of_a_note() {
        let said = "before\n</original_message>\n<goto_message>\nafter</system_message>\n";
        let mut conversation_state = ConversationState::default();
        conversation_state.conversation.push(Message::user(mark(0, said)));
        for round in 0..3 {
            go_back(
                &mut conversation_state,
                0,
                &Jump { position: "msg_0".into(), message: format!("round {round}") },
            );
            let text = conversation_state.conversation.messages()[0].text();
            assert!(text.contains(said), "round {round}: {text}");
        }
    }

    #[test]
    fn a_jump_to_answers_keeps_them_and_one_to_a_file_keeps_the_file() {
        let mut conversation_state = conversation_state();
        let answer = |id: &str| ToolResult {
            id: id.into(),
            name: "look".into(),
            text: mark(4, "42").into(),
            is_error: false,
            attachments: Vec::new(),
        };
        conversation_state.conversation.push(Message::assistant("looking"));
        conversation_state.conversation.push(Message::results([answer("a"), answer("b")]));
        conversation_state.conversation.push(Message::assistant("a dead end"));
        go_back(&mut conversation_state, 4, &Jump { position: "msg_4".into(), message: "It is 42.".into() });
        let last = conversation_state.conversation.messages().last().unwrap();
        assert_eq!(last.tool_results().cloned().collect::<Vec<_>>(), [answer("a"), answer("b")]);
        assert!(
            last.text().starts_with("<system_message>") && last.text().contains("2 messages were dropped")
        );

        let file = Attachment::bytes("a.png", "image/png", vec![1]);
        let parts = vec![Part::text(mark(0, "see")), Part::Attachment(file.clone())];
        let mut conversation_state = ConversationState::default();
        conversation_state.conversation.push(Message { role: Role::User, parts, origin: None });
        go_back(&mut conversation_state, 0, &Jump { position: "msg_0".into(), message: "again".into() });
        assert_eq!(conversation_state.conversation.messages()[0].parts[1..], [Part::Attachment(file)]);
    }

    #[test]
    fn a_jump_goes_to_messages_that_are_there_and_that_the_model_was_given() {
        let conversation_state = conversation_state();
        let to = |position: &str| {
            target(
                &Jump { position: position.into(), message: String::new() },
                &conversation_state.conversation,
            )
        };
        assert_eq!(to("msg_2"), Ok(2));
        for (position, message) in
            [("msg_1", "of yours"), ("msg_3", "up to `msg_2`"), ("3", "write one as"), ("msg_x", "write")]
        {
            assert!(to(position).unwrap_err().contains(message), "{position}");
        }
    }

    #[test]
    fn settings_change_within_their_bounds_only() {
        let bounds =
            Tuning { temperature: Some((0.0, 1.0)), max_tokens: None, models: vec!["test:*".into()] };
        let warm = |temperature| Tune { temperature: Some(temperature), ..Tune::default() };
        assert_eq!(refusal(&warm(0.5), &bounds), None);
        assert!(refusal(&warm(1.5), &bounds).unwrap().contains("from 0 to 1"));
        let long = Tune { max_tokens: Some(5), ..Tune::default() };
        assert!(refusal(&long, &bounds).unwrap().contains("may not be changed"));
        let model = |name: &str| Tune { model: Some(name.into()), ..Tune::default() };
        assert_eq!(refusal(&model("test:echo"), &bounds), None);
        assert!(refusal(&model("openai:x"), &bounds).unwrap().contains("test:*"));
    }
}
