//! Projects of the Python programs: what they wrote is read, and what cannot be read is explained.

#![expect(clippy::unwrap_used, reason = "a broken set-up must stop the test")]

mod parts;

use llm_do_project::{LoadedProject, load};

use parts::{Folder, Names};

/// Loads a folder with these files.
fn loaded(id: &str, files: &[(&str, &str)]) -> Result<LoadedProject, String> {
    let folder = Folder::new(&format!("python-projects-{id}"));
    files.iter().for_each(|(name, text)| folder.write(name, text));
    load(folder.path(), &Names).map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn an_agent_that_is_marked_as_entry_needs_no_key_in_the_manifest() {
    let main = "---\nname: main\nentry: true\nmodel: test:echo\n---\nDo it.\n";
    let manifest = "version: 1\nagent_files: [main.agent]\n";
    let project = loaded("entry", &[("main.agent", main), ("project.yaml", manifest)]).unwrap();
    assert_eq!(project.entry, "main");
}

#[test]
fn a_manifest_without_an_entry_names_all_ways_to_choose_one() {
    let main = "---\nname: main\nmodel: test:echo\n---\nDo it.\n";
    let manifest = "version: 1\nagent_files: [main.agent]\n";
    let text = loaded("no-entry", &[("main.agent", main), ("project.yaml", manifest)]).err().unwrap();
    assert!(text.contains("the project has no entry"), "{text}");
    assert!(text.contains("`entry: true` in one agent file") && text.contains("{\"agent\": "), "{text}");
}

#[test]
fn an_old_spelling_is_one_line_and_is_said_once_for_all_files() {
    let agent =
        |name: &str| format!("---\nname: {name}\nmodel: test:echo\nallow_workers: [main]\n---\nDo it.\n");
    let manifest = "version: 1\nentry: {agent: main}\nworker_files: [main.agent, other.agent, third.agent]\n";
    let (main, other, third) = (agent("main"), agent("other"), agent("third"));
    let files = [
        ("project.yaml", manifest),
        ("main.agent", main.as_str()),
        ("other.agent", other.as_str()),
        ("third.agent", third.as_str()),
    ];
    let project = loaded("old-spellings", &files).unwrap();
    let text = project.notices.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let [files, agents] = &lines[..] else { panic!("{text}") };
    assert!(files.ends_with("project.yaml:3: `worker_files` is read as `agent_files`"), "{text}");
    assert!(
        agents.ends_with("main.agent:4: `allow_workers` is read as `agents` (and in 2 more places)"),
        "{text}"
    );
    assert!(lines.iter().all(|line| line.starts_with("notice: ")), "{text}");
    assert_eq!(project.notices.0.len(), 4, "programs are given every place");
}

#[test]
fn an_unknown_key_of_a_python_program_is_explained() {
    let manifest =
        "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nruntime: {model: 'test:echo'}\n";
    let main = "---\nname: main\nmodel: test:echo\nshell_rules: []\n---\nDo it.\n";
    let text = loaded("keys", &[("main.agent", main), ("project.yaml", manifest)]).err().unwrap();
    assert!(
        text.contains("hint: `runtime.model` of the Python program is now: manifest key `model`"),
        "{text}"
    );
    assert!(
        text.contains("hint: `shell_rules` of the Python program is now: settings of the toolset"),
        "{text}"
    );
}

#[test]
fn an_unknown_tool_or_toolset_of_a_python_program_is_explained() {
    let main = "---\nname: main\nmodel: test:echo\ntools: [list_dir]\ntoolsets: [delegation]\n---\nDo it.\n";
    let text = loaded("tools", &[("main.agent", main)]).err().unwrap();
    assert!(text.contains("hint: `list_dir` of LLMProc is now: tool `list_files`"), "{text}");
    assert!(
        text.contains("hint: `delegation` of the Python program is now: toolset `dynamic_agents`"),
        "{text}"
    );
}

#[test]
fn an_allow_list_may_name_an_agent_that_does_not_exist_yet() {
    let main = "---\nname: main\nmodel: test:echo\nagents: [mian, later]\n---\nDo it.\n";
    let project = loaded("later", &[("main.agent", main)]).unwrap();
    let text = project.notices.to_string();
    assert!(text.contains("notice: `agents` names `later`, and there is no such agent yet"), "{text}");
    assert!(text.contains("hint: did you mean `main`?"), "{text}");
}
