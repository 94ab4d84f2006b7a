//! `llm-do check`: every problem in one pass, and the reach.

use serde_json::json;

use crate::support::Sandbox;

fn broken() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry:\n  agent: mian\nagent_files: [main.agent, helper.agent, gone.agent]\nruntime:\n  max_dept: 3\n",
        )
        .file("main.agent", "---\nname: main\nmodel: tst:echo\ntoolset: [helper]\n---\nx")
        .file("helper.agent", "---\nname: helper\nmodel: nosuch:model\ntoolsets: [mian]\n---\nx")
}

#[test]
fn all_problems_are_said_at_once_with_place_and_hint() {
    let ran = broken().run(&["check", "."]).ended(2).said("");
    insta::assert_snapshot!(ran.stderr, @r"
    error: `runtime`: unknown key `max_dept`
      at project.yaml, line 6, column 3
       |
     6 |   max_dept: 3
       |   ^^^^^^^^
    hint: did you mean `max_depth`?

    error: `agent_files`: `gone.agent` was not found
      at project.yaml, line 4, column 41
       |
     4 | agent_files: [main.agent, helper.agent, gone.agent]
       |                                         ^^^^^^^^^^^

    error: unknown key `toolset`
      at main.agent, line 4, column 1
       |
     4 | toolset: [helper]
       | ^^^^^^^
    hint: did you mean `toolsets`?

    error: agent `helper` names the model `nosuch:model`, and there is no provider `nosuch`
      at helper.agent, line 3, column 8
       |
     3 | model: nosuch:model
       |        ^^^^^^^^^^^^
    hint: known: test, script, anthropic, openai, openai-chat, gemini, google, google-gla, ollama, openrouter, groq, deepseek, mistral, xai, together, fireworks, azure, lmstudio, llamacpp, vllm; others are declared under `providers`

    error: agent `helper`: there is no toolset or agent `mian`
      at helper.agent, line 4, column 12
       |
     4 | toolsets: [mian]
       |            ^^^^^
    hint: did you mean `main`?
    ");
}

#[test]
fn problems_come_as_json_too() {
    let value = broken().run(&["check", ".", "--output", "json"]).ended(2).json();
    assert_eq!(value["ok"], false);
    let diagnostics = value["diagnostics"].as_array().unwrap();
    let first = &diagnostics[0];
    assert_eq!(first["severity"], "error");
    for key in ["message", "file", "line", "column"] {
        assert!(first.get(key).is_some(), "{key} is not in {first}");
    }
}

#[test]
fn a_good_project_is_ok() {
    Sandbox::asking().run(&["check", "."]).ended(0).said("ok: 2 agents, entry `main`\n").told_nothing();
    let value = Sandbox::asking().run(&["check", ".", "--output", "json"]).ended(0).json();
    assert_eq!(value, json!({"ok": true, "diagnostics": []}));
}

fn recursive() -> Sandbox {
    Sandbox::asking().file(
        "helper.agent",
        "---\nname: helper\nmodel: test:echo\naccess: read\ntoolsets: [helper, main]\n---\nx",
    )
}

#[test]
fn the_reach_shows_paths_approvals_depth_and_recursion() {
    insta::assert_snapshot!(recursive().run(&["check", ".", "--reach"]).ended(0).stdout, @r"
    main  (agent, depth 1, admin access, script:script.yaml, recursive)
    └─ helper  (agent, depth 2, read access, test:echo, recursive): asks first by the policy for agents
       ├─ helper  (agent, again): asks first by the policy for agents
       └─ main  (agent, again): asks first by the policy for agents

    agents: 2, at most 5 deep (limit 5)
    tools: 0 run freely, 0 ask first, 0 are blocked
    ");
}

#[test]
fn the_reach_is_data_and_a_graph_too() {
    let value = recursive().run(&["check", ".", "--reach", "--output", "json"]).ended(0).json();
    assert_eq!(value["reach"]["worst_depth"], 5);
    let calls = value["reach"]["calls"].as_array().unwrap();
    let call = calls.iter().find(|call| call["path"] == "main > helper").unwrap();
    assert_eq!((&call["approval"], &call["decided_by"]), (&json!("ask"), &json!("policy")));
    let graph = recursive().run(&["check", ".", "--reach", "--output", "mermaid"]).ended(0).stdout;
    assert!(graph.starts_with("flowchart TD\n") && graph.contains("agent0 -->"), "{graph}");
    recursive().run(&["check", ".", "--output", "mermaid"]).ended(2).told("add `--reach`");
}

#[test]
fn checking_calls_no_model_and_reads_no_script() {
    let sandbox = Sandbox::scripted("this is [ no script");
    sandbox.run(&["check", ".", "--reach"]).ended(0);
    sandbox.run(&["run", ".", "x"]).ended(3).told("script.yaml");
}
