//! The toolset `file_descriptors` through the gate.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use llm_do_core::{
    Access, AgentSpec, Answer, ApprovalMode, ApprovalRequest, Event, EventBody, Failure, FailureKind,
    ModelProfile, Scope,
};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{
    ContentStore, DescriptorSettings, Descriptors, FdId, FdSource, MemoryStore, Runtime, Store,
};
use llm_do_testing::{Approvals, Chance, FunctionTool, TestDir, TestProject, deny, edit, once};
use llm_do_tools::{ExportSettings, FileDescriptors, Protected, ToolsetEnv, ToolsetRequest, built_in};
use serde_json::{Value, json};

/// A project directory that is removed at the end.
struct Folder(TestDir);

impl Folder {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn file(self, path: &str, content: &str) -> Self {
        self.0.write(path, content);
        self
    }

    fn text(&self, path: &str) -> String {
        self.0.read(path)
    }

    fn toolset(&self) -> FileDescriptors {
        self.toolset_with(ExportSettings::default())
    }

    fn toolset_with(&self, settings: ExportSettings) -> FileDescriptors {
        let protected = Protected::new(["tools.py"]);
        FileDescriptors::new("file_descriptors", self.0.path(), settings, &protected).unwrap()
    }
}

/// The tools behind the gate of a runtime, with one table of descriptors.
struct Gate {
    folder: Folder,
    runtime: Runtime,
    approvals: Approvals,
}

impl Gate {
    fn with(texts: &[(&str, &str)]) -> Self {
        Self::asking(Folder::new(), texts, [])
    }

    fn asking(folder: Folder, texts: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        let toolset = folder.toolset();
        Self::of(folder, toolset, texts, answers)
    }

    fn of(
        folder: Folder,
        toolset: FileDescriptors,
        texts: &[(&str, &str)],
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let table = table(texts);
        let approvals = Approvals::new(answers);
        let runtime = project(toolset, &table).approver(approvals.clone()).build();
        Self { folder, runtime, approvals }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        match self.runtime.run(tool, arguments).await {
            Ok(report) => Ok(report.output.unwrap().to_value()),
            Err(error) => Err(error.report.failure.clone().unwrap_or_else(|| panic!("{error}"))),
        }
    }

    async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap().as_str().unwrap().to_owned()
    }

    fn requests(&self) -> Vec<ApprovalRequest> {
        self.approvals.requests()
    }
}

fn table(texts: &[(&str, &str)]) -> Descriptors {
    let settings = DescriptorSettings { limit: 100_000, page_size: 10, ..DescriptorSettings::default() };
    let table = Descriptors::new(settings, ContentStore::default());
    for (id, text) in texts {
        table.add(FdId::from(*id), text, FdSource::ToolResult).unwrap();
    }
    table
}

fn project(toolset: FileDescriptors, table: &Descriptors) -> TestProject {
    let table = table.clone();
    TestProject::new()
        .agent(AgentSpec::new("main", "You read.").toolset("file_descriptors"))
        .toolset(toolset)
        .model_replies([says("done")])
        .runtime(|builder| builder.provide(table))
}

const THREE: &str = "one\ntwo\nthree\n";

#[tokio::test]
async fn a_text_is_read_by_pages_lines_and_characters_from_one() {
    let gate = Gate::with(&[("fd:3.1", THREE)]);
    let first = gate.text("read_fd", json!({"fd": "fd:3.1"})).await;
    assert_eq!(
        first,
        "<fd_content fd=\"fd:3.1\" page=\"1\" pages=\"2\" lines=\"1-2\" total_lines=\"3\" chars=\"8\" total_chars=\"14\" \
         mode=\"page\" start=\"1\" count=\"1\" continued=\"false\" truncated=\"false\">\none\ntwo\n\n</fd_content>"
    );
    let read = |arguments: Value| {
        let gate = &gate;
        async move {
            let shown = gate.text("read_fd", arguments).await;
            let (_, text) = shown.split_once(">\n").unwrap();
            text.strip_suffix("\n</fd_content>").unwrap().to_owned()
        }
    };
    assert_eq!(read(json!({"fd": "fd:3.1", "mode": "line", "start": 2, "count": 9})).await, "two\nthree\n");
    assert_eq!(read(json!({"fd": "fd:3.1", "mode": "char", "start": 1, "count": 3})).await, "one");
    assert_eq!(read(json!({"fd": "fd:3.1", "mode": "all"})).await, THREE);
}

