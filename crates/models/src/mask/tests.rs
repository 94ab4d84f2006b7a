//! What masks remove from answers and errors, however it arrives.

mod deltas;

use llm_do_core::ModelErrorKind;

use super::*;

#[test]
fn errors_are_masked() {
    let mask = Mask::new(["sk-canary-0123456789".to_owned()]);
    let error = ModelError::new(ModelErrorKind::Auth, "invalid key sk-canary-0123456789");
    assert_eq!(mask.error(error).message, "invalid key [removed]");
}
