//! The corpus of commands: no unsafe one is allowed, no harmless one refused.

use llm_do_core::Approval;
use serde::Deserialize;

use crate::shell::support::{Folder, assess, read_only};

#[derive(Deserialize)]
struct Entry {
    id: String,
    cmd: String,
    expect: String,
    #[serde(default)]
    also_ok: Vec<String>,
}

fn word(approval: Approval) -> &'static str {
    match approval {
        Approval::PreApproved => "allow",
        Approval::Ask => "approval",
        Approval::Blocked => "block",
    }
}

#[tokio::test]
async fn every_command_of_the_corpus_is_decided_as_it_should_be() {
    let folder = Folder::new();
    let tool = read_only(&folder.root()).await;
    let entries: Vec<Entry> = serde_json::from_str(include_str!("../../corpus/shell_commands.json")).unwrap();
    let (mut unsafe_allows, mut harmless_refusals, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut exact = 0;
    for entry in &entries {
        let assessment = assess(&tool, &entry.cmd).await;
        let decision = word(assessment.approval);
        let accepted = entry.expect == decision || entry.also_ok.iter().any(|word| word == decision);
        exact += u32::from(entry.expect == decision);
        let line = format!(
            "{} {:?}: {decision}, not {} ({:?})",
            entry.id, entry.cmd, entry.expect, assessment.reason
        );
        match (decision, entry.expect.as_str()) {
            _ if accepted => {}
            ("allow", _) => unsafe_allows.push(line),
            (_, "allow") => harmless_refusals.push(line),
            _ => wrong.push(line),
        }
        assert!(decision == "allow" || assessment.reason.is_some(), "{}: no reason", entry.id);
    }
    println!("{} commands, {exact} decided exactly", entries.len());
    assert_eq!((unsafe_allows, harmless_refusals), (Vec::<String>::new(), Vec::<String>::new()));
    assert_eq!(wrong, Vec::<String>::new());
}