#[tokio::test]
async fn reading_asks_nobody_and_needs_only_access_to_read() {
    let folder = Folder::new();
    let table = table(&[("fd:1.0", THREE)]);
    let project = TestProject::new()
        .agent(AgentSpec::new("main", "You read.").toolset("file_descriptors").access(Access::Read))
        .toolset(folder.toolset())
        .runtime({
            let table = table.clone();
            |builder| builder.provide(table)
        })
        .model_replies([
            asks("read_fd", json!({"fd": "fd:1.0", "start": 2})),
            asks("fd_to_file", json!({"fd": "fd:1.0", "path": "a.txt"})),
            asks("close_fd", json!({"fd": "fd:1.0"})),
            says("done"),
        ]);
    let run = project.run("go").await;
    let results = run.tool_results();
    assert!(results[0].contains("\nthree\n"), "{results:?}");
    assert!(!folder.0.join("a.txt").exists());
    assert_eq!(results[2], r#"{"closed":"fd:1.0","open":0}"#);
    assert!(table.list().is_empty());
}

#[tokio::test]
async fn what_cannot_be_read_says_what_can() {
    let gate = Gate::with(&[("fd:3.1", THREE)]);
    let error = |arguments: Value| {
        let gate = &gate;
        async move { gate.call("read_fd", arguments).await.unwrap_err().to_string() }
    };
    let unknown = error(json!({"fd": "fd:3"})).await;
    assert!(unknown.contains("did you mean `fd:3.1`?"), "{unknown}");
    let range = error(json!({"fd": "fd:3.1", "mode": "char", "start": 15})).await;
    assert!(range.ends_with("hint: `start` is from 1 to 14 in mode `char`"), "{range}");
    let mode = error(json!({"fd": "fd:3.1", "mode": "word"})).await;
    assert!(mode.contains("page") && mode.contains("char"), "{mode}");
}

#[tokio::test]
async fn a_part_that_would_fill_the_context_is_refused_and_can_be_taken_out() {
    let long = "x".repeat(300_000);
    let gate = Gate::with(&[("fd:3.1", &long)]);
    let failure = gate.call("read_fd", json!({"fd": "fd:3.1", "mode": "line"})).await.unwrap_err();
    assert_eq!(failure.message, "the part has 300000 characters, more than the 200000 that are read at once");
    assert!(failure.hint.unwrap().contains("grep_fd"));
    let shown = gate.text("read_fd", json!({"fd": "fd:3.1", "mode": "line", "extract": true})).await;
    assert!(shown.contains("total_chars=\"300000\""), "{shown}");
}

#[tokio::test]
async fn a_part_becomes_a_descriptor_named_by_its_call() {
    let folder = Folder::new();
    let table = table(&[("fd:0.0", THREE)]);
    let extract = json!({"fd": "fd:0.0", "mode": "line", "start": 2, "count": 1, "extract": true});
    let run = project(folder.toolset(), &table)
        .model_replies([asks("list_fd", json!({})), asks("read_fd", extract), says("done")])
        .run("go")
        .await;
    let results = run.tool_results();
    assert!(
        results[1].starts_with("<fd_result fd=\"fd:2.0\" pages=\"1\" total_lines=\"1\" total_chars=\"4\"")
    );
    assert!(results[1].contains("source=\"extraction\" from=\"fd:0.0\"") && !results[1].contains("two"));
    let taken = table.get("fd:2.0").unwrap();
    assert_eq!(taken.read(llm_do_runtime::Selection::All, 1, 1).unwrap().text, "two\n");
}

#[tokio::test]
async fn descriptors_are_listed_with_what_they_hold() {
    let gate = Gate::with(&[("fd:1.0", THREE), ("fd:1.1", "")]);
    let listed = gate.call("list_fd", json!({})).await.unwrap();
    assert_eq!(
        listed,
        json!({"descriptors": [
            {"fd": "fd:1.0", "source": "tool_result", "pages": 2, "lines": 3, "chars": 14},
            {"fd": "fd:1.1", "source": "tool_result", "pages": 1, "lines": 1, "chars": 0},
        ]})
    );
}

#[tokio::test]
async fn a_long_list_of_descriptors_is_shown_in_parts_that_are_results_shown_whole() {
    let settings = DescriptorSettings::default();
    let limit = usize::try_from(settings.limit).unwrap();
    let table = Descriptors::new(settings, ContentStore::default());
    let names: Vec<String> = (0..300).map(|number| format!("fd:{number}.0")).collect();
    for name in &names {
        table.add(FdId::from(name.as_str()), "x", FdSource::ToolResult).unwrap();
    }
    let folder = Folder::new();
    let runtime = project(folder.toolset(), &table).build();
    let list = async |start: usize| {
        let report = runtime.run("list_fd", json!({"start": start})).await.unwrap();
        report.output.unwrap().to_value()
    };
    let mut listed = Vec::new();
    loop {
        let part = list(listed.len() + 1).await;
        assert!(part.to_string().chars().count() <= limit, "{part}");
        let shown = part["descriptors"].as_array().unwrap();
        assert!(!shown.is_empty(), "{part}");
        listed.extend(shown.iter().map(|fd| fd["fd"].as_str().unwrap().to_owned()));
        let (more, next) = (300 - listed.len(), listed.len() + 1);
        if more == 0 {
            assert_eq!(part["note"], Value::Null);
            break;
        }
        assert_eq!(part["note"], format!("{more} more are open: go on with `start` {next}"));
    }
    assert_eq!(listed, names);
    assert_eq!(list(301).await, json!({"descriptors": [], "note": "only 300 are open"}));
}

#[tokio::test]
async fn lines_are_found_with_their_numbers_and_neighbors() {
    let text = "alpha\nbeta\ngamma\r\ndelta\nepsilon\nzeta\neta\ntheta\n";
    let gate = Gate::with(&[("fd:1.0", text)]);
    let grep = |arguments: Value| {
        let gate = &gate;
        async move { gate.call("grep_fd", arguments).await.unwrap() }
    };
    let found = grep(json!({"fd": "fd:1.0", "pattern": "^[bg].*a$"})).await;
    assert_eq!(found, json!({"fd": "fd:1.0", "matches": 2, "lines": ["2: beta", "3: gamma"]}));
    let around =
        grep(json!({"fd": "fd:1.0", "pattern": "ALPHA|^theta", "ignore_case": true, "context": 1})).await;
    assert_eq!(around["lines"], json!(["1: alpha", "2- beta", "--", "7- eta", "8: theta"]));
    let touching = grep(json!({"fd": "fd:1.0", "pattern": "beta|delta", "context": 1})).await;
    assert_eq!(touching["lines"], json!(["1- alpha", "2: beta", "3- gamma", "4: delta", "5- epsilon"]));
    let few = grep(json!({"fd": "fd:1.0", "pattern": "a", "max_matches": 2})).await;
    assert_eq!(few["lines"], json!(["1: alpha", "2: beta"]));
    assert_eq!(few["matches"], 7);
    assert!(few["note"].as_str().unwrap().starts_with("5 more matches are not shown"), "{few}");
    let counted = grep(json!({"fd": "fd:1.0", "pattern": "a", "max_matches": 0})).await;
    assert_eq!(counted["note"], "7 matches were counted");
    let none = grep(json!({"fd": "fd:1.0", "pattern": "omega"})).await;
    assert_eq!(none, json!({"fd": "fd:1.0", "matches": 0, "lines": []}));
}

#[tokio::test]
async fn what_is_found_is_no_longer_than_a_result_that_is_shown_whole() {
    let text: String = (0..2_000).map(|line| format!("needle \"{line}\" {}\n", "x".repeat(300))).collect();
    let gate = Gate::with(&[("fd:1.0", &text)]);
    for context in [0, 5] {
        let arguments =
            json!({"fd": "fd:1.0", "pattern": "[05]. x", "max_matches": 1000, "context": context});
        let found = gate.call("grep_fd", arguments).await.unwrap();
        let size = found.to_string().chars().count();
        assert!((95_000..=100_000).contains(&size), "{size}");
        let is_match = |line: &&Value| line.as_str().unwrap().contains(": needle");
        let shown = found["lines"].as_array().unwrap().iter().filter(is_match).count() as u64;
        let more = found["matches"].as_u64().unwrap() - shown;
        let note = found["note"].as_str().unwrap();
        assert!(note.starts_with(&format!("{more} more matches are not shown")), "{note}");
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_shown_around_each_match() {
    let text =
        format!("short\n{}needle{}needle{}\nend", "ä".repeat(5000), "y".repeat(3_000_000), "z".repeat(50));
    let gate = Gate::with(&[("fd:1.0", &text)]);
    let found =
        gate.call("grep_fd", json!({"fd": "fd:1.0", "pattern": "needle", "context": 1})).await.unwrap();
    let lines: Vec<&str> =
        found["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!((found["matches"].as_u64(), lines.len()), (Some(2), 4), "{found}");
    assert_eq!((lines[0], lines[3]), ("1- short", "3- end"));
    for line in &lines[1..3] {
        let (place, shown) =
            line.strip_prefix("2: [cut: characters ").unwrap().split_once(" of the text] ").unwrap();
        let (first, last) = place.split_once('-').unwrap();
        let (first, last) = (first.parse::<usize>().unwrap(), last.parse::<usize>().unwrap());
        let part: String = text.chars().skip(first - 1).take(last + 1 - first).collect();
        assert_eq!(part, shown);
        assert!(shown.contains("needle") && shown.len() <= 403, "{line}");
    }
}

#[tokio::test]
async fn every_line_is_found_in_texts_of_several_windows() {
    for seed in 0..3 {
        let mut chance = Chance::new(seed);
        let words = ["needle", "é", "hay", " ", "\r\n", "\n", "\n\n", "a longer word, "];
        let text: String = (0..400_000).map(|_| *chance.one_of(&words)).collect();
        let gate = Gate::with(&[("fd:1.0", &text)]);
        let arguments = json!({"fd": "fd:1.0", "pattern": "needle", "max_matches": 1000});
        let found = gate.call("grep_fd", arguments).await.unwrap();
        let expected: Vec<String> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("needle"))
            .map(|(index, line)| format!("{}: {line}", index + 1))
            .collect();
        assert_eq!(found["matches"].as_u64(), Some(expected.len() as u64), "seed {seed}");
        assert_eq!(found["lines"], json!(expected[..1000]), "seed {seed}");
    }
}

#[tokio::test]
async fn expressions_that_match_nothing_or_bytes_come_to_an_end() {
    let long = "ö".repeat(2_000);
    let gate = Gate::with(&[("fd:1.0", &long), ("fd:1.1", "a\n\nb\n"), ("fd:1.2", "")]);
    let matches = |fd: &'static str, pattern: &'static str| {
        let gate = &gate;
        async move {
            let found = gate.call("grep_fd", json!({"fd": fd, "pattern": pattern})).await.unwrap();
            found["matches"].as_u64().unwrap()
        }
    };
    assert_eq!(matches("fd:1.1", "^").await, 3);
    assert_eq!(matches("fd:1.1", "^$").await, 1);
    assert_eq!(matches("fd:1.2", "^$").await, 1);
    assert_eq!(matches("fd:1.2", "x").await, 0);
    assert_eq!(matches("fd:1.0", "$").await, 1);
    assert!(matches("fd:1.0", "q*").await > 5);
    assert!(matches("fd:1.0", r"(?-u:\xb6)").await > 5);
    let failure = gate.call("grep_fd", json!({"fd": "fd:1.0", "pattern": "("})).await.unwrap_err();
    assert!(failure.message.starts_with("`pattern` is not a regular expression"), "{failure}");
}

#[tokio::test]
async fn a_person_sees_the_diff_before_a_text_is_written_to_a_file() {
    let folder = Folder::new().file("old.txt", "zero\n");
    let gate = Gate::asking(folder, &[("fd:1.0", THREE)], [once(), once(), once()]);
    let append = json!({"fd": "fd:1.0", "path": "old.txt", "mode": "append"});
    let answer = gate.call("fd_to_file", append).await.unwrap();
    assert_eq!(answer, json!({"path": "old.txt", "bytes": 19, "changed": true}));
    assert_eq!(gate.folder.text("old.txt"), "zero\none\ntwo\nthree\n");
    gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "new/deep.txt"})).await.unwrap();
    assert_eq!(gate.folder.text("new/deep.txt"), THREE);
    gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "old.txt"})).await.unwrap();
    assert_eq!(gate.folder.text("old.txt"), THREE);
    let requests = gate.requests();
    assert_eq!(requests[0].description, "append `fd:1.0` to `old.txt` (5 bytes, then 19)");
    let diff = "--- a/old.txt\n+++ b/old.txt\n@@ -1 +1,4 @@\n zero\n+one\n+two\n+three\n";
    assert_eq!(requests[0].preview.as_deref(), Some(diff));
    assert_eq!(requests[1].description, "create `new/deep.txt` from `fd:1.0` (14 bytes)");
    assert_eq!(requests[1].scopes, [Scope::Directory("new".into()), Scope::Tool]);
    assert_eq!(requests[2].description, "replace `old.txt` by `fd:1.0` (19 bytes, then 14)");
}

