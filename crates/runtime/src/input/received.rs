//! Texts that an agent is given behind file descriptors: those that its caller passes, and its own input where it is
//! too long for a conversation.
//!
//! A descriptor is passed as an attachment, by its name (`fd:3.1`, `ref:plan`). The text is shared, and the agent that
//! receives it has a name of its own for it: nothing else of its caller can be read.

use llm_do_core::{Attachment, AttachmentSource, Failure, FailureKind, InputPart};
use serde_json::Value;

use crate::descriptors::{Descriptors, FdSource, StoredContent, first_view};
use crate::state::live::{AgentFrame, LiveCall};

/// Returns the name of the descriptor that an attachment refers to.
pub(crate) fn descriptor_of(attachment: &Attachment) -> Option<&str> {
    let AttachmentSource::Path(path) = &attachment.source else { return None };
    path.to_str().filter(|name| name.starts_with("fd:") || name.starts_with("ref:"))
}

/// Refuses descriptors that the caller does not have.
pub(crate) fn check(call: &LiveCall, attachments: &[Attachment]) -> Result<(), Failure> {
    for name in attachments.iter().filter_map(descriptor_of) {
        callers_table(call)?.get(name)?;
    }
    Ok(())
}

fn callers_table(call: &LiveCall) -> Result<&Descriptors, Failure> {
    let none = || Failure::new(FailureKind::Arguments, "the caller has no file descriptors to pass");
    call.callers_frame().agent_state.descriptors.get().ok_or_else(none)
}

/// Puts the first page in the place of each text that lies behind a descriptor. Where the text of the input is that of
/// a value, its fields are looked at one by one. `room` is how many bytes of input the model can be given at once.
pub(crate) fn parts(
    call: &LiveCall,
    frame: &AgentFrame,
    given: Vec<InputPart>,
    typed: Option<&Value>,
    room: Option<u64>,
) -> Result<Vec<InputPart>, Failure> {
    let names: Vec<String> = given.iter().filter_map(passed).map(str::to_owned).collect();
    let passed_on = if names.is_empty() { Vec::new() } else { callers_table(call)?.pass(&names)? };
    let mut passed_on = passed_on.into_iter();
    let own =
        frame.agent_state.descriptors.get().filter(|own| own.settings().enabled && !frame.cuts_results());
    let shown = |part: InputPart| match (part, own) {
        (part, own) if passed(&part).is_some() => {
            let Some((id, content)) = passed_on.next() else { return Ok(part) };
            let Some(own) = own else {
                return Ok(InputPart::Text(beginning(&content, frame)?));
            };
            let info = own.add_content(id, content, FdSource::Passed)?;
            Ok(InputPart::Text(first_view(&own.get(info.id.as_str())?)?))
        }
        (InputPart::Text(text), Some(own)) => {
            let view = match typed {
                Some(value) => own.page_input_value(value, room)?,
                None => own.page_input(&text, room)?,
            };
            Ok(InputPart::Text(view.unwrap_or(text)))
        }
        (part, _) => Ok(part),
    };
    given.into_iter().map(shown).collect()
}

/// What an agent that cannot read descriptors is given of a text: all of it, or its beginning with a mark.
fn beginning(content: &StoredContent, frame: &AgentFrame) -> Result<String, Failure> {
    let limit = frame.plan.spec.as_ref().map_or(u64::MAX, |spec| spec.descriptors.limit);
    let text = content.text(0, content.character_start(limit)?.byte)?.into_owned();
    let all = content.characters();
    Ok(if all > limit { format!("{text}\n[cut: {limit} of {all} characters are shown]") } else { text })
}

fn passed(part: &InputPart) -> Option<&str> {
    match part {
        InputPart::Attachment(attachment) => descriptor_of(attachment),
        InputPart::Text(_) => None,
    }
}
