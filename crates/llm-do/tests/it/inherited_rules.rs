//! Rules follow rights: what is blocked for an agent is blocked for whatever it creates, whatever it calls its tools.
//!
//! Random projects with aliases, prefixes, globs and settings are written to files. `main` creates an agent, which
//! creates another one if it can. What each of them may do is read from the runtime, and compared with what an oracle
//! says about `main` from the text of its file alone.
//!
//! `LLM_DO_INHERITED_RULES` sets the number of projects, `LLM_DO_SEED` the first seed.

mod oracle;
mod random;

use std::fs;
use std::path::Path;

use llm_do::Runtime;
use llm_do::approval::{ApprovalMode, VerdictKind};
use llm_do::call::FailureKind;
use llm_do::project::{LoadedProject, LoadedProjectExt};
use llm_do_testing::Chance;
use serde_json::{Value, json};

use self::oracle::{Creator, HeldTool};
use self::random::RandomProject;

/// What came of the projects, so that the test cannot pass because nothing was created.
#[derive(Debug, Default)]
struct Tally {
    created: usize,
    grandchildren: usize,
    blocked: usize,
    blocked_by_alias: usize,
    asked: usize,
    kept_by_access: usize,
    manual_only: usize,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test]
async fn what_is_blocked_for_an_agent_is_blocked_for_whatever_it_creates() {
    let (projects, first) = (setting("LLM_DO_INHERITED_RULES", 200), setting("LLM_DO_SEED", 0));
    let mut tally = Tally::default();
    for seed in first..first + projects {
        check_project(seed, &mut tally).await;
    }
    let enough = usize::try_from(projects).unwrap() / 20;
    let counts = [tally.created, tally.blocked, tally.blocked_by_alias, tally.asked, tally.manual_only];
    assert!(counts.iter().all(|count| *count > enough), "too few cases of a kind: {tally:?}");
    assert!(tally.grandchildren > 0 && tally.kept_by_access > 0, "{tally:?}");
    println!("{projects} projects from seed {first}: {tally:?}");
}

async fn check_project(seed: u64, tally: &mut Tally) {
    let project = RandomProject::new(&mut Chance::at(seed, &["project"]));
    let folder = tempfile::tempdir().unwrap();
    project.write(folder.path());
    let loaded = load(folder.path());
    let runtime = loaded.runtime().build().unwrap();
    let creator = &project.creator;
    for tool in &creator.tools {
        let verdict = verdict(&runtime, "main", &tool.called, tool).await;
        let expected = creator.is_blocked(tool);
        assert_eq!(
            verdict == VerdictKind::Block,
            expected,
            "seed {seed}: the oracle errs about {tool:?}: {project}"
        );
    }
    let chance = &mut Chance::at(seed, &["wanted"]);
    let (called, wanted) = (creator.called("agent_create"), project.wanted("child", chance));
    if !create(&runtime, "main", called, &wanted).await {
        return;
    }
    tally.created += 1;
    check_created(seed, &project, folder.path(), &runtime, "child", tally).await;
    let wanted = project.wanted("grandchild", chance);
    if create(&runtime, "child", "agent_create", &wanted).await {
        tally.grandchildren += 1;
        check_created(seed, &project, folder.path(), &runtime, "grandchild", tally).await;
    }
}

/// Creates an agent in the name of another one, with everything approved that can be.
async fn create(runtime: &Runtime, creator: &str, tool: &str, wanted: &Value) -> bool {
    let call = runtime.run(tool, wanted.clone()).as_agent(creator);
    call.approval_mode(ApprovalMode::ApproveAll).await.is_ok()
}