#[tokio::test]
async fn a_denied_text_is_not_written() {
    let gate = Gate::asking(Folder::new(), &[("fd:1.0", THREE)], [deny("no")]);
    let failure = gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "a.txt"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(!gate.folder.0.join("a.txt").exists());
}

#[tokio::test]
async fn a_file_is_made_or_replaced_only_where_that_is_wanted() {
    let gate = Gate::asking(Folder::new().file("old.txt", "old"), &[("fd:1.0", THREE)], []);
    for mode in ["write", "append"] {
        let arguments = json!({"fd": "fd:1.0", "path": "old.txt", "mode": mode, "exist_ok": false});
        let failure = gate.call("fd_to_file", arguments).await.unwrap_err();
        assert_eq!(failure.message, "`old.txt` exists already, and `exist_ok` is false");
        let arguments = json!({"fd": "fd:1.0", "path": "new.txt", "mode": mode, "create": false});
        let failure = gate.call("fd_to_file", arguments).await.unwrap_err();
        assert_eq!(failure.message, "`new.txt` does not exist");
    }
    // What cannot be done is not asked about.
    assert!(gate.requests().is_empty());
    assert_eq!(gate.folder.text("old.txt"), "old");
}

#[tokio::test]
async fn no_text_leaves_the_project_or_goes_through_a_link() {
    let outside = Folder::new().file("target.txt", "outside");
    let gate = Gate::asking(Folder::new(), &[("fd:1.0", THREE)], []);
    symlink(outside.0.join("target.txt"), gate.folder.0.join("link.txt")).unwrap();
    symlink(outside.0.path(), gate.folder.0.join("out")).unwrap();
    for path in ["../a.txt", "/etc/a.txt", "out/a.txt", "link.txt", "a\0b"] {
        let failure = gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": path})).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Blocked, "{path}: {failure}");
    }
    assert_eq!(outside.text("target.txt"), "outside");
    assert_eq!(fs::read_dir(outside.0.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn texts_are_written_only_where_and_as_large_as_it_is_set() {
    let folder = Folder::new().file("big.md", "0123456789");
    fs::create_dir(folder.0.join("notes")).unwrap();
    let root = ExportSettings { root: "notes".into(), ..ExportSettings::default() };
    let settings = ExportSettings { suffixes: vec![".md".into()], max_write_bytes: 8, ..root };
    let toolset = folder.toolset_with(settings);
    let gate = Gate::of(folder, toolset, &[("fd:1.0", "short"), ("fd:2.0", THREE)], [once()]);
    for (fd, path) in [("fd:1.0", "../big.md"), ("fd:1.0", "a.txt"), ("fd:2.0", "a.md")] {
        gate.call("fd_to_file", json!({"fd": fd, "path": path})).await.unwrap_err();
    }
    assert!(gate.requests().is_empty());
    gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "a.md"})).await.unwrap();
    assert_eq!(gate.folder.text("notes/a.md"), "short");
}

