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
