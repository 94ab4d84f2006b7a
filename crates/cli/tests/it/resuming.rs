//! A run is continued although its project is not what it was: what changed is named, and the user chooses.

use std::sync::Arc;

use expectrl::Expect;
use llm_do::event::{Event, EventBody, RunId};
use llm_do::record::{Durability, Reader, Record, Store};
use llm_do_testing::{Chance, needs};
use serde_json::Value;

use crate::support::{Ran, Sandbox};
use crate::terminal::{at_terminal, ended};

/// An agent that asks a helper, after its model has thought for a second.
fn project() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [helper]\n---\nAsk.\n")
        .file("helper.agent", "---\nname: helper\nmodel: test:echo\n---\nOld words.\n")
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - {delay: 1s, ask: {helper: {input: hi}}}\n  - say: the end\n",
        )
}

/// The same, in a run that was out of time before the helper was asked.
fn interrupted() -> Sandbox {
    let sandbox = project();
    sandbox.run(&["run", ".", "go", "-a", "all", "--timeout", "300ms"]).ended(124);
    sandbox
}

fn resume(sandbox: &Sandbox, flags: &[&str]) -> Ran {
    sandbox.run(&[&["resume", "last"], flags].concat())
}

fn events(sandbox: &Sandbox) -> Vec<Value> {
    let shown = sandbox.run(&["show", "last", "--output", "jsonl"]).ended(0).lines();
    shown.into_iter().filter(|line| line["seq"].is_u64()).collect()
}

/// The instructions with which the helper was asked.
fn helper_instructions(sandbox: &Sandbox) -> String {
    let events = events(sandbox);
    let asked = events.iter().find(|event| event["type"] == "model_request" && event["agent"] == "helper");
    asked.expect("the helper was not asked")["instructions"].as_str().unwrap().to_owned()
}

const NEW_HELPER: &str = "---\nname: helper\nmodel: test:echo\n---\nNew words.\n";

#[test]
fn nothing_is_said_if_nothing_changed() {
    let sandbox = interrupted();
    resume(&sandbox, &[]).ended(0).said("the end\n").told_nothing();
}

#[test]
fn a_changed_prompt_is_named_and_nothing_runs_without_a_choice() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    let before = events(&sandbox).len();
    let refused = resume(&sandbox, &[]).ended(2).told("helper.agent  modified").told("--changed go-on");
    assert!(!refused.stderr.contains("New words"), "{refused:?}");
    resume(&sandbox, &["--diff"]).ended(2).told("-Old words.\n+New words.\n");
    assert_eq!(events(&sandbox).len(), before);
    resume(&sandbox, &["--changed", "maybe"]).ended(2);
}

#[test]
fn a_run_goes_on_with_the_files_of_today() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    resume(&sandbox, &["--changed", "go-on"])
        .ended(0)
        .said("the end\n")
        .told("has changed since this run was recorded: helper.agent (modified), agent helper (modified)");
    assert!(helper_instructions(&sandbox).starts_with("New words."));
    let resumed = events(&sandbox).into_iter().find(|event| event["type"] == "run_resumed").unwrap();
    assert_eq!(resumed["changed"], true);
    let changes =
        serde_json::json!({"files": {"helper.agent": "modified"}, "agents": {"helper": "modified"}});
    assert_eq!(resumed["changes"], changes);
    assert_eq!(resumed["project"], sandbox.root().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn a_run_goes_on_with_the_recorded_agent_files() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    let main = sandbox.path("main.agent");
    let moved = std::fs::read_to_string(&main).unwrap().replace("Ask.", "Never ask.");
    std::fs::write(main, moved).unwrap();
    resume(&sandbox, &["--changed", "recorded"]).ended(0).said("the end\n").told("recorded files");
    assert!(helper_instructions(&sandbox).starts_with("Old words."));
    let resumed = events(&sandbox).into_iter().find(|event| event["type"] == "run_resumed").unwrap();
    assert_eq!((&resumed["changed"], &resumed["changes"]), (&false.into(), &Value::Null));
    assert!(std::fs::read_to_string(sandbox.path("helper.agent")).unwrap().contains("New words."));
}

