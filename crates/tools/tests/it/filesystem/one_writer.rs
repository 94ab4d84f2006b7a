//! Writers of one file do not overwrite each other: in one process, in two, and beside a program without locks.
//!
//! `LLM_DO_EDITS` sets how many edits the two processes make together; the full volume is 1,000.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use llm_do_core::{AgentSpec, Answer, ApprovalMode, Failure};
use llm_do_models::says;
use llm_do_runtime::{ContentStore, DescriptorSettings, Descriptors, FdId, FdSource, Runtime};
use llm_do_testing::TestProject;
use llm_do_tools::{ExportSettings, FileDescriptors, Filesystem, FilesystemSettings, Protected};
use serde_json::{Value, json};

use crate::filesystem::support::Folder;

/// Set for the processes that a test starts: the directory with the file to edit.
const EDITOR_ROOT: &str = "LLM_DO_TEST_EDITOR_ROOT";
const EDITOR_NAME: &str = "LLM_DO_TEST_EDITOR_NAME";
const EDITOR_COUNT: &str = "LLM_DO_TEST_EDITOR_COUNT";
/// The last line of the shared file, before which every edit inserts its own.
const END: &str = "end\n";

/// The tools of one agent, with a toolset of its own.
struct Agent(Runtime);

impl Agent {
    fn new(base: &Path, root: &str, settings: FilesystemSettings) -> Self {
        let settings = FilesystemSettings { root: root.into(), ..settings };
        let toolset = Filesystem::new("files", base, settings).unwrap();
        let project = TestProject::new()
            .agent(AgentSpec::new("main", "").toolset("files"))
            .toolset(toolset)
            .model_replies([says("done")]);
        Self(project.runtime(|builder| builder.approval_mode(ApprovalMode::ApproveAll)).build())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        match self.0.run(tool, arguments).await {
            Ok(report) => Ok(report.output.unwrap().to_value()),
            Err(error) => Err(error.report.failure.clone().unwrap_or_else(|| panic!("{error}"))),
        }
    }

    /// Inserts a line before the end of a file.
    async fn insert(&self, path: &str, line: &str) -> Result<Value, Failure> {
        let edit = json!({"old": END, "new": format!("{line}\n{END}")});
        self.call("edit_file", json!({"path": path, "edits": [edit]})).await
    }
}

/// What one agent did: the lines that were inserted, and how many calls failed.
#[derive(Default)]
struct Edits {
    inserted: Vec<String>,
    conflicts: usize,
}

/// Inserts lines until so many calls succeeded. Every failure must say that the file has changed.
async fn insert_lines(agent: &Agent, path: &str, name: &str, count: usize) -> Edits {
    let mut edits = Edits::default();
    for attempt in 0.. {
        if edits.inserted.len() == count {
            break;
        }
        let line = format!("{name} {attempt}");
        match agent.insert(path, &line).await {
            Ok(answer) => {
                assert_eq!(answer["changed"], true);
                edits.inserted.push(line);
            }
            Err(failure) => {
                assert!(failure.message.contains("has changed"), "{failure}");
                edits.conflicts += 1;
            }
        }
    }
    edits
}

