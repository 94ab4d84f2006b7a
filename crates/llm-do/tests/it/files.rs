//! Projects from files, through the library.

use llm_do::approval::ApprovalMode;
use llm_do::event::Status;
use llm_do::project::{LoadedProjectExt, RecordedFiles, Severity};
use llm_do::record::ChangeKind;
use llm_do_testing::{TestDir, TestRun};
use serde_json::json;

const NEWSROOM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/newsroom");

#[tokio::test]
async fn the_newsroom_runs_its_entry_and_hands_typed_work_to_another_agent() {
    let project = llm_do::load(NEWSROOM).unwrap();
    assert!(project.notices.0.is_empty(), "{}", project.notices);
    let runtime = project.runtime().approval_mode(ApprovalMode::RejectAll).build().unwrap();
    let args = project.args.clone().unwrap();
    let run = TestRun::of(runtime.run(project.entry.clone(), serde_json::Value::Object(args)).await);
    assert_eq!(&*run.answer(), "Ships came in with the morning tide.\nThe cranes were busy until noon.");
    let trace = run.report().trace();
    assert_eq!(trace.calls[0].calls[0].input.value(), &json!({"topic": "the harbour"}));
    let events = run.events();
    let prompt = events.iter().find_map(|event| match &event.body {
        llm_do::event::EventBody::ModelRequest { messages, .. } if &*event.call.agent == "reporter" => {
            Some(messages[0].text())
        }
        _ => None,
    });
    assert_eq!(prompt.as_deref(), Some("Write 2 lines about the harbour."));
}

#[test]
fn a_lone_agent_file_and_a_directory_are_projects_and_older_spellings_are_read_with_a_notice() {
    let worker = "---\nname: main\nmodel: test:echo\nallow_workers: [\"*\"]\n---\nSay it again.\n";
    let folder = TestDir::with_files(&[("main.worker", worker)]);
    for path in [&*folder.join("main.worker"), folder.path()] {
        let project = llm_do::load(path).unwrap();
        let [notice] = &project.notices.0[..] else { panic!("{}", project.notices) };
        assert_eq!((notice.severity, notice.line), (Severity::Notice, Some(4)));
        let report =
            project.runtime().build().unwrap().run(project.entry.clone(), "hello").blocking().unwrap();
        assert_eq!((&*report.text(), report.status), ("hello", Status::Done));
    }
}

