//! Tests that measure or change their whole process run in a process of their own.
//!
//! All integration tests of a crate are one program, whose tests run beside each other. A test that reads the memory of
//! its process, or ends all children of it, begins with [`own_process!`](crate::own_process!).

use std::process::Command;

/// Set in the process that runs one test alone, to the name of the test.
const VARIABLE: &str = "LLM_DO_OWN_PROCESS";

/// Runs the rest of the calling test in a process of its own.
///
/// The calling test starts itself again, waits, prints what the process printed, fails if it failed, and returns. The
/// test function must return `()`.
#[macro_export]
macro_rules! own_process {
    () => {{
        fn here() {}
        if $crate::run_in_own_process(std::any::type_name_of_val(&here)) {
            return;
        }
    }};
}

/// Returns whether the test that contains the function `path` was run, and passed, in another process.
///
/// # Panics
///
/// If the test fails there.
#[doc(hidden)]
#[must_use]
pub fn run_in_own_process(path: &str) -> bool {
    let name = test_name(path);
    if std::env::var(VARIABLE).is_ok_and(|running| running == name) {
        return false;
    }
    let program = std::env::current_exe().expect("the path of the test program");
    let output = Command::new(program)
        .args(["--exact", &name, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, &name)
        .output()
        .expect("the test program starts");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "`{name}` failed in its process:\n{text}");
    print(&text);
    true
}

#[expect(clippy::print_stdout, reason = "libtest shows or hides the output of a test through this macro")]
fn print(text: &str) {
    println!("{text}");
}

/// The name under which the test program knows the test: the path without the crate, the closures of async tests and the
/// function `here`.
fn test_name(path: &str) -> String {
    let parts: Vec<&str> = path.split("::").skip(1).filter(|part| *part != "{{closure}}").collect();
    parts[..parts.len() - 1].join("::")
}

#[cfg(test)]
mod tests {
    use super::test_name;

    #[test]
    fn names_are_those_of_the_test_program() {
        assert_eq!(test_name("it::shell::floods::cut::here"), "shell::floods::cut");
        assert_eq!(test_name("it::calls::grow::{{closure}}::here"), "calls::grow");
    }

    #[test]
    fn a_test_runs_in_another_process() {
        crate::own_process!();
        assert_eq!(
            std::env::var(super::VARIABLE).as_deref(),
            Ok("own_process::tests::a_test_runs_in_another_process")
        );
    }
}