#[test]
fn a_manifest_and_agent_files_that_changed_came_or_went_are_named() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {max_depth: 3}\n";
    let sandbox = interrupted()
        .file("project.yaml", manifest)
        .file("another.agent", "---\nname: another\nmodel: test:echo\n---\nNew.\n");
    std::fs::remove_file(sandbox.path("helper.agent")).unwrap();
    let changes = ["another.agent  added", "helper.agent   removed", "project.yaml   modified"];
    let refused = resume(&sandbox, &[]).ended(2);
    assert!(changes.iter().all(|change| refused.stderr.contains(change)), "{refused:?}");
    // What is there today cannot run at all: the agent that `main` names is gone.
    resume(&sandbox, &["--changed", "go-on"]).ended(2);
    resume(&sandbox, &["--changed", "recorded"]).ended(0).said("the end\n");
    assert!(helper_instructions(&sandbox).starts_with("Old words."));
    assert!(!sandbox.path("helper.agent").exists());
}

#[test]
fn a_manifest_that_cannot_be_read_any_more_is_a_change_too() {
    let sandbox = interrupted().file("project.yaml", "version: [");
    let refused = resume(&sandbox, &[]).ended(2).told("project.yaml  modified");
    assert!(!refused.stderr.contains("removed"), "{refused:?}");
    resume(&sandbox, &["--changed", "recorded"]).ended(0).said("the end\n");
}

#[test]
fn a_changed_script_is_named_and_that_of_today_answers() {
    let script = "mode: by_turn\nreplies:\n  - ask: {helper: {input: hi}}\n  - say: another end\n";
    let sandbox = interrupted().file("script.yaml", script);
    resume(&sandbox, &[]).ended(2).told("script.yaml  modified");
    resume(&sandbox, &["--changed", "recorded"]).ended(0).said("another end\n");
}

/// A project with a tool in Python, in a run that was out of time before the tool was called.
fn with_python() -> Sandbox {
    let sandbox = project()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntools: [greet]\n---\nOld.\n")
        .file("tools.py", &tool("old"))
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - {delay: 1s, ask: {greet: {}}}\n  - say: the end\n",
        );
    sandbox.run(&["run", ".", "go", "-a", "all", "--timeout", "600ms"]).ended(124);
    sandbox
}

fn tool(answer: &str) -> String {
    format!("def greet() -> str:\n    \"\"\"Greets.\"\"\"\n    return '{answer}'\n\nTOOLS = [greet]\n")
}

#[needs(python)]
#[test]
fn changed_python_is_named_and_that_of_today_runs() {
    let sandbox = with_python().file("tools.py", &tool("new"));
    resume(&sandbox, &[]).ended(2).told("tools.py  modified");
    resume(&sandbox, &["--changed", "recorded", "-a", "all"]).ended(0).told("code is that of today");
    let greeted = events(&sandbox)
        .into_iter()
        .find(|event| event["type"] == "call_finished" && event["name"] == "greet");
    assert!(greeted.unwrap()["output"].to_string().contains("new"));
}

#[test]
fn what_was_accepted_once_is_not_asked_again() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    resume(&sandbox, &["--changed", "go-on", "--timeout", "300ms"]).ended(124);
    resume(&sandbox, &[]).ended(0).told_nothing();
}

#[test]
fn a_person_at_a_terminal_sees_the_changes_and_chooses() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    let line = "\"$LLM_DO\" resume last --headless; echo code $?";
    let mut session = at_terminal(&sandbox, line);
    let shown = session.expect("[s] stop").unwrap();
    let shown = String::from_utf8_lossy(shown.before()).into_owned();
    assert!(shown.contains("helper.agent  modified") && !shown.contains("New words"), "{shown}");
    session.send_line("d").unwrap();
    session.expect("+New words.").unwrap();
    session.expect("[s] stop").unwrap();
    session.send_line("s").unwrap();
    assert!(ended(session).contains("code 2"));
    assert!(!events(&sandbox).iter().any(|event| event["type"] == "run_resumed"));

    let mut session = at_terminal(&sandbox, line);
    session.expect("[s] stop").unwrap();
    session.send_line("r").unwrap();
    assert!(ended(session).contains("code 0"));
    assert!(helper_instructions(&sandbox).starts_with("Old words."));
}

