//! Projects of a corpus, good and bad: loaded, or refused with words that name what is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use llm_do_project::load;

use crate::parts::{Names, corpus, directory_of};

/// What loading says: nothing where it succeeds.
fn words(folder: &Path) -> Option<String> {
    load(folder, &Names).err().map(|diagnostics| diagnostics.to_string())
}

#[test]
fn every_project_of_the_corpus_gets_the_expected_reaction() {
    let mut wrong = Vec::new();
    for case in &corpus() {
        let id = case["id"].as_str().unwrap();
        let folder = directory_of(&case["files"]);
        let begun = Instant::now();
        let said = words(folder.path());
        if begun.elapsed() > Duration::from_secs(2) {
            wrong.push(format!("{id}: took {:?}", begun.elapsed()));
        }
        let reaction = if said.is_some() { "error" } else { "ok" };
        let also_ok =
            case["also_ok"].as_array().is_some_and(|list| list.iter().any(|other| other == reaction));
        let said = said.unwrap_or_default();
        if case["expect"] != reaction && !also_ok {
            wrong.push(format!("{id} ({}): {reaction} instead of {}\n{said}", case["why"], case["expect"]));
            continue;
        }
        let lower = said.to_lowercase();
        let mentions = case["must_mention"].as_array().cloned().unwrap_or_default();
        let missing = mentions.iter().filter(|word| !lower.contains(&word.as_str().unwrap().to_lowercase()));
        if reaction == "error" {
            wrong.extend(missing.map(|word| format!("{id}: {word} is not mentioned in:\n{said}")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
