//! What an agent is given: its prompt, attached files, and texts that are too long for one message.

pub(crate) mod attachments;
pub(crate) mod long_input;
pub(crate) mod media_type;
pub(crate) mod prompt;
pub(crate) mod received;
