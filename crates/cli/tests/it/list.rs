//! `llm-do list`: what a project has.

use crate::support::Sandbox;

#[test]
fn agents_are_listed_with_what_they_call() {
    insta::assert_snapshot!(Sandbox::asking().run(&["list", "."]).ended(0).stdout, @r"
    agents
      helper  test:echo
      main  (entry)  script:script.yaml
        calls helper (asks first)
    ");
}

#[test]
fn a_program_reads_the_list_as_json() {
    let value = Sandbox::asking().run(&["list", ".", "--output", "json"]).ended(0).json();
    assert_eq!(value["entry"], "main");
    let main = value["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "main").unwrap();
    assert_eq!(main["calls"][0]["name"], "helper");
    assert_eq!(main["calls"][0]["kind"], "agent");
}
