//! What confines the programs that agents run.

use llm_do::tools::SandboxStatus;
use serde_json::{Value, json};

/// What confines the programs that agents run. Nothing missing here is a failure: commands run with a notice.
pub(super) fn sandbox_lines(status: &SandboxStatus) -> Vec<String> {
    let landlock = match status.landlock_level {
        Some(level) => format!("ok    sandbox   Landlock, level {level}"),
        None => "none  sandbox   Landlock".to_owned(),
    };
    let filter = if status.filters_calls { "ok  " } else { "none" };
    let mut lines = vec![landlock, format!("{filter}  sandbox   seccomp")];
    if status.is_partly_active() {
        lines.push(format!("      confined: {}", status.covers().join(", ")));
    }
    lines.extend(status.missing.iter().map(|missing| format!("      {missing}")));
    lines.extend(sandbox_hint(status).map(|hint| format!("hint: {hint}")));
    lines
}

fn sandbox_hint(status: &SandboxStatus) -> Option<&'static str> {
    if !cfg!(target_os = "linux") {
        return (!status.is_active())
            .then_some("commands are judged and approved as everywhere, and not confined");
    }
    match (status.landlock_level, status.filters_calls) {
        (None, _) => Some(
            "Landlock needs Linux 5.13 or newer, started with `lsm=landlock,...`, and a container that allows it",
        ),
        (_, false) => {
            Some("seccomp needs x86-64, ARM or RISC-V with 64 bits, and a container that allows it")
        }
        (Some(level), true) if level < 6 => {
            Some("signals to other processes are confined from Linux 6.12 on")
        }
        _ => None,
    }
}

/// The same for programs.
pub(super) fn sandbox_value(status: &SandboxStatus) -> Value {
    json!({
        "active": status.is_active(),
        "landlock_level": status.landlock_level,
        "seccomp": status.filters_calls,
        "covers": status.covers(),
        "missing": status.missing,
        "hint": sandbox_hint(status),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(landlock_level: Option<u32>, filters_calls: bool, missing: &[&str]) -> String {
        let missing = missing.iter().map(|message| (*message).to_owned()).collect();
        sandbox_lines(&SandboxStatus { landlock_level, filters_calls, missing }).join("\n")
    }

    #[test]
    fn what_confines_commands_is_said_and_what_to_do_where_it_is_missing() {
        let newest = lines(Some(7), true, &[]);
        assert!(newest.starts_with("ok    sandbox   Landlock, level 7\nok    sandbox   seccomp"), "{newest}");
        assert!(newest.contains("signals") && !newest.contains("hint"), "{newest}");
        let older = lines(Some(3), true, &[]);
        assert!(older.contains("hint: signals") && older.contains("truncation"), "{older}");
        let none = lines(None, false, &["files are not confined: the kernel has no Landlock"]);
        assert!(none.contains("none  sandbox   Landlock") && none.contains("no Landlock"), "{none}");
        assert_eq!(none.contains("hint: Landlock needs"), cfg!(target_os = "linux"), "{none}");
        assert!(!none.contains("\n      confined: "), "{none}");
    }
}
