//! Program files of LLMProc as projects of their own.

use crate::support::Sandbox;

fn program() -> Sandbox {
    Sandbox::new()
        .file(
            "sums.toml",
            "[model]\nname = \"script.yaml\"\nprovider = \"script\"\n\n[prompt]\nsystem_prompt = \"You count.\"\n\
             user = \"How much is it?\"\n\n[tools]\nbuiltin = [\"calculator\", { name = \"write_stderr\", alias = \"log\" }]\n\n\
             [demo]\nprompts = [\"One.\", \"Two.\"]\n",
        )
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {calculator: {expression: '2 ** 10 / 3'}}\n  - say: first\n  - say: second\n  - say: third\n",
        )
}

#[test]
fn a_program_file_is_run_and_its_own_prompt_is_the_input_where_there_is_none() {
    let sandbox = program();
    sandbox.run(&["check", "sums.toml"]).ended(0);
    let ran = sandbox.run(&["run", "sums.toml", "Count.", "-v"]).ended(0).said("first\n").told("341.333333");
    ran.told("Count.");
    let ran = sandbox.run(&["sums.toml", "--output", "jsonl"]).ended(0);
    assert!(ran.stdout.contains("How much is it?"), "{ran:?}");
}

#[test]
fn a_conversation_begins_with_what_the_program_says() {
    let ran = program().run_with(&["chat", "sums.toml"], b"Three.\n").ended(0);
    ran.said("first\nsecond\nthird\n").told("> One.\n").told("> Two.\n");
}

#[test]
fn what_a_program_says_wrongly_is_shown_with_its_line() {
    let sandbox = Sandbox::new().file(
        "bad.yaml",
        "model: {name: echo, provider: test}\nprompt: {system: x}\nparameters:\n  temperature: hot\ntools: {builtin: [calculater]}\n",
    );
    let ran = sandbox.run(&["check", "bad.yaml"]).ended(2);
    ran.told("bad.yaml, line 4").told("expected number");
}
