//! Bounds on patterns that models write.

/// How long a regular expression or a glob may be, in bytes.
///
/// The limits on compiled expressions do not count what is built before: a class such as `\pL` has three bytes and some
/// hundred ranges.
const MAX_PATTERN_BYTES: usize = 4096;

/// Refuses a pattern that is too long to be compiled.
pub(crate) fn check_length(pattern: &str) -> Result<(), String> {
    if pattern.len() <= MAX_PATTERN_BYTES {
        return Ok(());
    }
    Err(format!(
        "the pattern has {} bytes, more than {MAX_PATTERN_BYTES}: search for less at once",
        pattern.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_a_greatest_length() {
        assert_eq!(check_length(&"x".repeat(4096)), Ok(()));
        let error = check_length(&"x".repeat(4097)).unwrap_err();
        assert_eq!(error, "the pattern has 4097 bytes, more than 4096: search for less at once");
    }
}
