//! `llm-do init`: what it writes runs at once.

use llm_do_testing::needs;

use crate::support::Sandbox;

#[test]
fn every_template_checks_and_runs_offline() {
    let sandbox = Sandbox::new();
    for (template, directory) in [("minimal", "a"), ("nested", "b"), ("typed-input", "c")] {
        let ran = sandbox.run(&["init", directory, "--template", template]).ended(0).said("");
        assert!(ran.stderr.contains(&format!("next: llm-do run {directory} ")), "{ran:?}");
        sandbox.run(&["check", directory]).ended(0).told_nothing();
    }
    sandbox.run(&["run", "a", "Good morning"]).ended(0).said("Good morning\n");
    let nested = sandbox.run(&["run", "b", "A haiku about rain", "-v"]).ended(0).told("[main > critic]");
    assert!(nested.stdout.starts_with("Rain on the tin roof\n"), "{nested:?}");
    let typed = sandbox.run(&["run", "c", "--input-json", r#"{"topic": "Rust", "days": 2}"#]).ended(0);
    assert_eq!(typed.json()["title"], "Rust in two days");
    sandbox
        .run(&["run", "c", "--input-json", r#"{"days": 2}"#])
        .ended(2)
        .told("missing required field `topic`");
}

#[test]
fn the_model_flag_is_the_model_of_every_agent_of_a_template() {
    let sandbox = Sandbox::new();
    for template in ["minimal", "nested", "typed-input"] {
        sandbox.run(&["init", template, "--template", template]).ended(0);
        let ran = sandbox.run(&["run", template, "-p", "Go", "-v", "--model", "test:echo"]);
        assert!(!ran.stderr.contains("agents with a model of their own"), "{ran:?}");
    }
    let ran = sandbox.run(&["run", "nested", "Go", "-v", "--model", "test:echo"]).ended(0).said("Go\n");
    ran.told("with test:echo");
    // A real model without a key is refused, and nothing scripted answers in its place.
    let mut command = sandbox.command(&["run", "minimal", "Go", "--model", "anthropic:claude-sonnet-4-5"]);
    let ran: crate::support::Ran = command.env_remove("ANTHROPIC_API_KEY").output().unwrap().into();
    ran.ended(3).said("").told("ANTHROPIC_API_KEY");
}

#[needs(python)]
#[test]
fn the_template_with_python_runs_and_asks_before_it_writes() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "d", "--template", "python"]).ended(0);
    let checked = sandbox.run(&["check", "d"]).ended(0).told_nothing();
    assert!(checked.stdout.starts_with("ok: 2 agents, entry `main`\npowers"), "{checked:?}");
    let reach = sandbox.run(&["check", "d", "--reach"]).ended(0);
    assert!(reach.stdout.contains("code that is run when the project is loaded: d/tools.py"), "{reach:?}");
    let denied = sandbox.run(&["run", "d", "Ada is here", "--approve", "none"]).ended(0);
    denied.said("Ada is not in the book: it was not allowed.\n");
    assert!(!sandbox.path("d/guests.txt").exists());
    let ran = sandbox.run(&["run", "d", "Ada is here", "--approve", "all", "-v"]).ended(0);
    assert!(ran.stderr.contains("[main > greet() > writer] -> Welcome aboard, Ada!"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(sandbox.path("d/guests.txt")).unwrap(), "Ada: Welcome aboard, Ada!\n");
}

#[test]
fn nothing_is_overwritten() {
    let sandbox = Sandbox::new().file("main.agent", "mine");
    sandbox.run(&["init"]).ended(2).told("`./main.agent` exists already");
    assert_eq!(std::fs::read_to_string(sandbox.path("main.agent")).unwrap(), "mine");
    sandbox.run(&["init", "--template", "nested"]).ended(0);
}
