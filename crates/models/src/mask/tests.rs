//! What masks remove from answers and errors, however it arrives.

mod deltas;

use llm_do_core::{Message, ModelErrorKind, ModelResponse, StopReason, Usage};

use super::*;

#[test]
fn errors_are_masked() {
    let mask = Mask::new(["sk-canary-0123456789".to_owned()]);
    let error = ModelError::new(ModelErrorKind::Auth, "invalid key sk-canary-0123456789");
    assert_eq!(mask.error(error).message, "invalid key [removed]");
}

#[test]
fn a_stop_reason_that_only_the_provider_knows_is_masked() {
    let mask = Mask::new(["sk-canary-0123456789".to_owned()]);
    let stop = StopReason::Other("sk-canary-0123456789".to_owned());
    let response = mask.response(ModelResponse::new(Message::assistant("ok"), stop, Usage::default()));
    assert_eq!(response.stop, StopReason::Other("[removed]".to_owned()));
}
