//! Secret files: what a run shows of them, by mode, prompt, manifest and command line.

use crate::support::{Ran, Sandbox};

const VALUE: &str = "correct-horse-battery";

/// An agent that may do everything, and reads a secret file in two ways.
fn reading() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project, shell_readonly]\n\
             approval: {'*': pre_approved}\n---\nRead.\n",
        )
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {read_file: {path: .env}}\n  - ask: {shell: {command: cat .env}}\n  \
             - say: the end\n",
        )
        .file(".env", &format!("PASSWORD={VALUE}\n"))
}

/// Runs with all events on stdout.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let fixed = ["run", ".", "--output", "jsonl"];
    sandbox.run(&fixed.iter().chain(arguments).copied().collect::<Vec<_>>())
}

#[test]
fn no_mode_sends_a_secret_file_to_the_model_or_into_events() {
    for mode in ["all", "none"] {
        let ran = run(&reading(), &["--approve", mode, "go"]).ended(0);
        assert!(!ran.stdout.contains(VALUE), "{mode}: {}", ran.stdout);
        let hints =
            ran.stdout.lines().filter(|line| line.contains("approval_decided") && line.contains("{allow:"));
        assert_eq!(hints.count(), 1, "{mode}: {}", ran.stdout);
        assert!(ran.stdout.contains("`.env` is a secret file (password or key)"), "{mode}: {}", ran.stdout);
    }
}

#[test]
fn the_way_out_works_as_it_is_told() {
    let ran =
        run(&reading(), &["--approve", "none", "--set", r#"secret_files.allow=[".env"]"#, "go"]).ended(0);
    assert!(ran.stdout.matches(VALUE).count() >= 2, "{}", ran.stdout);
    let manifest =
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nsecret_files: {allow: [\".env\"]}\n";
    let ran =
        run(&reading().file("project.yaml", manifest), &["--approve", "none", "--trust", "go"]).ended(0);
    assert!(ran.stdout.matches(VALUE).count() >= 2, "{}", ran.stdout);
}

#[test]
fn a_prompt_that_names_the_file_is_the_word_of_the_person() {
    let ran = run(&reading(), &["--approve", "none", "what is in .env?"]).ended(0);
    assert!(ran.stdout.matches(VALUE).count() >= 2, "{}", ran.stdout);
}

#[test]
fn a_glob_that_leads_out_of_the_project_is_refused() {
    let manifest =
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nsecret_files: {allow: [../x]}\n";
    reading()
        .file("project.yaml", manifest)
        .run(&["check", "."])
        .ended(2)
        .told("`../x` leads out of the project");
}

#[test]
fn the_users_own_configuration_allows_files_in_every_project() {
    let allowing = || reading().config("[secret_files]\nallow = [\".env\"]\n");
    let ran = run(&allowing(), &["--approve", "none", "go"]).ended(0);
    assert!(ran.stdout.matches(VALUE).count() >= 2, "{}", ran.stdout);
    // It is not a power of the project: nothing is asked about, and it holds where the project has no powers.
    let checked = allowing().run(&["check", "."]).ended(0);
    assert!(!checked.stdout.contains("secret"), "{checked:#?}");
    let ran = run(&allowing(), &["--approve", "none", "--trust=none", "go"]).ended(0);
    assert!(ran.stdout.contains(VALUE), "{}", ran.stdout);
    let other = reading().config("[secret_files]\nallow = [\"other/.env\"]\n");
    let ran = run(&other, &["--approve", "none", "go"]).ended(0);
    assert!(!ran.stdout.contains(VALUE), "{}", ran.stdout);
}
