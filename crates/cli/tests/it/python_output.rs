//! What Python code prints, and what goes wrong when toolsets are closed, in every output mode.

use llm_do_testing::needs;

use crate::support::Sandbox;

/// A toolset that cannot save its data, and a shared one that cannot clean up.
const TOOLS: &str = r#"
from pydantic_ai.toolsets import FunctionToolset
class Database(FunctionToolset):
    async def __aexit__(self, *problem):
        print("closing the database")
        raise OSError("commit failed: data not saved")
def database():
    made = Database()
    made.tool_plain(lambda: "one", name="look")
    return made
class Shared(FunctionToolset):
    def cleanup(self):
        raise ValueError("cleanup is broken")
shared = Shared()
TOOLSETS = {"database": database, "shared": shared}
"#;

fn project() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: test:echo\ntoolsets: [database, shared]\n---\nAnswer.\n")
        .file("tools.py", TOOLS)
}

#[needs(python)]
#[test]
fn a_toolset_that_cannot_be_closed_is_told_in_every_output_mode() {
    let project = project();
    for output in ["text", "json", "jsonl"] {
        for more in [&[][..], &["-v"], &["--plain"]] {
            let ran = project.run(&[&["run", ".", "hello", "--output", output], more].concat());
            let stderr = &ran.stderr;
            assert_eq!(ran.code, Some(0), "{stderr}");
            for line in ["closing the database", "commit failed: data not saved"] {
                assert_eq!(stderr.matches(line).count(), 1, "{output} {more:?} {line}: {stderr}");
            }
            assert!(stderr.contains("cleanup is broken"), "{output} {more:?}: {stderr}");
        }
    }
    let ran = project.run(&["run", ".", "hello", "--output", "jsonl"]);
    let notices: Vec<_> = ran.stdout.lines().filter(|line| line.contains(r#""type":"notice""#)).collect();
    assert!(notices.iter().any(|line| line.contains("commit failed") && line.contains(r#""agent":"main""#)));
    assert!(ran.stdout.trim_end().lines().rev().nth(1).unwrap().contains("run_finished"));
}

#[needs(python)]
#[test]
fn a_toolset_that_cannot_be_closed_after_a_chat_is_told() {
    let ran = project().run_with(&["chat", "."], b"hello\n/quit\n");
    assert_eq!(ran.stderr.matches("commit failed: data not saved").count(), 1, "{}", ran.stderr);
}

#[needs(python)]
#[test]
fn a_directory_whose_name_is_not_utf8_is_named_as_the_reason() {
    use std::os::unix::ffi::OsStrExt;
    let project = project();
    let odd = project.path("").join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    for file in ["project.yaml", "main.agent", "tools.py"] {
        std::fs::copy(project.path(file), odd.join(file)).unwrap();
    }
    let ran = project.command(&["check", "."]).current_dir(&odd).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(stderr.contains("not valid UTF-8"), "{stderr}");
}

#[needs(python)]
#[test]
fn an_import_that_never_ends_is_reported_and_its_limit_is_a_key_of_the_manifest() {
    let project = Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n\
             python_load_seconds: 8.5\n",
        )
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nAnswer.\n")
        .file("tools.py", "while True: pass\n");
    let ran = project.run(&["run", ".", "hello"]);
    for part in [
        "notice: still importing tools.py (",
        "`tools.py` took longer than 8.5 seconds",
        "`python_load_seconds`",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}
