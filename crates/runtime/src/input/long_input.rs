//! Long inputs of the agent that a run is started for: sent whole if they fit into the context window of its model.
//!
//! What a person types or pipes in is meant to be read. Only what does not fit is put behind a descriptor and read page by
//! page, and then a notice says so. Inputs that agents give to each other keep to the usual limit.

use llm_do_core::{DescriptorSettings, InputPart};

use crate::model::ask::{InputRoom, input_room};
use crate::state::live::{AgentFrame, LiveCall};
use crate::state::run_state::RunState;

/// A long input, and the room for it.
pub(crate) struct LongInput<'a> {
    settings: &'a DescriptorSettings,
    text: &'a str,
    room: Option<InputRoom>,
}

impl<'a> LongInput<'a> {
    /// Finds a text that is longer than usual; nothing for an agent that another one called, or that reads no descriptors.
    pub(crate) async fn find(
        run: &RunState,
        call: &LiveCall,
        frame: &'a AgentFrame,
        given: &'a [InputPart],
    ) -> Option<Self> {
        let own = frame.agent_state.descriptors.get().filter(|_| call.is_top() && !frame.cuts_results())?;
        let settings = own.settings();
        let text = given.iter().find_map(|part| match part {
            InputPart::Text(text) if settings.pages_input(text, None) => Some(text.as_str()),
            _ => None,
        })?;
        Some(Self { settings, text, room: input_room(run, call, frame).await })
    }

    /// Returns how many bytes of input fit into the context window, if that is known.
    pub(crate) fn room(&self) -> Option<u64> {
        self.room.as_ref().map(|room| room.bytes)
    }

    /// Says that the input is read page by page, if it is.
    pub(crate) fn notice(&self) -> Option<String> {
        if !self.settings.pages_input(self.text, self.room()) {
            return None;
        }
        let (why, key) = match (self.settings.input_limit, &self.room) {
            (Some(limit), _) => {
                (format!("more than the {limit} of `input_limit`"), "`file_descriptors: {input_limit: N}`")
            }
            (None, Some(InputRoom { model, window, .. })) => (
                format!("more than fit into the {window} tokens of `{model}` beside an answer"),
                "`file_descriptors: {page_user_input: false}`",
            ),
            (None, None) => (
                format!("more than {} for a model of unknown size", DescriptorSettings::INPUT_LIMIT),
                "`file_descriptors: {page_user_input: false}`, or `context_window` in the profile of the model,",
            ),
        };
        let (count, page) = (self.text.chars().count(), self.settings.page_size);
        Some(format!(
            "the input has {count} characters, {why}: the model is shown the first {page} and can read on page by page; \
             {key} changes that"
        ))
    }
}
