//! The examples of the Python ancestors (llm-do in its several forms, and LLMProc) as whole projects.

use crate::needs_python::needs_python;
use crate::support::Sandbox;

const MANIFEST: &str =
    "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\npython_files: [tools.py]\n";

/// One toolset object that several agents share.
const SHARED: &str = r#"
from pydantic_ai.toolsets import FunctionToolset
shared = FunctionToolset()
@shared.tool_plain
def look() -> str:
    "Looks."
    return "looked"
@shared.tool_plain
def burn() -> str:
    "Burns."
    return "burned"
"#;

fn agent(name: &str, header: &str) -> String {
    format!("---\nname: {name}\nmodel: script:{name}.yaml\n{header}\n---\nWork.\n")
}

/// A project with the shared toolset, in which `main` calls agents in an order.
fn shared_toolset(order: [&str; 2], free: &str, strict: &str) -> Sandbox {
    let both = "mode: by_turn\nreplies:\n  - ask: {look: {}}\n  - ask: {burn: {}}\n  - say: done\n";
    let [first, second] = order;
    let main = format!(
        "mode: by_turn\nreplies:\n  - ask: {{{first}: {{input: go}}}}\n  - ask: {{{second}: {{input: go}}}}\n  - say: end\n"
    );
    Sandbox::new()
        .file("project.yaml", MANIFEST)
        .file("tools.py", SHARED)
        .file("main.agent", &agent("main", "toolsets: [free, strict]"))
        .file("free.agent", &agent("free", free))
        .file("strict.agent", &agent("strict", strict))
        .file("main.yaml", &main)
        .file("free.yaml", both)
        .file("strict.yaml", both)
}

#[test]
fn agents_that_share_a_python_toolset_each_keep_their_own_approval_rules() {
    needs_python!();
    let free =
        "toolsets:\n  shared: {_approval_config: {look: {pre_approved: true}, burn: {pre_approved: true}}}";
    let strict =
        "toolsets:\n  - shared: {_approval_config: {look: {pre_approved: true}, burn: {blocked: true}}}";
    for order in [["free", "strict"], ["strict", "free"]] {
        let project = shared_toolset(order, free, strict);
        project.run(&["check", "."]).ended(0);
        let ran = project.run(&["run", ".", "go", "--output", "jsonl"]).ended(0);
        let finished = |agent: &str, tool: &str| {
            let calls: Vec<String> = ran
                .lines()
                .into_iter()
                .filter(|line| line["type"] == "call_finished" && line["name"] == tool)
                .filter(|line| line["path"].to_string().contains(agent))
                .map(|line| line.to_string())
                .collect();
            assert_eq!(calls.len(), 1, "{agent} {tool}: {calls:?} of {}", ran.stdout);
            calls.concat()
        };
        for agent in ["free", "strict"] {
            assert!(finished(agent, "look").contains("looked"), "{order:?} {agent}");
        }
        assert!(finished("free", "burn").contains("burned"), "{order:?}");
        assert!(finished("strict", "burn").contains("blocked"), "{order:?}");
    }
}

#[test]
fn a_python_toolset_may_be_listed_as_a_mapping_without_settings() {
    needs_python!();
    for header in ["toolsets: {shared: {}}", "toolsets: {shared: }", "toolsets:\n  - shared: {}"] {
        let project = Sandbox::new()
            .file("project.yaml", MANIFEST)
            .file("tools.py", SHARED)
            .file("main.agent", &agent("main", header))
            .file("main.yaml", "replies:\n  - ask: {look: {}}\n  - say: done\n");
        project.run(&["check", "."]).ended(0);
        let ran = project.run(&["run", ".", "go", "--approve", "all"]).ended(0);
        assert_eq!(ran.stdout, "done\n", "{header}: {ran:#?}");
    }
}

#[test]
fn settings_of_a_python_toolset_are_refused_by_check() {
    needs_python!();
    for header in [
        "toolsets: {shared: {root: docs}}",
        "toolsets:\n  - shared: {root: docs, _approval_config: {look: {}}}",
    ] {
        let project = Sandbox::new()
            .file("project.yaml", MANIFEST)
            .file("tools.py", SHARED)
            .file("main.agent", &agent("main", header))
            .file("main.yaml", "replies:\n  - say: done\n");
        for arguments in [&["check", "."][..], &["check", ".", "--static"]] {
            let ran = project.run(arguments).ended(2);
            assert!(ran.stderr.contains("takes no settings") && ran.stderr.contains("`root`"), "{ran:#?}");
        }
    }
}
