//! Projects from files, through the library.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a test does not expect stops it")]

use llm_do::{ApprovalMode, Severity, Status};
use llm_do_testing::TestRun;
use serde_json::json;

const NEWSROOM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/newsroom");

#[tokio::test]
async fn the_newsroom_runs_its_entry_and_hands_typed_work_to_another_agent() {
    let project = llm_do::load(NEWSROOM).unwrap();
    assert!(project.notices.0.is_empty(), "{}", project.notices);
    let runtime = llm_do::runtime_of(&project).approval_mode(ApprovalMode::RejectAll).build().unwrap();
    let args = project.args.clone().unwrap();
    let run = TestRun::of(runtime.run(project.entry.clone(), serde_json::Value::Object(args)).await);
    assert_eq!(&*run.answer(), "Ships came in with the morning tide.\nThe cranes were busy until noon.");
    let trace = run.report().trace();
    assert_eq!(trace.calls[0].calls[0].input.value(), &json!({"topic": "the harbour"}));
    let events = run.events();
    let prompt = events.iter().find_map(|event| match &event.body {
        llm_do::EventBody::ModelRequest { messages, .. } if &*event.call.agent == "reporter" => {
            Some(messages[0].text())
        }
        _ => None,
    });
    assert_eq!(prompt.as_deref(), Some("Write 2 lines about the harbour."));
}

#[test]
fn a_lone_agent_file_and_a_directory_are_projects_and_older_spellings_are_read_with_a_notice() {
    let folder = std::env::temp_dir().join(format!("llm-do-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("main.worker");
    std::fs::write(&file, "---\nname: main\nmodel: test:echo\nallow_workers: [\"*\"]\n---\nSay it again.\n")
        .unwrap();
    for path in [&file, &folder] {
        let project = llm_do::load(path).unwrap();
        let [notice] = &project.notices.0[..] else { panic!("{}", project.notices) };
        assert_eq!((notice.severity, notice.line), (Severity::Notice, Some(4)));
        let report = llm_do::runtime_of(&project)
            .build()
            .unwrap()
            .run(project.entry.clone(), "hello")
            .blocking()
            .unwrap();
        assert_eq!((&*report.text(), report.status), ("hello", Status::Done));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_place() {
    let folder = std::env::temp_dir().join(format!("llm-do-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("project.toml"), "version = 1\nagent_files = [\"a.agent\", \"b.agent\"]\n[entry]\nagent = \"mian\"\n[runtime]\nmax_dept = 3\n").unwrap();
    std::fs::write(folder.join("a.agent"), "---\nname: main\ntoolset: [x]\n---\n").unwrap();
    std::fs::write(
        folder.join("b.agent"),
        "---\nname: helper\ntoolsets: [man]\nprompt: \"{{ inptu }}\"\n---\n",
    )
    .unwrap();
    let words = llm_do::load(&folder).err().unwrap().to_string();
    for expected in [
        "`runtime`: unknown key `max_dept`\n  at ",
        "project.toml, line 6, column 1",
        "hint: did you mean `max_depth`?",
        "agent `helper`: there is no toolset or agent `man`",
        "`prompt` uses `inptu`, which the input does not have",
        "hint: did you mean `input`?",
        "unknown key `toolset`",
        "a.agent, line 3, column 1\n   |\n 3 | toolset: [x]\n   | ^^^^^^^\nhint: did you mean `toolsets`?",
    ] {
        assert!(words.contains(expected), "{expected:?} is missing in:\n{words}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