#[test]
fn a_person_goes_on_with_the_files_of_today() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" resume last --diff --headless; echo code $?");
    session.expect("+New words.").unwrap();
    session.expect("[s] stop").unwrap();
    session.send_line("g").unwrap();
    assert!(ended(session).contains("code 0"));
    assert!(helper_instructions(&sandbox).starts_with("New words."));
}

#[test]
fn a_project_that_moved_is_named_with_both_directories() {
    let sandbox = interrupted();
    let (from, to) = (sandbox.root(), sandbox.home().join("moved"));
    std::fs::rename(&from, &to).unwrap();
    let resume = |flags: &[&str]| -> Ran {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_llm-do"));
        command.args(["resume", "last", "--trust"]).args(flags).current_dir(sandbox.home());
        command.env("XDG_STATE_HOME", sandbox.state()).env("HOME", sandbox.home());
        command.stdin(std::process::Stdio::null()).output().unwrap().into()
    };
    resume(&[]).ended(2).told("the project of the run is gone").told("--project");
    let named = format!("it was in {}, and is in {}", from.display(), to.display());
    resume(&["--project", "moved"]).ended(2).told(&named);
    resume(&["--project", "moved", "--changed", "go-on"]).ended(0).said("the end\n");
}

#[tokio::test]
async fn a_run_of_another_machine_is_not_continued_without_a_choice() {
    let sandbox = interrupted();
    copy_record(&sandbox, |event| {
        if let EventBody::RunStarted(start) = &mut event.body {
            start.source.as_mut().unwrap().machine = Some("elsewhere".to_owned());
        }
    })
    .await;
    resume(&sandbox, &["--record", "copy.db"]).ended(2).told("elsewhere");
    resume(&sandbox, &["--record", "copy.db", "--changed", "go-on"]).ended(0).said("the end\n");
}

#[tokio::test]
async fn a_run_of_another_build_goes_on_with_a_notice() {
    let sandbox = interrupted();
    copy_record(&sandbox, |event| {
        if let EventBody::RunStarted(start) = &mut event.body {
            start.build = "0.0.1".to_owned();
            start.parts.tools.insert("elsewhere.unused".into(), start.pin);
        }
    })
    .await;
    resume(&sandbox, &["--record", "copy.db"]).ended(0).said("the end\n").told("version 0.0.1");
}

#[tokio::test]
async fn a_record_without_files_and_names_is_resumed_as_before() {
    let sandbox = interrupted().file("helper.agent", NEW_HELPER);
    copy_record(&sandbox, |event| {
        if let EventBody::RunStarted(start) = &mut event.body {
            start.parts = Default::default();
            start.bundle = None;
        }
    })
    .await;
    resume(&sandbox, &["--record", "copy.db", "--changed", "recorded"])
        .ended(2)
        .told("does not have the files");
    resume(&sandbox, &["--record", "copy.db"]).ended(0).told("the project has changed");
}

/// A project whose tool pays, in a run that was out of time after it had paid.
fn paid() -> Sandbox {
    let sandbox =
        with_python_tool("def pay() -> str:\n    \"\"\"Pays.\"\"\"\n    return 'paid'\n\nTOOLS = [pay]\n");
    sandbox.run(&["run", ".", "go", "-a", "all", "--timeout", "1500ms"]).ended(124);
    sandbox
}

fn with_python_tool(code: &str) -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntools: [pay]\n---\nPay.\n")
        .file("tools.py", code)
        .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {pay: {}}\n  - {delay: 3s, say: the end}\n")
}

