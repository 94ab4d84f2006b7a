//! What the macros refuse and in which words, and what compiles without a warning.

#[test]
fn what_cannot_be_a_tool_is_refused_with_words_that_help() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

#[test]
fn what_the_macros_write_gives_no_warnings() {
    trybuild::TestCases::new().pass("tests/compile_pass/*.rs");
}