#[tokio::test]
async fn protected_files_say_why_they_ask() {
    let gate = Gate::asking(Folder::new(), &[("fd:1.0", THREE)], [deny("no"), deny("no")]);
    for path in ["tools.py", "sub/main.agent"] {
        gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": path})).await.unwrap_err();
    }
    for request in gate.requests() {
        assert!(request.reason.contains("is protected"), "{request:?}");
    }
}

#[tokio::test]
async fn what_is_written_is_what_was_shown() {
    let folder = Folder::new();
    let table = table(&[("fd:1.0", THREE)]);
    let meanwhile = table.clone();
    let runtime = project(folder.toolset(), &table)
        .runtime(move |builder| {
            builder.approver(move |_: ApprovalRequest| {
                meanwhile.add(FdId::from("fd:1.0"), "something else", FdSource::ToolResult).unwrap();
                std::future::ready(Answer::Once)
            })
        })
        .build();
    let error = runtime.run("fd_to_file", json!({"fd": "fd:1.0", "path": "a.txt"})).await.unwrap_err();
    assert!(error.to_string().contains("nothing was written"), "{error}");
    assert!(!folder.0.join("a.txt").exists());
}

#[tokio::test]
async fn a_person_may_choose_another_file() {
    let other = json!({"fd": "fd:1.0", "path": "b.txt"});
    let gate = Gate::asking(Folder::new(), &[("fd:1.0", THREE)], [edit(other), once()]);
    gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "a.txt"})).await.unwrap();
    assert_eq!(gate.folder.text("b.txt"), THREE);
    assert!(!gate.folder.0.join("a.txt").exists());
}