#[needs(python)]
#[tokio::test]
async fn another_definition_of_a_tool_that_was_used_and_must_not_be_repeated_is_asked_about() {
    let sandbox = paid();
    assert!(
        events(&sandbox).iter().any(|event| event["type"] == "call_executing" && event["effect"] == "once")
    );
    copy_record(&sandbox, |event| {
        if let EventBody::RunStarted(start) = &mut event.body {
            let pin = start.pin;
            start.parts.tools.insert("pay".into(), pin);
        }
    })
    .await;
    resume(&sandbox, &["--record", "copy.db"]).ended(2).told("pay");
    resume(&sandbox, &["--record", "copy.db", "--changed", "go-on"]).ended(0).said("the end\n");
}

/// Copies the record to `copy.db`, with other events.
async fn copy_record(sandbox: &Sandbox, change: impl Fn(&mut Event)) {
    let path = sandbox.state().join("llm-do/record.db");
    let reader = Reader::open(&path).unwrap().unwrap();
    let run: RunId = reader.find("last").unwrap().id;
    let events = reader.events(run, None).unwrap();
    let copy = Record::open(sandbox.path("copy.db")).unwrap();
    let writer = copy.begin(run).await.unwrap();
    for event in events {
        let mut event = Event::clone(&event);
        change(&mut event);
        if let EventBody::RunStarted(start) = &event.body
            && let Some(digest) = start.bundle
        {
            writer.keep_bundle(digest, &Arc::new(reader.bundle(digest).unwrap().unwrap()));
        }
        writer.enqueue(&Arc::new(event), Durability::Process).unwrap().await.unwrap();
    }
}

#[test]
fn secret_files_and_files_with_secrets_are_never_kept() {
    // Put together here, so that no scanner takes this file for one with a key.
    let mut chance = Chance::new(7);
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
    let random: String = (0..93).map(|_| char::from(letters[chance.below(letters.len())])).collect();
    let key = format!("sk-ant-api03-{random}AA");
    let sandbox = project()
        .file(".env", &format!("ANTHROPIC_API_KEY={key}\n"))
        .file("helper.agent", &format!("---\nname: helper\nmodel: test:echo\n---\nThe key is {key}.\n"))
        .file("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n");
    sandbox.run(&["run", ".", "go", "-a", "all", "--timeout", "300ms"]).ended(124);
    let record = sandbox.state().join("llm-do");
    let reader = Reader::open(record.join("record.db")).unwrap().unwrap();
    let run = reader.find("last").unwrap().id;
    let digest = reader.events(run, None).unwrap().iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => start.bundle,
        _ => None,
    });
    let bundle = reader.bundle(digest.unwrap()).unwrap().unwrap();
    let paths: Vec<&str> = bundle.files().map(|(path, _)| path).collect();
    assert_eq!(paths, ["main.agent", "project.yaml", "script.yaml"]);
    for file in std::fs::read_dir(record).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(24).any(|window| window == &key.as_bytes()[..24]);
        assert!(!found, "{}", file.display());
    }
}

#[test]
fn recorded_files_do_not_get_more_trust_than_those_of_today() {
    let loose =
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {approval_mode: approve_all}\n";
    let strict = "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n";
    for sandbox in [Sandbox::new(), Sandbox::untrusted()] {
        let sandbox = sandbox
            .file("project.yaml", loose)
            .file("main.agent", "---\nname: main\nmodel: script:script.yaml\n---\nAnswer.\n")
            .file("script.yaml", "mode: by_turn\nreplies:\n  - {delay: 1s, say: the end}\n");
        sandbox.run(&["run", ".", "go", "--trust", "--timeout", "300ms"]).ended(124);
        let sandbox = sandbox.file("project.yaml", strict);
        resume(&sandbox, &["--changed", "recorded"]).ended(2).told("--trust=");
        resume(&sandbox, &["--changed", "go-on"]).ended(0);
    }
}

#[test]
fn runs_of_one_project_keep_its_files_once() {
    let sandbox = Sandbox::echo();
    let digests: Vec<Value> = (0..3)
        .map(|_| {
            sandbox.run(&["run", ".", "hello"]).ended(0);
            events(&sandbox)[0]["bundle"].clone()
        })
        .collect();
    assert!(digests[0].is_string() && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
}
