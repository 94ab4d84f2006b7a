//! Paths that lead out of the project are refused, however they are written.

use llm_do_project::load;
use llm_do_testing::TestDir;

use crate::parts::Names;

/// A project in a folder beside files that are not its own.
fn project() -> TestDir {
    let outer = TestDir::new();
    outer.write("secret.agent", "---\nname: secret\nmodel: test:echo\n---\nA secret.\n");
    outer.write("secret.py", "class Secret: pass\n");
    outer.write("project/main.agent", "---\nname: main\nmodel: test:echo\n---\nDo it.\n");
    outer
}

fn words(outer: &TestDir) -> String {
    load(outer.path().join("project"), &Names).err().map(|said| said.to_string()).unwrap_or_default()
}

#[test]
fn a_link_to_an_agent_outside_is_no_agent_of_a_folder_without_manifest() {
    let outer = project();
    let link = outer.path().join("project/linked.agent");
    std::os::unix::fs::symlink("../secret.agent", link).unwrap();
    let said = words(&outer);
    assert!(said.contains("`linked.agent` lies outside the project"), "{said}");
}

#[test]
fn a_link_to_an_agent_inside_is_followed() {
    let outer = project();
    outer.write("project/others/helper.agent", "---\nname: helper\nmodel: test:echo\n---\nHelp.\n");
    let link = outer.path().join("project/helper.agent");
    std::os::unix::fs::symlink("others/helper.agent", link).unwrap();
    assert_eq!(words(&outer), "");
}

#[test]
fn python_files_outside_are_not_looked_into() {
    let outer = project();
    let header = "name: main\nmodel: test:echo\ninput_model_ref: ../secret.py:Secrets";
    outer.write("project/main.agent", format!("---\n{header}\n---\nDo it.\n"));
    let said = words(&outer);
    assert!(said.contains("`../secret.py` lies outside the project"), "{said}");
    assert!(!said.contains("`Secret`"), "{said}");
}