#[tokio::test]
async fn the_rest_of_a_long_diff_is_said_to_be_in_the_descriptor() {
    let long = "a line of text\n".repeat(20_000);
    let gate = Gate::asking(Folder::new(), &[("fd:1.0", &long)], [once()]);
    gate.call("fd_to_file", json!({"fd": "fd:1.0", "path": "a.txt"})).await.unwrap();
    let preview = gate.requests()[0].preview.clone().unwrap();
    assert!(preview.ends_with(" bytes, are in `fd:1.0`]\n"), "{}", &preview[preview.len() - 80..]);
    assert_eq!(gate.folder.text("a.txt"), long);
}

#[test]
fn the_toolset_is_built_in_and_an_agent_may_narrow_where_it_writes() {
    let folder = Folder::new();
    let made = |section: Option<&Value>, settings: &Value| {
        let name = "file_descriptors".into();
        let request = ToolsetRequest {
            built_in: "file_descriptors",
            name: &name,
            settings,
            section,
            root: folder.0.path(),
            protected_paths: &[],
            protected_globs: &[],
            allowed_secrets: &[],
        };
        let toolset = built_in(&request, &ToolsetEnv::default()).map_err(|error| error.to_string())?;
        Ok(toolset.definitions().iter().map(|definition| definition.name.to_string()).collect())
    };
    let names: Result<Vec<String>, String> = made(None, &Value::Null);
    assert_eq!(names.unwrap(), ["read_fd", "grep_fd", "list_fd", "close_fd", "fd_to_file"]);
    let error = made(None, &json!({"page_size": 10})).unwrap_err();
    assert!(error.contains("unknown field `page_size`"), "{error}");
    assert!(made(None, &json!({"root": ".."})).unwrap_err().contains("lies outside"));
    assert_eq!(made(None, &json!({"read_only": true})).unwrap().len(), 4);
    let section = json!({"suffixes": [".md"]});
    assert_eq!(made(Some(&section), &json!({"suffixes": [".en.md"]})).unwrap().len(), 5);
    let error = made(Some(&section), &json!({})).unwrap_err();
    assert!(error.starts_with("`suffixes` allows more than the manifest does"), "{error}");
}

