//! `llm-do call`: by name, through the gate.

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn an_agent_is_called_by_name() {
    let sandbox = Sandbox::asking();
    let input = r#"{"input": "direct"}"#;
    // Who starts a call at the shell has chosen it: the policy is about calls that agents make.
    sandbox.run(&["call", ".", "helper", "--input-json", input]).ended(0).said("direct\n");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    Sandbox::asking().run(&["call", ".", "helpr"]).ended(2).said("").told("did you mean `helper`?");
}

#[test]
fn a_dry_run_says_what_the_gate_would_say() {
    let sandbox = Sandbox::asking();
    let input = r#"{"input": "x"}"#;
    let arguments = ["call", ".", "helper", "--input-json", input, "--dry-run", "--output", "json"];
    let verdict = sandbox.run(&arguments).ended(0).json();
    assert_eq!(verdict["decision"], "allow");
    assert_eq!(verdict["arguments"], json!({"input": "x"}));
    let blocked = sandbox.run(&["call", ".", "nobody", "--dry-run", "--output", "json"]).ended(0).json();
    assert_eq!(blocked["decision"], "block");
    assert!(blocked["reason"].as_str().unwrap().contains("there is no tool or agent `nobody`"));
    let wrong = ["call", ".", "helper", "--input-json", "[1]", "--dry-run"];
    sandbox.run(&wrong).ended(2).told("no JSON input");
}

#[test]
fn a_call_in_the_name_of_an_agent_keeps_to_the_policy_for_agents() {
    let input = r#"{"input": "x"}"#;
    let arguments =
        ["call", ".", "helper", "--as", "main", "--input-json", input, "--dry-run", "--output", "json"];
    assert_eq!(Sandbox::asking().run(&arguments).ended(0).json()["decision"], "ask");
}

#[test]
fn an_agent_is_not_called_without_input() {
    Sandbox::asking().run(&["call", ".", "helper"]).ended(2).told("there is no input");
}

#[test]
fn an_agent_that_does_not_exist_lends_its_name_to_nobody() {
    let input = r#"{"input": "x"}"#;
    let arguments = ["call", ".", "helper", "--as", "mian", "--input-json", input];
    let ran = Sandbox::asking().run(&arguments).ended(2);
    ran.told("there is no agent `mian`").told("did you mean `main`?");
}
