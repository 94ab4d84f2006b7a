//! How long it takes to read, check and link a project of many agents.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

use divan::Bencher;
use divan::counter::ItemsCount;
use llm_do_project::{NoToolsets, load};
use llm_do_testing::TestDir;

fn main() {
    divan::main();
}

/// Each agent names two others; every third has a typed input with a prompt, every fifth a rule and limits.
#[divan::bench(args = [10, 100, 1_000])]
fn agents(bencher: Bencher<'_, '_>, count: usize) {
    let folder = project(count);
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| load(folder.path(), &NoToolsets).expect("a valid project"));
}

fn project(count: usize) -> TestDir {
    let folder = TestDir::new();
    let manifest = r#"{"version": 1, "model": "test:echo", "entry": {"agent": "agent_0"}, "agent_files": ["agents/*.agent"]}"#;
    folder.write("project.json", manifest);
    for number in 0..count {
        folder.write(format!("agents/agent_{number}.agent"), agent(number, count));
    }
    folder
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