#[test]
fn recorded_files_take_the_place_of_those_on_disk() {
    let agent = |name: &str, text: &str| format!("---\nname: {name}\nmodel: test:echo\n---\n{text}\n");
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n";
    let folder = TestDir::with_files(&[("project.yaml", manifest), ("main.agent", &agent("main", "Old."))]);
    let bundle = llm_do::load(folder.path()).unwrap().bundle();
    folder.write("main.agent", agent("main", "New."));
    folder.write("other.agent", agent("other", "New."));
    let changes = llm_do::load(folder.path()).unwrap().bundle().changes_since(&bundle);
    let expected = [("main.agent", ChangeKind::Modified), ("other.agent", ChangeKind::Added)];
    assert_eq!(changes, expected.map(|(path, kind)| (path.to_owned(), kind)).into());

    let recorded = RecordedFiles::new(folder.path(), &bundle);
    let project = llm_do::loader(folder.path()).recorded_files(recorded).load().unwrap();
    let instructions: Vec<String> = project
        .project
        .outline()
        .into_iter()
        .filter_map(|outline| Some(outline.agent?.instructions.to_string()))
        .collect();
    assert_eq!((instructions, project.bundle()), (vec!["Old.".to_owned()], bundle));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_place() {
    let folder = TestDir::new();
    folder.write("project.toml", "version = 1\nagent_files = [\"a.agent\", \"b.agent\"]\n[entry]\nagent = \"mian\"\n[runtime]\nmax_dept = 3\n");
    folder.write("a.agent", "---\nname: main\ntoolset: [x]\n---\n");
    folder.write("b.agent", "---\nname: helper\ntoolsets: [man]\nprompt: \"{{ inptu }}\"\n---\n");
    let words = llm_do::load(folder.path()).err().unwrap().to_string();
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
}

/// A project in a folder of its own, which is removed at the end.
struct Folder(TestDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(TestDir::with_files(files))
    }

    /// Loads the project, with a manifest that has one more section.
    fn load(&self, toolsets: &str) -> Result<llm_do::project::LoadedProject, String> {
        let agents = r#""agent_files": ["narrow.agent", "wide.agent"]"#;
        let manifest =
            format!(r#"{{"version": 1, "entry": {{"agent": "narrow"}}, {agents}, "toolsets": {toolsets}}}"#);
        self.0.write("project.json", manifest);
        llm_do::load(self.0.path()).map_err(|problems| problems.to_string())
    }
}

async fn call_as(
    project: &llm_do::project::LoadedProject,
    agent: &str,
    tool: &str,
    path: &str,
) -> Result<String, String> {
    let runtime = project.runtime().approval_mode(ApprovalMode::ApproveAll).build().unwrap();
    let input = match tool {
        tool if tool.ends_with("write_file") => json!({"path": path, "content": "new"}),
        _ => json!({"path": path}),
    };
    match runtime.run(tool, input).as_agent(agent).await {
        Ok(report) => Ok(report.text().to_string()),
        Err(error) => Err(error.report.failure.as_ref().unwrap().message.clone()),
    }
}

#[tokio::test]
async fn settings_of_one_agent_belong_to_it_alone() {
    let narrow = "---\nname: narrow\nmodel: test:echo\ntoolsets:\n  - filesystem_project: {root: docs, read_only: true, suffixes: [.md]}\n---\n";
    let wide = "---\nname: wide\nmodel: test:echo\ntoolsets: [filesystem_project]\n---\n";
    let files = [
        ("narrow.agent", narrow),
        ("wide.agent", wide),
        ("docs/a.md", "doc"),
        ("docs/b.txt", "b"),
        ("c.md", "c"),
    ];
    let folder = Folder::new(&files);
    let project = folder.load("{}").unwrap();
    assert!(call_as(&project, "narrow", "read_file", "a.md").await.unwrap().contains("doc"));
    for path in ["b.txt", "../c.md", "docs/a.md"] {
        assert!(call_as(&project, "narrow", "read_file", path).await.is_err(), "{path}");
    }
    assert!(call_as(&project, "narrow", "write_file", "a.md").await.is_err());
    assert!(call_as(&project, "wide", "read_file", "docs/b.txt").await.is_ok());
    call_as(&project, "wide", "write_file", "docs/b.txt").await.unwrap();
    assert_eq!(folder.0.read("docs/b.txt"), "new");
}

#[test]
fn settings_of_an_agent_that_cannot_hold_are_problems_of_its_line() {
    let wide = "---\nname: wide\nmodel: test:echo\n---\n";
    let section =
        r#"{"docs": {"toolset": "filesystem_project", "settings": {"root": "docs", "read_only": true}}}"#;
    for (entry, problem) in [
        ("filesystem_project: {readonly: true}", "unknown field `readonly`"),
        ("filesystem_project: {root: ../..}", "lies outside"),
        ("filesystem_project: {root: missing}", "missing"),
        ("filesystem_project: {max_list: 0}", "`max_list` is 0, expected 1 to 100000"),
        ("filesystem_project_ro: {read_only: false}", "is read-only by its name"),
        ("docs: {read_only: false}", "`read_only` allows more than the manifest does for `docs`"),
        ("docs: {root: .}", "lies outside"),
    ] {
        let narrow = format!("---\nname: narrow\nmodel: test:echo\ntoolsets:\n  - {entry}\n---\n");
        let files = [("narrow.agent", narrow.as_str()), ("wide.agent", wide), ("docs/a.md", "doc")];
        let folder = Folder::new(&files);
        let words = folder.load(section).err().unwrap_or_else(|| panic!("{entry} was accepted"));
        assert!(words.contains(problem), "{problem:?} is missing in:\n{words}");
        assert!(words.contains("narrow.agent, line 5"), "{words}");
    }
}

#[tokio::test]
async fn the_files_of_the_project_are_protected_under_whatever_name() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n---\n";
    let manifest = r#"{"version": 1, "entry": {"agent": "main"}, "agent_files": ["prompts/main.md"],
        "generated_agents_dir": "made", "mcp_servers": {"s": {"command": "node", "args": ["server.js"]}}}"#;
    let files = [
        ("team.json", manifest),
        ("prompts/main.md", agent),
        ("server.js", ""),
        ("notes.md", ""),
        ("made/x", ""),
    ];
    let folder = Folder::new(&files);
    let project = llm_do::loader(folder.0.join("team.json"))
        .trust(llm_do::project::TrustPolicy::All)
        .load()
        .unwrap_or_else(|problems| panic!("{problems}"));
    let runtime = project.runtime().build().unwrap();
    let judged = async |path: &str| {
        let input = json!({"path": path, "content": "new"});
        runtime.run("write_file", input).as_agent("main").judge().await
    };
    for path in ["team.json", "prompts/main.md", "PROMPTS/MAIN.md", "server.js", "made/new.txt"] {
        let words = format!("{:?}", judged(path).await);
        assert!(words.contains("is protected"), "{path}: {words}");
    }
    let words = format!("{:?}", judged("notes.md").await);
    assert!(!words.contains("is protected"), "{words}");
}

/// The files that a page of the guide shows, by `file=` behind the language of a block.
fn shown_files(page: &'static str) -> Vec<(&'static str, &'static str)> {
    let blocks = page.split("```").skip(1).step_by(2);
    let named = blocks.filter_map(|block| {
        let (words, text) = block.split_once('\n')?;
        Some((words.split_once(" file=")?.1, text))
    });
    named.collect()
}

#[tokio::test]
async fn the_example_of_the_guide_does_what_the_guide_says() {
    let mut files = shown_files(include_str!("../../../../docs/guide/files.md"));
    assert_eq!(files.len(), 3, "{files:?}");
    files.extend([("docs/a.md", "doc"), ("drafts/b.md", "draft"), ("drafts/c.txt", "draft")]);
    let folder = Folder::new(&files);
    let project = llm_do::load(folder.0.path()).unwrap_or_else(|problems| panic!("{problems}"));
    let can = async |agent, tool, path| call_as(&project, agent, tool, path).await.is_ok();
    assert!(
        can("writer", "docs_read_file", "a.md").await && can("writer", "drafts_read_file", "c.txt").await
    );
    assert!(
        !can("writer", "docs_write_file", "a.md").await && can("writer", "drafts_write_file", "b.md").await
    );
    assert!(
        can("reader", "drafts_read_file", "b.md").await && !can("reader", "drafts_read_file", "c.txt").await
    );
    assert!(!can("reader", "drafts_write_file", "b.md").await);
}