#[tokio::test]
async fn a_resumed_run_does_not_write_a_file_again() {
    let folder = Folder::new();
    let make = |store: Arc<dyn Store>| {
        let path = folder.0.join("a.txt");
        let remove = FunctionTool::new("remove", move |_, _| {
            fs::remove_file(&path).unwrap();
            async { Ok("removed".into()) }
        });
        TestProject::new()
            .agent(AgentSpec::new("main", "You write.").toolset("file_descriptors").tool("remove"))
            .toolset(folder.toolset())
            .tool(remove)
            .model(
                Script::by_turn([
                    asks("fd_to_file", json!({"fd": "fd:input", "path": "a.txt"})),
                    asks("remove", json!({})),
                    says("done"),
                ])
                .with_profile(ModelProfile::default()),
            )
            .runtime(|builder| builder.store(store).approval_mode(ApprovalMode::ApproveAll))
            .build()
    };
    let kept = Arc::new(MemoryStore::default());
    let report = make(kept.clone()).run("main", "word ".repeat(2_000)).await.unwrap();
    assert!(!folder.0.join("a.txt").exists(), "{}", report.trace());
    let record = kept.read(report.id, None).await.unwrap().into_iter();
    let is_last = |event: &Event| matches!(&event.body, EventBody::ModelRequest { turn: 3, .. });
    let cut = MemoryStore::from_events(record.take_while(|event| !is_last(event)));
    let again = make(Arc::new(cut)).resume(report.id).await.unwrap().await.unwrap();
    assert_eq!(&*again.text(), "done");
    assert!(!folder.0.join("a.txt").exists(), "a change that was recorded was made again");
}

