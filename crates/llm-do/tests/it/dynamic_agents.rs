//! Agents that create agents, in projects from files.

use std::fs;
use std::path::Path;

use llm_do::approval::ApprovalMode;
use llm_do::call::FailureKind;
use llm_do::event::{EventBody, Status};
use llm_do::project::{LoadedProject, LoadedProjectExt};
use llm_do::testing::{Script, ScriptedReply, asks, contains, instructed, says};
use llm_do::tools::{AgentDefaults, NewAgent, create_agent, create_agent_within};
use llm_do::{AgentSpec, CallContext, Failure, Project, Runtime, RuntimeExt, tool};
use llm_do_testing::{Approvals, TestDir, TestRun, deny, once};
use serde_json::{Value, json};

/// A project in a folder of its own.
struct Folder(TestDir);

impl Folder {
    fn new(main: &str) -> Self {
        let manifest = r#"{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}"#;
        Self(TestDir::with_files(&[("project.json", manifest), ("main.agent", main)]))
    }

    fn write(&self, path: &str, text: &str) {
        self.0.write(path, text);
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn generated(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("agents/generated")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn load(&self) -> LoadedProject {
        llm_do::loader(self.0.path())
            .trust(llm_do::project::TrustPolicy::All)
            .load()
            .unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn runtime(&self, approvals: &Approvals, replies: impl IntoIterator<Item = ScriptedReply>) -> Runtime {
        self.load().runtime().model(Script::new(replies)).approver(approvals.clone()).build().unwrap()
    }

    async fn run(&self, approvals: &Approvals, replies: impl IntoIterator<Item = ScriptedReply>) -> TestRun {
        TestRun::of(self.runtime(approvals, replies).run("main", "go").await)
    }
}

const MAIN: &str = "---\nname: main\ntoolsets: [dynamic_agents, filesystem_project_ro]\n---\nYou are main.\n";

fn wants(arguments: Value) -> ScriptedReply {
    asks("agent_create", arguments)
}

fn poet() -> Value {
    json!({"name": "poet", "instructions": "You are a poet.", "description": "Writes verses"})
}

#[tokio::test]
async fn a_created_agent_can_be_called_at_once_and_belongs_to_the_project_from_then_on() {
    let folder = Folder::new(MAIN);
    let approvals = Approvals::new([once()]);
    let run = folder
        .run(
            &approvals,
            [
                wants(poet()),
                asks("agent_call", json!({"agent": "poet", "input": "the sea"})),
                says("waves").when(instructed("You are a poet.").and(contains("sea"))),
                // The creator may also name it like a tool.
                asks("poet", json!({"input": "the land"})),
                says("hills").when(instructed("You are a poet.").and(contains("land"))),
                says("done"),
            ],
        )
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    assert_eq!(run.tool_results()[1..], ["waves", "hills"]);
    let [request] = &approvals.requests()[..] else { panic!("{:?}", approvals.requests()) };
    let text = folder.read("agents/generated/poet.agent").unwrap();
    assert_eq!(request.preview.as_deref(), Some(text.as_str()), "the whole definition is shown");
    assert_eq!(
        text,
        "---\nname: poet\ngenerated: true\ndescription: Writes verses\n---\n\nYou are a poet.\n"
    );
    assert_eq!(request.description, "create the agent `poet` in agents/generated/poet.agent");

    let project = folder.load();
    assert!(project.project.agents().any(|agent| agent.as_str() == "poet"));
    assert_eq!(project.entry.as_str(), "main");
    let runtime = project.runtime().model(Script::new([says("again")])).build().unwrap();
    assert_eq!(&*runtime.run("poet", "x").await.unwrap().text(), "again");
}

#[tokio::test]
async fn what_is_denied_is_not_created() {
    let folder = Folder::new(MAIN);
    let run = folder.run(&Approvals::new([deny("no poets")]), [wants(poet()), says("well")]).await;
    assert_eq!(run.failure_of("agent_create").kind, FailureKind::Denied);
    assert_eq!(folder.generated(), [""; 0]);
    // A rule cannot take the question away: an agent file is protected.
    let folder = Folder::new(&MAIN.replace("---\nYou", "approval: {agent_create: pre_approved}\n---\nYou"));
    let run = folder.run(&Approvals::new([deny("no")]), [wants(poet()), says("well")]).await;
    assert_eq!(run.failure_of("agent_create").kind, FailureKind::Denied);
}

#[tokio::test]
async fn a_generated_agent_is_replaced_after_its_diff_was_seen_and_its_text_is_kept() {
    let folder = Folder::new(MAIN);
    let critic = json!({"name": "poet", "instructions": "You are a critic.", "description": "Writes verses"});
    let approvals = Approvals::new([once(), once(), once()]);
    let run = folder
        .run(
            &approvals,
            [
                wants(poet()),
                wants(critic.clone()),
                asks("agent_call", json!({"agent": "poet", "input": "x"})),
                says("judged").when(instructed("You are a critic.")),
                wants(poet()),
                says("done"),
            ],
        )
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    assert_eq!(run.tool_results()[2], "judged");
    let preview = approvals.requests()[1].preview.clone().unwrap();
    assert!(preview.contains("-You are a poet.\n+You are a critic."), "{preview}");
    assert_eq!(folder.generated(), ["poet.agent", "poet.agent.old-1", "poet.agent.old-2"]);
    assert!(folder.read("agents/generated/poet.agent.old-1").unwrap().contains("a poet"));
    assert!(folder.read("agents/generated/poet.agent.old-2").unwrap().contains("a critic"));
    assert!(folder.read("agents/generated/poet.agent").unwrap().contains("a poet"));
    folder.load();
}

#[tokio::test]
async fn an_agent_that_a_person_wrote_or_locked_is_never_replaced() {
    let folder = Folder::new(MAIN);
    folder.write("poet.agent", "---\nname: poet\n---\nYou are mine.\n");
    let approvals = Approvals::new([]);
    let run = folder.run(&approvals, [wants(poet()), says("well")]).await;
    assert!(run.failure_of("agent_create").message.contains("written by a person"), "{run:?}");
    fs::remove_file(folder.0.join("poet.agent")).unwrap();
    let locked = "---\nname: poet\ngenerated: true\nlocked: true\n---\nYou stay.\n";
    folder.write("agents/generated/poet.agent", locked);
    let run = folder.run(&approvals, [wants(poet()), says("well")]).await;
    assert!(run.failure_of("agent_create").message.contains("locked"), "{run:?}");
    assert_eq!(folder.read("agents/generated/poet.agent").unwrap(), locked);
    assert_eq!(approvals.requests().len(), 0, "nobody is asked about what cannot be");
}

/// Creates one agent as `main`, whose header is given, and returns what went wrong.
async fn refusal(header: &str, new: Value) -> Option<String> {
    let folder = Folder::new(&format!("---\nname: main\n{header}---\nYou are main.\n"));
    folder.write("other.agent", "---\nname: other\n---\nOther.\n");
    let run = folder.run(&Approvals::new([once()]), [wants(new), says("done")]).await;
    let result = run.results().remove(0);
    assert_eq!(folder.generated().is_empty(), result.is_error, "{}", result.text);
    folder.load();
    result.is_error.then(|| result.text.to_string())
}

#[tokio::test]
async fn an_agent_is_given_only_what_its_creator_holds() {
    let with = |fields: Value| {
        let mut new = poet();
        new.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        new
    };
    let dynamic = "toolsets: [dynamic_agents]\n";
    for (header, new, words) in [
        (
            dynamic,
            with(json!({"toolsets": ["filesystem_project"]})),
            "does not hold the toolset `filesystem_project`",
        ),
        (dynamic, with(json!({"toolsets": ["nothing"]})), "there is no toolset or agent `nothing`"),
        (dynamic, with(json!({"tools": ["rm"]})), "`rm`, which does not exist"),
        (dynamic, with(json!({"name": "filesystem_cwd"})), "built-in toolset"),
        (dynamic, with(json!({"name": "../x"})), "name"),
        (dynamic, with(json!({"name": "agent_list"})), "used by both a tool and an agent"),
        (dynamic, with(json!({"name": "final_answer"})), "used by both a tool and an agent"),
        (dynamic, with(json!({"instructions": "x".repeat(300_000)})), "more than 262144"),
        (
            "toolsets: [dynamic_agents]\napproval: {agent_call: ask}\n",
            with(json!({"toolsets": ["other"]})),
            "may not call the agent `other` freely",
        ),
        (dynamic, with(json!({"instructions": " "})), "`instructions` is empty"),
        (dynamic, with(json!({"model": "nobody:x"})), "nobody"),
        (dynamic, with(json!({"input_schema": {"type": "string"}})), "`input_schema`"),
        ("toolsets: [dynamic_agents]\nagents: [other]\n", poet(), "does not permit to call `poet`"),
        ("toolsets: [dynamic_agents]\nagents: [\"poe*\"]\n", with(json!({"toolsets": ["other"]})), "other"),
        (
            "toolsets: [dynamic_agents]\nagents: [\"poe*\"]\n",
            with(json!({"agents": ["*"]})),
            "must name no others",
        ),
    ] {
        let refused = refusal(header, new.clone()).await;
        let refused = refused.unwrap_or_else(|| panic!("{header} {new} was created"));
        assert!(refused.contains(words), "{header} {new}: {refused}");
    }
    for (header, new) in [
        (
            "toolsets: [dynamic_agents, filesystem_project]\n",
            with(json!({"toolsets": ["filesystem_project", "other", "poet"]})),
        ),
        (
            "toolsets: [dynamic_agents]\nagents: [\"poe*\", \"o*\"]\n",
            with(json!({"agents": ["other", "o*"]})),
        ),
    ] {
        assert_eq!(refusal(header, new.clone()).await, None, "{header} {new}");
    }
}

#[tokio::test]
async fn a_rule_about_an_agent_holds_for_whatever_is_created() {
    let main = "---\nname: main\ntoolsets: [dynamic_agents, other]\napproval: {other: blocked}\n---\nYou are main.\n";
    let folder = Folder::new(main);
    folder.write("other.agent", "---\nname: other\n---\nOther.\n");
    let new = json!({"name": "poet", "instructions": "You are a poet.", "toolsets": ["dynamic_agents"]});
    let through = asks("agent_call", json!({"agent": "other", "input": "x"}));
    let run = folder
        .run(
            &Approvals::new([once()]),
            [
                wants(new),
                asks("agent_call", json!({"agent": "poet", "input": "x"})),
                through.when(instructed("You are a poet.")).once(),
                says("tried").when(instructed("You are a poet.")),
                says("done"),
            ],
        )
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    let events = run.events();
    let asked = events.iter().filter(|event| matches!(event.body, EventBody::ModelRequest { .. }));
    let asked: Vec<&str> = asked.map(|event| &*event.call.agent).collect();
    assert!(asked.contains(&"poet") && !asked.contains(&"other"), "{asked:?}");
    assert!(folder.read("agents/generated/poet.agent").unwrap().contains("other: blocked"));
}

#[tokio::test]
async fn agents_that_are_called_by_a_tool_do_what_they_may_do() {
    let main = "---\nname: main\ntoolsets: [dynamic_agents, filesystem_project]\n---\nYou are main.\n";
    let folder = Folder::new(main);
    let new = json!({"name": "poet", "instructions": "You are a poet.", "toolsets": ["filesystem_project"]});
    let run = folder
        .run(
            &Approvals::new([once(), once()]),
            [
                wants(new),
                asks("agent_call", json!({"agent": "poet", "input": "x"})),
                asks("write_file", json!({"path": "verse.txt", "content": "waves"}))
                    .when(instructed("You are a poet."))
                    .once(),
                says("written").when(instructed("You are a poet.")),
                says("done"),
            ],
        )
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    assert_eq!(folder.read("verse.txt").as_deref(), Some("waves"));
}

#[tokio::test]
async fn a_file_that_a_person_put_among_the_generated_ones_is_theirs() {
    let folder = Folder::new(MAIN);
    folder.write("agents/generated/poet.agent", "---\nname: poet\n---\nYou are mine.\n");
    let run = folder.run(&Approvals::new([once()]), [wants(poet()), says("well")]).await;
    assert!(run.failure_of("agent_create").message.contains("never replaced"), "{run:?}");
    // What cannot be read cannot say that it is not locked.
    folder.write(
        "agents/generated/verse.agent",
        "---\nname: verse\ngenerated: true\ntoolsets: [gone]\nlocked: true\n---\nx\n",
    );
    fs::remove_file(folder.0.join("agents/generated/poet.agent")).unwrap();
    assert!(llm_do::load(folder.0.path()).is_err());
}

#[tokio::test]
async fn settings_strict_rules_and_narrowing_of_the_creator_go_into_the_file() {
    let main = "---\nname: main\ntoolsets:\n  - dynamic_agents\n  - filesystem_project: {root: docs, prefix: d_}\n\
                agents: [\"poe*\"]\nattachment_policy: {max_attachments: 2, allowed_suffixes: [.png]}\napproval: {d_write_file: blocked, d_read_file: ask, agent_list: pre_approved, agent_call: ask, d_edit*: ask}\n\
                ---\nYou are main.\n";
    let folder = Folder::new(main);
    folder.write("docs/a.txt", "a");
    let mut new = poet();
    new["toolsets"] = json!(["filesystem_project"]);
    let run = folder.run(&Approvals::new([once()]), [wants(new), says("done")]).await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    let text = folder.read("agents/generated/poet.agent").unwrap();
    let project = folder.load();
    let outline = project.project.outline();
    let poet =
        outline.iter().find(|outline| outline.agent.as_ref().unwrap().name.as_str() == "poet").unwrap();
    let spec = poet.agent.as_ref().unwrap();
    assert_eq!(spec.toolsets[0].settings, json!({"root": "docs", "prefix": "d_"}), "{text}");
    assert_eq!(spec.agents, ["poe*"]);
    assert_eq!(
        (spec.attachment_policy.max_attachments, spec.attachment_policy.allowed_suffixes.len()),
        (2, 1)
    );
    let rules: Vec<&str> = spec.approval.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(rules, ["d_edit*", "d_read_file", "d_write_file"], "{text}");
}

#[tokio::test]
async fn agents_are_listed_and_called_as_far_as_the_caller_may_call_them() {
    let header = "---\nname: main\ntoolsets: [dynamic_agents]\nagents: [typed, main]\n---\nYou are main.\n";
    let folder = Folder::new(header);
    folder.write("other.agent", "---\nname: other\n---\nOther.\n");
    let typed = "---\nname: typed\ninput_schema: {type: object, properties: {n: {type: integer}}, required: [n]}\n---\nYou count.\n";
    folder.write("typed.agent", typed);
    let run = folder
        .run(
            &Approvals::new([]),
            [
                asks("agent_list", json!({})),
                asks("agent_call", json!({"agent": "other", "input": "x"})),
                asks("agent_call", json!({"agent": "typed", "input": {"n": 3}})),
                says("three").when(instructed("You count.")),
                asks("agent_call", json!({"agent": "agent_list", "input": "x"})),
                says("done"),
            ],
        )
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    let results = run.tool_results();
    let list: Value = serde_json::from_str(&results[0]).unwrap();
    let names: Vec<&str> =
        list["agents"].as_array().unwrap().iter().map(|agent| agent["agent"].as_str().unwrap()).collect();
    assert_eq!(names, ["main", "typed"]);
    assert_eq!(list["agents"][1]["input"]["required"], json!(["n"]));
    assert!(results[1].contains("`other` is not allowed for `main`"), "{}", results[1]);
    assert_eq!(results[2], "three");
    assert!(results[3].contains("there is no agent `agent_list`"), "{}", results[3]);
}

#[tokio::test]
async fn a_program_creates_agents_by_name_once_or_by_force() {
    let folder = Folder::new(MAIN);
    let project = folder.load();
    let runtime = project.runtime().model(Script::new([says("hi")])).build().unwrap();
    let new = NewAgent::new("poet", "You are a poet.");
    let defaults: AgentDefaults = serde_json::from_value(json!({
        "model": "test:echo", "toolsets": ["filesystem_project_ro"], "access": "read", "limits": {"turns": 2}
    }))
    .unwrap();
    let created = create_agent(&runtime, &new, &defaults, false).unwrap();
    assert_eq!(created.file, Path::new("agents/generated/poet.agent"));
    assert_eq!(folder.read("agents/generated/poet.agent").unwrap(), created.definition);
    for line in ["model: test:echo", "access: read", "turns: 2", "- filesystem_project_ro"] {
        assert!(created.definition.contains(line), "{}", created.definition);
    }
    assert_eq!(&*runtime.run("poet", "echo").await.unwrap().text(), "echo");
    let again = create_agent(&runtime, &new, &defaults, false).unwrap_err();
    assert!(again.message.contains("already"), "{again}");
    folder.write("agents/generated/poet.agent", "---\nname: poet\ngenerated: true\nlocked: true\n---\nx\n");
    let locked = create_agent(&runtime, &new, &defaults, false).unwrap_err();
    assert!(locked.message.contains("locked"), "{locked}");
    let forced = create_agent(&runtime, &new, &defaults, true).unwrap();
    assert_eq!(forced.replaced.as_deref(), Some(Path::new("agents/generated/poet.agent.old-1")));
    let written = create_agent(&runtime, &NewAgent::new("main", "x"), &defaults, true).unwrap_err();
    assert!(written.message.contains("written by a person"), "{written}");
    assert_eq!(folder.generated(), ["poet.agent", "poet.agent.old-1"], "what cannot be added leaves nothing");
}

/// Creates a poet from code.
#[tool(access = "admin", approval = "pre_approved")]
async fn make_poet(call: CallContext, toolsets: Vec<String>) -> Result<String, Failure> {
    let new = toolsets.into_iter().fold(NewAgent::new("poet", "You are a poet."), NewAgent::toolset);
    let created = create_agent_within(&call, &new, &AgentDefaults::default(), false).await?;
    Ok(created.file.display().to_string())
}

#[tokio::test]
async fn code_of_a_tool_creates_agents_through_the_gate() {
    let folder = Folder::new(MAIN);
    let workshop = || folder.load().workshop();
    let main = AgentSpec::new("main", "You are main.").tool("make_poet");
    let run = |approvals: Approvals, toolsets: Value| {
        let project = Project::builder().agent(main.clone()).tool(make_poet).build().unwrap();
        let replies = [asks("make_poet", json!({"toolsets": toolsets})), says("done")];
        let builder =
            Runtime::standard(project).model(Script::new(replies)).approver(approvals).provide(workshop());
        let runtime = builder.build().unwrap();
        async move { (TestRun::of(runtime.run("main", "go").await), runtime) }
    };
    let (denied, _) = run(Approvals::new([deny("no")]), json!([])).await;
    assert!(denied.tool_results()[0].contains("denied"), "{denied:?}");
    let approvals = Approvals::new([once()]);
    let (held, _) = run(approvals.clone(), json!(["filesystem_project"])).await;
    assert!(held.tool_results()[0].contains("does not hold"), "{held:?}");
    assert_eq!((approvals.requests().len(), folder.generated().len()), (0, 0));
    let (created, runtime) = run(approvals.clone(), json!([])).await;
    assert_eq!(created.tool_results(), ["agents/generated/poet.agent"]);
    let shown = approvals.requests()[0].arguments.value()["definition"].as_str().unwrap().to_owned();
    assert_eq!(folder.read("agents/generated/poet.agent").unwrap(), shown);
    assert!(runtime.agents().iter().any(|agent| agent.definition.name.as_str() == "poet"));
}

#[tokio::test]
async fn an_agent_that_is_created_meanwhile_is_no_change_of_the_project() {
    let folder = Folder::new(MAIN);
    let pin = async || {
        let run = folder.run(&Approvals::new([]), [says("done")]).await;
        run.events().iter().find_map(|event| match &event.body {
            EventBody::RunStarted(start) => Some(start.pin),
            _ => None,
        })
    };
    let before = pin().await;
    folder.write("agents/generated/poet.agent", "---\nname: poet\ngenerated: true\n---\nYou are a poet.\n");
    assert_eq!(pin().await, before);
    folder.write("poet2.agent", "---\nname: poet2\n---\nYou are a poet.\n");
    assert_ne!(pin().await, before);
}

#[tokio::test]
async fn a_directory_that_leads_out_of_the_project_is_not_written_to() {
    let folder = Folder::new(MAIN);
    let outside = TestDir::new();
    fs::create_dir_all(folder.0.join("agents")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.0.join("agents/generated")).unwrap();
    let runtime = folder.runtime(&Approvals::new([once()]), [wants(poet()), says("well")]);
    let run = TestRun::of(runtime.run("main", "go").approval_mode(ApprovalMode::ApproveAll).await);
    assert!(run.failure_of("agent_create").message.contains("leads out"), "{run:?}");
    assert_eq!((run.status(), fs::read_dir(outside.path()).unwrap().count()), (Status::Done, 0));
}

#[tokio::test]
async fn what_is_manual_only_for_the_creator_is_so_for_what_it_creates() {
    let main = "---\nname: main\ntoolsets: [dynamic_agents, filesystem_project]\nmanual_only: [write_file, 'edit_*']\n---\nYou are main.\n";
    let folder = Folder::new(main);
    let approvals = Approvals::new([once()]);
    let new =
        json!({"name": "clerk", "instructions": "You are a clerk.", "toolsets": ["filesystem_project"]});
    let write = asks("write_file", json!({"path": "a.txt", "content": "x"}));
    let run = folder
        .run(
            &approvals,
            [
                write.when(instructed("You are a clerk")),
                says("kept from it").when(instructed("You are a clerk")),
                wants(new),
                asks("agent_call", json!({"agent": "clerk", "input": "write"})),
                says("done"),
            ],
        )
        .await;
    let file = folder.read("agents/generated/clerk.agent").unwrap();
    assert!(file.contains("manual_only") && file.contains("write_file"), "{file}");
    assert_eq!(run.failure_of("write_file").kind, FailureKind::Blocked);
    assert_eq!(folder.read("a.txt"), None);
}

/// A project in which `main` may call the poet, and a clerk exists besides.
fn with_poet_and_clerk(main: &str) -> Folder {
    let folder = Folder::new(&format!("---\nname: main\n{main}\nagents: [poet]\n---\nYou are main.\n"));
    folder.write("poet.agent", "---\nname: poet\n---\nYou are a poet.\n");
    folder.write("clerk.agent", "---\nname: clerk\n---\nYou are a clerk.\n");
    folder
}

#[tokio::test]
async fn an_agent_can_be_given_the_tool_that_calls_agents_without_the_one_that_creates_them() {
    let folder = with_poet_and_clerk("tools: [agent_call]");
    let run = folder
        .run(
            &Approvals::new([]),
            [
                asks("agent_call", json!({"agent": "poet", "input": "the sea"})),
                says("waves").when(instructed("You are a poet.")),
                asks("agent_call", json!({"agent": "clerk", "input": "the sea"})),
                asks("agent_call", json!({"agent": "read_fd", "input": "the sea"})),
                wants(poet()),
                says("done"),
            ],
        )
        .await;
    let results = run.tool_results();
    assert_eq!(results[0], "waves");
    assert!(results[1].starts_with("`clerk` is not allowed for `main`"), "{results:?}");
    assert!(results[2].starts_with("there is no agent `read_fd`"), "{results:?}");
    assert!(results[3].starts_with("there is no tool or agent `agent_create`"), "{results:?}");
}

#[tokio::test]
async fn a_call_through_the_single_tool_asks_where_the_manifest_says_so() {
    let folder = with_poet_and_clerk("tools: [agent_call]");
    folder.write(
        "project.json",
        r#"{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"],
            "runtime": {"agent_calls_require_approval": true}}"#,
    );
    let approvals = Approvals::new([deny("not today")]);
    let call = asks("agent_call", json!({"agent": "poet", "input": "the sea"}));
    let run = folder.run(&approvals, [call, says("done")]).await;
    assert!(run.tool_results()[0].contains("denied: not today"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn the_older_names_of_the_single_tools_are_read_with_a_notice() {
    let folder = with_poet_and_clerk("tools: [worker_call, worker_create]\napproval: {worker_call: ask}");
    let project = folder.load();
    let notices: Vec<String> = project.notices.notices().map(|notice| notice.message.clone()).collect();
    assert_eq!(
        notices,
        ["`worker_call` is read as `agent_call`", "`worker_create` is read as `agent_create`"]
    );
    let spec = project.project.outline();
    let is_main = |outline: &&llm_do::project::Outline| {
        outline.agent.as_ref().is_some_and(|agent| agent.name == "main")
    };
    let main = spec.iter().find(is_main).unwrap();
    let names: Vec<&str> = main.callables.iter().map(|callable| callable.definition.name.as_str()).collect();
    assert!(names.contains(&"agent_call") && names.contains(&"agent_create"), "{names:?}");
    assert!(!names.contains(&"agent_list"), "{names:?}");
}

/// An agent that calls `write_file` by another name, under which it is blocked.
const ALIASED: &str = "---\nname: main\ntoolsets: [dynamic_agents, process, filesystem_project]\n\
    tools: [{name: write_file, alias: read_notes}, {name: edit_file, access: admin}]\n\
    approval: {read_notes: blocked}\nmanual_only: [read_notes]\n---\nYou are main.\n";

#[tokio::test]
async fn a_tool_that_is_blocked_by_its_alias_is_blocked_for_created_agents() {
    let folder = Folder::new(ALIASED);
    let approvals = Approvals::new([once()]);
    let new = json!({"name": "poet", "instructions": "You are a poet.", "toolsets": ["filesystem_project"]});
    let write = asks("write_file", json!({"path": "a.txt", "content": "x"}));
    let run = folder
        .run(
            &approvals,
            [
                wants(new),
                asks("agent_call", json!({"agent": "poet", "input": "x"})),
                write.when(instructed("You are a poet.")),
                says("tried").when(instructed("You are a poet.")),
                says("done"),
            ],
        )
        .await;
    assert_eq!(run.failure_of("write_file").kind, FailureKind::Blocked, "{run:?}");
    assert_eq!(folder.read("a.txt"), None);
    let text = folder.read("agents/generated/poet.agent").unwrap();
    assert!(text.contains("approval:\n  filesystem_project.write_file: blocked\n"), "{text}");
    assert!(text.contains("manual_only:\n- filesystem_project.write_file\n"), "{text}");
    assert!(text.contains("tools:\n- name: edit_file\n  access: admin\n"), "{text}");
    let [request] = &approvals.requests()[..] else { panic!("{:?}", approvals.requests()) };
    assert_eq!(request.preview.as_deref(), Some(text.as_str()), "the rules are part of what is approved");
}

#[tokio::test]
async fn a_tool_that_is_blocked_by_its_alias_is_blocked_for_forks_and_new_instances() {
    let main = ALIASED.replace("manual_only: [read_notes]\n", "");
    for (name, start) in [
        ("forked", asks("fork", json!({"prompts": ["write it"]}))),
        ("spawned", asks("spawn", json!({"prompt": "write it"}))),
    ] {
        let folder = Folder::new(&main);
        let arguments = json!({"path": "a.txt", "content": "x"});
        let replies = [start, asks("read_notes", arguments), says("tried"), says("done")];
        let run = folder.run(&Approvals::new([]), replies).await;
        assert_eq!(&*run.answer(), "done", "{name}: {run:?}");
        assert_eq!(run.failure_of("read_notes").kind, FailureKind::Blocked, "{name}: {run:?}");
        assert_eq!(folder.read("a.txt"), None);
    }
}
