//! How long it takes to read, check and link a project of many agents.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

use std::path::PathBuf;

use divan::Bencher;
use divan::counter::ItemsCount;
use llm_do_project::{NoToolsets, load};

fn main() {
    divan::main();
}

/// Each agent names two others; every third has a typed input with a prompt, every fifth a rule and limits.
#[divan::bench(args = [10, 100, 1_000])]
fn agents(bencher: Bencher<'_, '_>, count: usize) {
    let folder = Folder::with(count);
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| load(&folder.0, &NoToolsets).expect("a valid project"));
}

struct Folder(PathBuf);

impl Folder {
    fn with(count: usize) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("llm-do-load-{}-{count}", std::process::id())));
        let agents = folder.0.join("agents");
        std::fs::create_dir_all(&agents).expect("a folder can be made");
        let manifest = r#"{"version": 1, "model": "test:echo", "entry": {"agent": "agent_0"}, "agent_files": ["agents/*.agent"]}"#;
        std::fs::write(folder.0.join("project.json"), manifest).expect("a file can be written");
        for number in 0..count {
            let path = agents.join(format!("agent_{number}.agent"));
            std::fs::write(path, agent(number, count)).expect("a file can be written");
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn agent(number: usize, count: usize) -> String {
    let (one, other) = ((number + 1) % count, (number * 7 + 3) % count);
    let other = if other == one { (other + 1) % count } else { other };
    let typed = "input_schema:\n  type: object\n  properties:\n    topic: {type: string}\n    words: {type: integer, minimum: 1}\n  required: [topic]\nprompt: \"{{ topic }} in {{ words }} words\"\n";
    let limited = format!("approval:\n  agent_{one}: pre_approved\nlimits:\n  turns: 5\n  cost: 0.5\n");
    format!(
        "---\nname: agent_{number}\ndescription: Does part {number} of the work.\nmodel: test:echo\ntoolsets:\n  - agent_{one}\n  - agent_{other}\n{}{}---\nDo part {number} of the work, and leave the rest to others.\n",
        if number.is_multiple_of(3) { typed } else { "" },
        if number.is_multiple_of(5) { limited.as_str() } else { "" },
    )
}
