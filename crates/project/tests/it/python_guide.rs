//! The tables of the guide for people who come from the Python programs are made from the table of names.
//!
//! `UPDATE_DOCS=1 cargo test -p llm-do-project --test it python_guide` writes them anew.

use std::fmt::Write;
use std::path::PathBuf;

use llm_do_project::{PythonEra, PythonName, python_names};

const ERAS: [(&str, PythonEra); 4] = [
    ("workers", PythonEra::Workers),
    ("context", PythonEra::Context),
    ("agents", PythonEra::Agents),
    ("llmproc", PythonEra::Llmproc),
];

#[test]
fn the_guide_has_a_row_for_every_python_name() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/coming-from-python.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let made = ERAS.iter().fold(written.clone(), |page, (name, era)| with_table(&page, name, *era));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    } else {
        assert!(written == made, "docs/guide/coming-from-python.md is out of date: run `cargo xtask docs`");
    }
}

/// Puts the table of one era between its marks.
fn with_table(page: &str, name: &str, era: PythonEra) -> String {
    let mark = format!("<!-- table: {name} -->\n");
    let (before, rest) = page.split_once(&mark).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{mark}{}<!-- end -->{after}", table(era))
}

fn table(era: PythonEra) -> String {
    let mut text = String::from("| Name | What it was | Here | Example |\n| --- | --- | --- | --- |\n");
    for PythonName { name, was, now, example, .. } in python_names().iter().filter(|row| row.era == era) {
        let cells = [format!("`{name}`"), was.clone(), now.clone(), format!("`{example}`")];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}