/// What the model of an agent with tools is shown of an input, and the notices.
async fn shown(input: &str, context_window: Option<u64>) -> (String, Vec<String>) {
    let folder = Folder::new();
    let profile = ModelProfile { context_window, ..ModelProfile::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You read.").toolset("file_descriptors"))
        .toolset(folder.toolset())
        .model(Script::by_turn([says("done")]).with_profile(profile))
        .run(input)
        .await;
    let (mut text, mut notices) = (String::new(), Vec::new());
    for event in run.events() {
        match &event.body {
            EventBody::ModelRequest { messages, .. } => text = messages[0].text(),
            EventBody::Notice { text } => notices.push(text.clone()),
            _ => {}
        }
    }
    (text, notices)
}

#[tokio::test]
async fn an_input_is_shown_whole_or_a_notice_says_what_is_shown() {
    let mut chance = Chance::new(7);
    for _ in 0..40 {
        let window = [None, Some(4_000), Some(30_000), Some(200_000)][chance.below(4)];
        let input = ["x", "ä ", "日本"][chance.below(3)].repeat(chance.below(120_000) + 1);
        let (text, notices) = shown(&input, window).await;
        let is_whole = text == input;
        assert_eq!(is_whole, notices.is_empty(), "{window:?}, {} bytes: {notices:?}", input.len());
        // Half of the window holds any input that has fewer bytes than tokens fit there.
        let fits = window.is_some_and(|window| (input.len() as u64) < window / 4);
        assert!(is_whole || !(fits || input.chars().count() <= 8_000), "{window:?}, {} bytes", input.len());
        assert!(
            !is_whole
                || window
                    .is_none_or(|window| input.chars().count() <= 8_000 || input.len() as u64 <= window * 3)
        );
        if let [notice] = &notices[..] {
            assert!(
                notice.contains(&format!("the input has {} characters", input.chars().count())),
                "{notice}"
            );
            assert!(notice.contains("the first 4000") && notice.contains("page_user_input"), "{notice}");
        }
    }
}

#[tokio::test]
async fn what_an_agent_gives_to_another_is_paged_as_before_and_without_a_notice() {
    let folder = Folder::new();
    let long = "word ".repeat(2_000);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You ask.").toolset("helper"))
        .agent(
            AgentSpec::new("helper", "You read.")
                .toolset("file_descriptors")
                .model(Script::by_turn([says("read")])),
        )
        .toolset(folder.toolset())
        .model(Script::by_turn([asks("helper", json!({"input": long})), says("done")]))
        .run("go")
        .await;
    let events = run.events();
    let asked = events.iter().rev().find_map(|event| match &event.body {
        EventBody::ModelRequest { messages, .. } if event.call.path.contains("helper") => {
            Some(messages[0].text())
        }
        _ => None,
    });
    assert!(asked.unwrap().starts_with("<fd_result"));
    assert!(!events.iter().any(|event| matches!(&event.body, EventBody::Notice { .. })));
}
