//! Agent files of any bytes, beside a helper that they may name.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use llm_do_fuzz::{folder, load_with};

const HELPER: &str = "---\nname: helper\nmodel: test:echo\n---\nHelp.\n";

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = folder("front-matter");
    std::fs::write(folder.join("helper.agent"), HELPER).expect("a temporary file can be written");
    folder
});

fuzz_target!(|bytes: &[u8]| load_with(&FOLDER, &FOLDER.join("main.agent"), bytes));
