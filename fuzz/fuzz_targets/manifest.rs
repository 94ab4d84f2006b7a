//! Manifests of any bytes. The first byte chooses the language: JSON, YAML or TOML.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use llm_do_fuzz::{folder, load_with};

const MAIN: &str = "---\nname: main\nmodel: test:echo\ntoolsets: [helper]\n---\nDo it.\n";
const HELPER: &str = "---\nname: helper\n---\nHelp.\n";

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = folder("manifest");
    std::fs::write(folder.join("main.agent"), MAIN).expect("a temporary file can be written");
    std::fs::write(folder.join("helper.agent"), HELPER).expect("a temporary file can be written");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, text)) = bytes.split_first() else { return };
    let name = match choice % 3 {
        0 => "project.json",
        1 => "project.yaml",
        _ => "project.toml",
    };
    let file = FOLDER.join(name);
    load_with(&file, &file, text);
});