/// Every line that was reported as inserted is in the file once, and no other is.
fn assert_nothing_lost(text: &str, edits: &[Edits]) {
    let mut expected: Vec<&str> =
        edits.iter().flat_map(|edits| &edits.inserted).map(String::as_str).collect();
    let mut found: Vec<&str> = text.strip_suffix(END).unwrap().lines().collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

fn volume() -> usize {
    std::env::var("LLM_DO_EDITS").map_or(60, |text| text.parse().unwrap())
}

/// Starts the test of this name as a second process, with an editor's part.
fn start_editor(test: &str, root: &Path, name: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(EDITOR_ROOT, root)
        .env(EDITOR_NAME, name)
        .env(EDITOR_COUNT, count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a process was started for, if it is an editor.
fn editor_part() -> Option<(PathBuf, String, usize)> {
    let root = PathBuf::from(std::env::var_os(EDITOR_ROOT)?);
    Some((root, std::env::var(EDITOR_NAME).unwrap(), std::env::var(EDITOR_COUNT).unwrap().parse().unwrap()))
}

/// Waits for an editor, and reads what it printed: a line `inserted ..` for each success.
fn finish_editor(editor: Child) -> Edits {
    let output = editor.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let inserted =
        text.lines().filter_map(|line| line.strip_prefix("inserted ")).map(str::to_owned).collect();
    let conflicts = text.lines().find_map(|line| line.strip_prefix("conflicts ")).unwrap().parse().unwrap();
    Edits { inserted, conflicts }
}

#[tokio::test]
async fn no_edit_of_two_processes_is_lost() {
    const TEST: &str = "filesystem::one_writer::no_edit_of_two_processes_is_lost";
    if let Some((root, name, count)) = editor_part() {
        let agent = Agent::new(&root, ".", FilesystemSettings::default());
        let edits = insert_lines(&agent, "shared.txt", &name, count).await;
        println!();
        edits.inserted.iter().for_each(|line| println!("inserted {line}"));
        println!("conflicts {}", edits.conflicts);
        return;
    }
    let folder = Folder::new().file("shared.txt", END);
    let (started, each) = (Instant::now(), volume() / 2);
    let editors = ["first", "second"].map(|name| start_editor(TEST, &folder.root(), name, each));
    let edits = editors.map(finish_editor);
    assert_nothing_lost(&folder.text("shared.txt"), &edits);
    assert_eq!(folder.names("."), ["shared.txt"]);
    let conflicts: usize = edits.iter().map(|edits| edits.conflicts).sum();
    println!(
        "{} edits by two processes, none lost, {conflicts} conflicts reported, {:?}",
        each * 2,
        started.elapsed()
    );
}

#[tokio::test]
async fn equal_edits_of_two_processes_do_not_count_as_one() {
    const TEST: &str = "filesystem::one_writer::equal_edits_of_two_processes_do_not_count_as_one";
    if let Some((root, _, count)) = editor_part() {
        let agent = Agent::new(&root, ".", FilesystemSettings::default());
        let mut done = 0;
        while done < count {
            let old = fs::read_to_string(root.join("count")).unwrap();
            let new = old.parse::<u64>().unwrap() + 1;
            let edit = json!({"old": old, "new": new.to_string()});
            let answer = agent.call("edit_file", json!({"path": "count", "edits": [edit]})).await;
            done += usize::from(answer.is_ok());
        }
        println!("\nconflicts 0");
        return;
    }
    let folder = Folder::new().file("count", "0");
    let each = volume() / 2;
    let editors = ["first", "second"].map(|name| start_editor(TEST, &folder.root(), name, each));
    editors.into_iter().for_each(|editor| drop(finish_editor(editor)));
    assert_eq!(folder.text("count"), (each * 2).to_string());
}

/// Two agents of one process, each with its own toolset, insert lines at the same time.
async fn insert_by_two(folder: &Folder, first: (Agent, &'static str), second: (Agent, &'static str)) {
    let tasks = [("first", first), ("second", second)].map(|(name, (agent, path))| {
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(insert_lines(&agent, path, name, 25))
        })
    });
    let edits = tasks.map(|task| task.join().unwrap());
    assert_nothing_lost(&folder.text("sub/shared.txt"), &edits);
}

#[tokio::test]
async fn agents_with_different_settings_do_not_overwrite_each_other() {
    let folder = Folder::new().file("sub/shared.txt", END);
    let plain = Agent::new(&folder.root(), ".", FilesystemSettings::default());
    let narrow = FilesystemSettings { suffixes: vec![".txt".into()], ..Default::default() };
    let narrow = Agent::new(&folder.root(), ".", narrow);
    insert_by_two(&folder, (plain, "sub/shared.txt"), (narrow, "sub/shared.txt")).await;
}

#[tokio::test]
async fn agents_with_different_roots_do_not_overwrite_each_other() {
    let folder = Folder::new().file("sub/shared.txt", END);
    let project = Agent::new(&folder.root(), ".", FilesystemSettings::default());
    let cwd = Agent::new(&folder.root(), "sub", FilesystemSettings::default());
    insert_by_two(&folder, (project, "sub/shared.txt"), (cwd, "shared.txt")).await;
}

/// An agent that exports the text of the descriptor `fd:1.0`.
fn exporter(base: &Path, text: &str) -> Agent {
    let table = Descriptors::new(DescriptorSettings::default(), ContentStore::default());
    table.add(FdId::from("fd:1.0"), text, FdSource::ToolResult).unwrap();
    let name = "file_descriptors";
    let toolset = FileDescriptors::new(name, base, ExportSettings::default(), &Protected::default());
    let project = TestProject::new()
        .agent(AgentSpec::new("main", "").toolset(name))
        .toolset(toolset.unwrap())
        .model_replies([says("done")]);
    let allow = ApprovalMode::ApproveAll;
    Agent(project.runtime(move |builder| builder.provide(table).approval_mode(allow)).build())
}

/// Repeats a call until it succeeded so many times.
async fn succeed(agent: &Agent, count: usize, tool: &str, arguments: &Value) {
    let mut done = 0;
    while done < count {
        match agent.call(tool, arguments.clone()).await {
            Ok(_) => done += 1,
            Err(failure) => assert!(failure.message.contains("has changed"), "{failure}"),
        }
    }
}

#[tokio::test]
async fn an_export_and_an_edit_do_not_overwrite_each_other() {
    const EACH: usize = 20;
    let folder = Folder::new().file("shared.txt", "begin\n");
    let exporter = exporter(&folder.root(), "exported\n");
    let exporting = std::thread::spawn(move || {
        let arguments = json!({"fd": "fd:1.0", "path": "shared.txt", "mode": "append"});
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(succeed(&exporter, EACH, "fd_to_file", &arguments));
    });
    let agent = Agent::new(&folder.root(), ".", FilesystemSettings::default());
    let edit = json!({"old": "begin\n", "new": "begin\nedited\n"});
    succeed(&agent, EACH, "edit_file", &json!({"path": "shared.txt", "edits": [edit]})).await;
    exporting.join().unwrap();
    let text = folder.text("shared.txt");
    let counted = |line: &str| text.lines().filter(|found| *found == line).count();
    assert_eq!((counted("edited"), counted("exported")), (EACH, EACH));
}

/// An agent whose calls wait, after they were judged, until the other agent's call was judged too.
fn waiting_agent(base: &Path, both_judged: Arc<Barrier>) -> Agent {
    let settings = FilesystemSettings::default();
    let toolset = Filesystem::new("files", base, settings).unwrap();
    let approver = move |_| {
        both_judged.wait();
        std::future::ready(Answer::Once)
    };
    let project = TestProject::new()
        .agent(AgentSpec::new("main", "").toolset("files"))
        .toolset(toolset)
        .model_replies([says("done")]);
    Agent(project.runtime(move |builder| builder.approver(approver)).build())
}

#[tokio::test]
async fn of_two_that_create_a_file_only_one_succeeds() {
    for path in ["a.txt", "new/deep/a.txt"] {
        let folder = Folder::new();
        let both_judged = Arc::new(Barrier::new(2));
        let tasks = ["one", "two"].map(|content| {
            let agent = waiting_agent(&folder.root(), both_judged.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                let arguments = json!({"path": path, "content": content});
                (content, runtime.block_on(agent.call("write_file", arguments)))
            })
        });
        let answers = tasks.map(|task| task.join().unwrap());
        let (written, failed): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, answer)| answer.is_ok());
        assert_eq!((written.len(), failed.len()), (1, 1), "{answers:?}");
        assert!(failed[0].1.as_ref().unwrap_err().message.contains("has changed"), "{answers:?}");
        assert_eq!(folder.text(path), written[0].0);
        let directory = Path::new(path).parent().unwrap().to_str().unwrap();
        assert_eq!(folder.names(directory), ["a.txt"]);
    }
}

