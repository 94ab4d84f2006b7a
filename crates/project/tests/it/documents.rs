//! Documents that are not what they must be: the message names what is wrong in the author's terms.

use llm_do_project::{LoadedProject, load};
use llm_do_testing::TestDir;

use crate::parts::Names;

/// Loads a manifest that lists agent files.
fn listed(files: &str) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    folder.write("main.agent", "---\nname: main\nentry: true\nmodel: test:echo\n---\nDo it.\n");
    folder.write("project.yaml", format!("version: 1\nentry: {{}}\nagent_files: {files}\n"));
    load(folder.path(), &Names).map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn two_spellings_of_one_file_are_reported_with_both() {
    for (files, expected) in [
        ("[main.agent, ./main.agent]", "`main.agent` and `./main.agent` in `agent_files` are the same file"),
        ("[main.agent, main.agent]", "duplicate entry `main.agent` in `agent_files`"),
        ("['*.agent', '*.agent']", "duplicate entry `*.agent` in `agent_files`"),
    ] {
        let text = listed(files).err().unwrap();
        assert!(text.contains(expected) && text.contains("project.yaml, line 3"), "{text}");
    }
    assert!(listed("['*.agent', main.agent]").is_ok(), "a glob may match what is listed");
}

#[test]
fn front_matter_that_is_a_list_and_a_bad_name_are_explained() {
    let folder = TestDir::new();
    folder.write("main.agent", "---\n- name: main\n---\nDo it.\n");
    let text = load(folder.path(), &Names).err().unwrap().to_string();
    assert!(text.contains("front matter must be a mapping") && text.contains("line 2"), "{text}");
    let named = |header: &str| {
        let folder = TestDir::new();
        folder.write("main.agent", format!("---\n{header}\nmodel: test:echo\n---\nDo it.\n"));
        load(folder.path(), &Names).err().unwrap().to_string()
    };
    for header in ["name: a b", "name: main\ntools: [{name: x, alias: 'a b'}]"] {
        let text = named(header);
        assert!(text.contains("letters, digits, `_` and `-`") && !text.contains("A-Za-z"), "{text}");
    }
}
