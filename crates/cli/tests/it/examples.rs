//! The examples, each on its script, in a copy of its folder.
//!
//! Those with Python files need `python3` (3.10 or newer). Where there is none they say so and pass.

use std::path::Path;

use llm_do_testing::{MockProvider, needs};
use serde_json::{Value, json};

use crate::providers::says;
use crate::support::{Ran, Sandbox};

pub(crate) fn copied(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    copy(&source, &sandbox.root());
    sandbox
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Checks an example and runs it on its script.
fn run(sandbox: &Sandbox, more: &[&str]) -> Ran {
    sandbox.run(&["check", "."]).ended(0).told_nothing();
    let arguments = ["run", ".", "--model", "script:offline.yaml", "-v"];
    sandbox.run(&arguments.iter().chain(more).copied().collect::<Vec<_>>())
}

#[test]
fn greeter_greets() {
    run(&copied("greeter"), &["Good morning"]).ended(0).said("Good morning! How can I help you today?\n");
}

#[test]
fn approvals_asks_before_it_writes() {
    let sandbox = copied("approvals");
    let ran = run(&sandbox, &["--approve", "all"])
        .ended(0)
        .said("The note is written, judged and saved as notes/today.md.\n");
    ran.told("[editor > critic]").told("[editor > write_file]");
    assert!(std::fs::read_to_string(sandbox.path("notes/today.md")).unwrap().starts_with("Ships"));
    let denied = run(&copied("approvals"), &[]).ended(5);
    denied.said("The note is written and judged, and it was not saved.\n").told("nobody could be asked");
}

#[test]
fn bootstrapping_creates_its_helper_and_finds_it_again() {
    let sandbox = copied("bootstrapping");
    let denied = run(&sandbox, &[]).ended(5);
    denied.said("Nobody may help me, so there is no summary.\n").told("denied: `agent_create` must ask");
    for _ in 0..2 {
        let ran = run(&sandbox, &["--approve", "all"]).ended(0).told("[main > agent_call() > summarizer]");
        assert!(ran.stdout.starts_with("From the notes:"), "{ran:?}");
    }
    let created = std::fs::read_to_string(sandbox.path("agents/generated/summarizer.agent")).unwrap();
    assert!(created.contains("toolsets:\n") && created.contains("You sum up text files."), "{created}");
    assert!(!sandbox.path("agents/generated/summarizer.agent.old-1").exists(), "nothing has changed");
    let listed = sandbox.run(&["list", "."]).ended(0).stdout;
    assert!(listed.contains("summarizer  (generated)"), "{listed}");
}

#[test]
fn code_analyser_reads_freely_and_changes_nothing() {
    let sandbox = copied("code-analyser");
    let ran = run(&sandbox, &[]).ended(0).told("9 sample/counter.py").told("blocked: `shell` may not run");
    assert!(ran.stdout.contains("`count` returns how often each word"), "{ran:?}");
    assert!(sandbox.path("sample/counter.py").exists());
    let reach = sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    assert!(
        reach.contains("shell  (shell_readonly, write access): runs, asks or is blocked as the tool judges"),
        "{reach}"
    );
}

#[test]
fn delegation_hands_out_attachments() {
    let ran = run(&copied("delegation"), &["--output", "jsonl"]).ended(0);
    let requests = ran.lines().into_iter().filter(|event| event["type"] == "model_request");
    let letters: Vec<String> = requests
        .filter(|event| event["path"] == "clerk > reader")
        .map(|event| event["messages"].to_string())
        .collect();
    assert_eq!(letters.len(), 2);
    assert!(letters.iter().all(|letter| letter.contains("text/plain")), "{letters:?}");
}

#[test]
fn recursive_summarizer_calls_itself() {
    let ran =
        run(&copied("recursive-summarizer"), &[]).ended(0).told("[summarizer > summarizer] -> The train");
    assert!(ran.stdout.starts_with("Errands for Monday"), "{ran:?}");
}

#[test]
fn task_decomposer_answers_with_a_plan() {
    let ran = run(&copied("task-decomposer"), &[]).ended(0);
    assert_eq!(ran.json()["steps"][0]["result"], "Soup and risotto");
}

#[test]
fn web_search_is_part_of_the_reach() {
    let sandbox = copied("web-search");
    run(&sandbox, &[]).ended(0);
    let reach = sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    assert!(reach.contains("web_search  (at the provider): runs freely"), "{reach}");
}

#[test]
fn whiteboard_reads_a_picture() {
    let ran = run(&copied("whiteboard"), &["--output", "jsonl"]).ended(0);
    let request = ran
        .lines()
        .into_iter()
        .find(|event| event["type"] == "model_request" && event["path"] == "assistant > reader");
    assert!(request.unwrap()["messages"].to_string().contains("image/png"));
    let sandbox = copied("whiteboard").file("notes.txt", "no picture");
    let given = ["call", ".", "reader", "--input-json", r#"{"input": "Read it."}"#, "--attach", "notes.txt"];
    sandbox
        .run(&[&given[..], &["--model", "script:offline.yaml"]].concat())
        .ended(2)
        .told("does not end with `.png` or `.jpg`");
}

#[test]
fn linking_starts_programs_by_name() {
    let sandbox = copied("linking");
    let ran = run(&sandbox, &["Who is awake at night?"]).ended(0).said("Bees sleep at night, owls hunt.\n");
    let ran = ran.told("[librarian > spawn() > finder > open_book]").told("[librarian > spawn() > writer]");
    assert!(!ran.stderr.contains("read_file"), "{ran:?}");
    let listed = sandbox.run(&["list", "."]).ended(0).stdout;
    assert!(listed.contains("finder") && listed.contains("writer"), "{listed}");
}

#[test]
fn env_info_stands_before_the_instructions() {
    let ran = run(&copied("env-info"), &["Which notes are there?", "--output", "jsonl"]).ended(0);
    let request = ran.lines().into_iter().find(|event| event["type"] == "model_request").unwrap();
    let instructions = request["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("<env>\nplatform: "), "{instructions}");
    let end = "team: The night shift\nfile_map:\n  repairs.txt (30 bytes)\n  shopping.txt (13 bytes)\n</env>\n\n\
        <preload>\n<file path=\"RULES.md\">\n# Rules\n\n- Answer in one sentence.\n- Name the note that you mean.\n</file>\n\
        </preload>\n\nYou are an assistant. Answer from what you were told above, and from nothing else.";
    let told: Vec<&str> = instructions.lines().filter(|line| !line.starts_with("language: ")).collect();
    assert!(told.join("\n").ends_with(end), "{instructions}");
}

#[test]
fn newsroom_runs_as_the_documentation_says() {
    let sandbox = copied("newsroom");
    let ran = sandbox.run(&["run", "."]).ended(0);
    assert!(ran.stdout.starts_with("Ships"), "{ran:?}");
}

#[test]
fn fork_asks_its_children_and_weighs_what_they_say() {
    let ran = run(&copied("fork"), &[]).ended(0).said("Borrow a tent with a roof, and the stall can open.\n");
    ran.told("[main > fork() > main] -> Cost:").told("[main > fork() > main] -> Weather:");
}

#[test]
fn goto_keeps_only_what_it_learned() {
    let ran = run(&copied("goto"), &["--output", "json"]).ended(0);
    assert_eq!(ran.json()["output"], "notes/b.txt names it, the Gannet.");
    assert!(ran.stderr.contains("[main > goto]"), "{ran:?}");
}

#[test]
fn long_results_are_searched_and_passed_on() {
    let ran = run(&copied("long-results"), &[]).ended(0);
    assert!(ran.stdout.starts_with("At 02:07:11 one request took 9 s"), "{ran:?}");
    ran.told("[main > spawn() > reader > read_fd]").told("backup of");
}

#[needs(python)]
#[test]
fn python_calculator_reckons_with_tools_of_a_toolset() {
    let sandbox = copied("python-calculator");
    run(&sandbox, &[])
        .ended(0)
        .said("It takes 334 months, a little under 28 years.\n")
        .told("[reckoner > months_to_reach] -> 334");
    run(&sandbox, &["What are a third and a sixth?"]).ended(0).said("Exactly one half.\n");
    run(&sandbox, &["What are the factors of one?"])
        .ended(0)
        .said("One has no prime factors.\n")
        .told("ValueError: 1 is not between 2 and a million million (tools.py:");
    let listed = sandbox.run(&["list", "."]).ended(0).stdout;
    for words in ["toolset arithmetic", "input yearly_percent: number  The interest of a year; it is paid"] {
        assert!(listed.contains(words), "{listed}");
    }
}

#[needs(python)]
#[test]
fn data_report_takes_a_typed_input_that_makes_its_prompt() {
    let sandbox = copied("data-report");
    let ran = run(&sandbox, &[]).ended(0).told("[main > analyse_table > read_file]");
    assert!(ran.stdout.starts_with("The ferry's week"), "{ran:?}");
    let asked = r#"{"path": "data/ferry.csv", "column": "cars", "top": 99}"#;
    let call =
        ["call", ".", "analyse_table", "--input-json", asked, "--approve", "all", "--model", "test:echo"];
    sandbox.run(&call).ended(2).told("`top`").told("20");
    let asked = asked.replace("99", "1");
    let call = call.map(|word| if word.starts_with('{') { asked.as_str() } else { word });
    let echoed = sandbox.run(&call).ended(0);
    assert!(echoed.stdout.contains("Column: cars\nName the 1 highest rows."), "{echoed:?}");
}

#[needs(python)]
#[test]
fn data_report_stabilised_changes_the_tool_and_no_caller() {
    let sandbox = copied("data-report-stabilised");
    let ran = run(&sandbox, &[]).ended(0).told("[main > analyse_table() > describe_figures]");
    assert_eq!(ran.stdout, run(&copied("data-report"), &[]).stdout);
    let ran = ran.told(r#"{"sum": 3737, "mean": 534, "deviation": 143"#);
    assert!(!ran.stderr.contains("read_file"), "{ran:?}");
    let caller = |sandbox: &Sandbox| std::fs::read_to_string(sandbox.path("agents/main.agent")).unwrap();
    assert_eq!(caller(&sandbox), caller(&copied("data-report")));
}

#[needs(python)]
#[test]
fn research_asks_several_agents_at_once_and_bears_a_failure() {
    let ran = run(&copied("research"), &["--output", "jsonl"]).ended(0);
    let asked = |path: &str| {
        ran.lines().iter().filter(|event| event["type"] == "model_request" && event["path"] == path).count()
    };
    assert_eq!(asked("main > look_into() > researcher"), 3);
    assert_eq!(asked("main > look_into() > writer"), 1);
    assert!(ran.stdout.contains("Who pays for the cables is still open."), "{ran:?}");
}

#[needs(python)]
#[test]
fn deck_review_attaches_each_deck_and_writes_a_report() {
    let sandbox = copied("deck-review");
    let ran = run(&sandbox, &["--output", "jsonl"]).ended(0);
    let requests: Vec<Value> =
        ran.lines().into_iter().filter(|event| event["type"] == "model_request").collect();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert!(request["messages"].to_string().contains("application/pdf"), "{request}");
    }
    let report = std::fs::read_to_string(sandbox.path("reports/night-ferry.md")).unwrap();
    assert_eq!(
        report,
        "# Night Ferry\n\nask again, 3 of 5\n\n- The crew is missing from the costs.\n- The route is free.\n"
    );
    assert!(sandbox.path("reports/seaweed-bricks.md").exists());
    run(&sandbox, &["attic"]).ended(1).told("FileNotFoundError: there are no slides in attic (review.py:");
}

#[needs(python)]
#[test]
fn task_tree_is_as_deep_as_the_manifest_permits() {
    let sandbox = copied("task-tree");
    let ran = run(&sandbox, &[]).ended(0);
    assert_eq!(ran.stdout.lines().count(), 4, "{ran:?}");
    ran.told("and 3 are permitted");
    let short = ["run", ".", "--model", "test:echo", "--input-json", r#"{"task": "a"}"#];
    sandbox.run(&short).ended(2).told("`task`");
    let below = ["--input-json", r#"{"task": "Saw planks", "way": ["Move", "Pack"]}"#];
    let echoed = sandbox.run(&[&short[..4], &below].concat()).ended(0);
    assert!(echoed.stdout.contains("Part of: Move > Pack"), "{echoed:?}");
}

#[needs(python)]
#[test]
fn own_provider_is_asked_by_the_address_key_and_name_of_its_factory() {
    let sandbox = copied("own-provider");
    run(&sandbox, &[]).ended(0).said("Hello from the script; the lighthouse was not asked.\n");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let provider = runtime.block_on(MockProvider::start(vec![says("Hello from afar.")]));
    let mut command = sandbox.command(&["run", "."]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name);
    }
    let address = format!("{}/v1", provider.base_url());
    command.env("LIGHTHOUSE_URL", address).env("LIGHTHOUSE_KEY", "sk-lamp-1");
    let ran: Ran = command.output().unwrap().into();
    ran.ended(0).said("Hello from afar.\n");
    let request = provider.requests().remove(0);
    assert_eq!(request.json()["model"], json!("lighthouse-7b"));
    assert_eq!(request.header("authorization"), "Bearer sk-lamp-1");
}

#[needs(python)]
#[test]
fn notebook_belongs_to_one_call_and_is_closed_after_it() {
    let sandbox = copied("notebook");
    run(&sandbox, &[]).ended(0).said("Both saw a light at sea, and only one of them heard a bell.\n");
    let archive = std::fs::read_to_string(sandbox.path("archive.txt")).unwrap();
    let mut closed: Vec<&str> = archive.lines().collect();
    closed.sort_unstable();
    assert_eq!(closed, ["notes taken: 1", "notes taken: 2"]);
}

#[needs(python)]
#[test]
fn approvals_in_python_are_obeyed_by_the_gate() {
    let sandbox = copied("approvals-in-python");
    let ran = run(&sandbox, &["--approve", "all"]).ended(0);
    let ran = ran.said("The ship lies at berth 3, with a new mast; the dock stays closed.\n");
    ran.told("blocked: `open_dock_gate` may not run")
        .told("blocked: `pay` may not run: the till never holds more than 1000")
        .told("[master > pay] -> paid 400 for a mast");
    let alone = run(&sandbox, &[]).ended(5);
    alone
        .said("There was money for rope only, and the ship has no berth.\n")
        .told("[master > free_berths] -> [3,7]")
        .told("[master > pay] -> paid 20 for rope")
        .told("denied: `assign_berth` must ask")
        .told("denied: `pay` must ask");
}