/// A program that takes no locks saves a new version again and again, by a rename as editors do.
#[tokio::test]
async fn the_last_version_of_a_program_without_locks_is_never_overwritten_unseen() {
    const VERSIONS: usize = 2000;
    let folder = Folder::new().file("a.txt", "version 0\n");
    let done = Arc::new(AtomicBool::new(false));
    let (path, other, stop) = (folder.root().join("a.txt"), folder.path("outside/new"), done.clone());
    let editor = std::thread::spawn(move || {
        for version in 1..=VERSIONS {
            fs::write(&other, format!("version {version}\n")).unwrap();
            fs::rename(&other, &path).unwrap();
            std::thread::yield_now();
        }
        stop.store(true, Ordering::SeqCst);
    });
    let agent = Agent::new(&folder.root(), ".", FilesystemSettings::default());
    let (mut edits, mut errors) = (0, String::new());
    while !done.load(Ordering::SeqCst) {
        let edit = json!({"old": "version", "new": "edited version"});
        match agent.call("edit_file", json!({"path": "a.txt", "edits": [edit]})).await {
            Ok(_) => edits += 1,
            Err(failure) => errors += &failure.message,
        }
    }
    editor.join().unwrap();
    let text = folder.text("a.txt");
    assert!(text.ends_with(&format!("version {VERSIONS}\n")), "{edits} edits: {text}");
    // If the program saves twice during one swap, a version is kept beside the file, and the error names it.
    let unnamed = |name: &String| name != "a.txt" && !errors.contains(name.as_str());
    assert!(!folder.names(".").iter().any(unnamed), "{:?}", folder.names("."));
}