/// Compares a created agent with the oracle: in the runtime that made it, and in one that reads its file anew.
async fn check_created(
    seed: u64,
    project: &RandomProject,
    folder: &Path,
    live: &Runtime,
    agent: &str,
    tally: &mut Tally,
) {
    let loaded = load(folder);
    let again = loaded.runtime().build().unwrap();
    let text = fs::read_to_string(folder.join(format!("agents/generated/{agent}.agent"))).unwrap();
    let outline = loaded.project.outline();
    let outline = outline.iter().find(|outline| outline.agent.as_ref().unwrap().name == *agent).unwrap();
    let access = outline.agent.as_ref().unwrap().access;
    for callable in &outline.callables {
        let toolset = callable.definition.toolset.as_ref().map(ToString::to_string);
        let Some(tool) = project.creator.tool(toolset.as_deref(), &callable.name) else { continue };
        let expected = Expected::of(&project.creator, tool, access);
        expected.count(tool, tally);
        for runtime in [live, &again] {
            let verdict = verdict(runtime, agent, &tool.own, tool).await;
            let problem = expected.problem(verdict);
            assert!(
                problem.is_none(),
                "seed {seed}: {problem:?} for {tool:?} of `{agent}`:\n{project}\n{text}"
            );
        }
        let is_marked = callable.definition.manual_only;
        assert!(
            is_marked || !expected.manual_only,
            "seed {seed}: {tool:?} is not manual-only:\n{project}\n{text}"
        );
    }
}

/// What a created agent may not do, because its creator may not.
struct Expected {
    blocked: bool,
    asks: bool,
    lacks_access: bool,
    manual_only: bool,
}

impl Expected {
    fn of(creator: &Creator, tool: &HeldTool, access: llm_do::tools::Access) -> Self {
        Self {
            blocked: creator.is_blocked(tool),
            asks: creator.asks(tool),
            lacks_access: tool.demanded.is_some_and(|demanded| demanded > access),
            manual_only: creator.is_manual_only(tool),
        }
    }

    fn problem(&self, verdict: VerdictKind) -> Option<&'static str> {
        match verdict {
            VerdictKind::Block => None,
            _ if self.blocked => Some("a block is lost"),
            _ if self.lacks_access => Some("an access override is lost"),
            VerdictKind::Allow if self.asks => Some("a question is lost"),
            _ => None,
        }
    }

    fn count(&self, tool: &HeldTool, tally: &mut Tally) {
        tally.blocked += usize::from(self.blocked);
        tally.blocked_by_alias += usize::from(self.blocked && tool.called != tool.own);
        tally.asked += usize::from(self.asks);
        tally.kept_by_access += usize::from(self.lacks_access);
        tally.manual_only += usize::from(self.manual_only);
    }
}

fn load(folder: &Path) -> LoadedProject {
    llm_do::loader(folder)
        .trust(llm_do::project::TrustPolicy::All)
        .load()
        .unwrap_or_else(|problems| panic!("{problems}"))
}

async fn verdict(runtime: &Runtime, agent: &str, called: &str, tool: &HeldTool) -> VerdictKind {
    let verdict = runtime.run(called, arguments(tool.base)).as_agent(agent).judge().await;
    let wrong = [Some(FailureKind::Arguments), Some(FailureKind::Unknown)].contains(&verdict.failure);
    assert!(!wrong || tool.base.starts_with("agent_"), "the test calls `{called}` wrongly: {verdict:?}");
    verdict.decision
}

/// Arguments that fit the schema of a tool.
fn arguments(tool: &str) -> Value {
    match tool {
        "read_file" => json!({"path": "a.txt"}),
        "list_files" | "agent_list" => json!({}),
        "search_files" => json!({"pattern": "a"}),
        "write_file" => json!({"path": "a.txt", "content": "b"}),
        "edit_file" => json!({"path": "a.txt", "edits": [{"old": "a", "new": "b"}]}),
        "calculator" => json!({"expression": "1"}),
        "write_stderr" => json!({"message": "x"}),
        "agent_call" => json!({"agent": "main", "input": "x"}),
        "agent_create" => json!({"name": "nobody", "instructions": "Do nothing."}),
        other => panic!("no arguments for `{other}`"),
    }
}
