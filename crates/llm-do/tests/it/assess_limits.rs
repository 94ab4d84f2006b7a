//! Hostile arguments of every built-in tool are judged within bounds of memory and time.
//!
//! The judgment runs before anybody is asked, so a model that was led astray must not be able to end the process with
//! it. A child process judges arguments with 512 MB of address space; tools that run without a question are run too.
//!
//! `LLM_DO_ASSESS_SECONDS` sets how long (the full volume is 600), `LLM_DO_SEED` the first seed.

#![cfg(target_os = "linux")]

use llm_do::project::LoadedProjectExt;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use llm_do::Runtime;
use llm_do::approval::VerdictKind;
use llm_do::testing::{Script, says};
use llm_do_runtime::{ContentStore, DescriptorSettings, Descriptors, FdId, FdSource};
use llm_do_testing::{Chance, TestDir};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// Set for the child process: the directory of its project.
const CHILD: &str = "LLM_DO_TEST_ASSESS_CHILD";
/// The address space of the child, in KiB.
const MEMORY_KIB: u64 = 512 * 1024;
/// How long one judgment may take.
const MAX_TIME: Duration = Duration::from_secs(5);

const MANIFEST: &str = r#"{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}"#;
const MAIN: &str = "---\nname: main\ntoolsets: [filesystem_project, shell_readonly, dynamic_agents, process, stderr, \
    file_descriptors, pocket_calculator]\n---\nYou are main.\n";
const OPERATOR: &str = "---\nname: operator\ntoolsets: [shell_file_ops]\n---\nYou run commands.\n";

/// The tools that are judged, each with the agent that has it.
const TOOLS: [(&str, &str); 22] = [
    ("edit_file", "main"),
    ("edit_file", "main"),
    ("edit_file", "main"),
    ("write_file", "main"),
    ("fd_to_file", "main"),
    ("agent_create", "main"),
    ("shell", "main"),
    ("shell", "operator"),
    ("read_file", "main"),
    ("list_files", "main"),
    ("search_files", "main"),
    ("read_fd", "main"),
    ("grep_fd", "main"),
    ("list_fd", "main"),
    ("close_fd", "main"),
    ("agent_call", "main"),
    ("agent_list", "main"),
    ("spawn", "main"),
    ("fork", "main"),
    ("goto", "main"),
    ("write_stderr", "main"),
    ("calculator", "main"),
];
/// Those of them that run without a question and without effects, and so are run as well.
const FREE: [&str; 7] =
    ["read_file", "list_files", "search_files", "read_fd", "grep_fd", "list_fd", "calculator"];

#[test]
fn hostile_arguments_end_no_process_before_anybody_is_asked() {
    if let Some(path) = std::env::var_os(CHILD) {
        return judge_until_the_time_is_over(Path::new(&path));
    }
    let folder = TestDir::new();
    write_project(folder.path());
    let script = format!("ulimit -v {MEMORY_KIB} && exec \"$0\" --exact --nocapture {}", test_name());
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, folder.path())
        // Each further arena of the allocator would take 64 MiB of the address space.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let last = fs::read_to_string(folder.join("last-case")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}; last case: {last}\n{text}\n{errors}", output.status);
    println!("{}", text.lines().find(|line| line.contains("judgments")).unwrap());
}

fn test_name() -> &'static str {
    "assess_limits::hostile_arguments_end_no_process_before_anybody_is_asked"
}

fn write_project(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("project.json", MANIFEST);
    write("main.agent", MAIN);
    write("operator.agent", OPERATOR);
    write("empty.txt", "");
    write("x.txt", "x");
    write("words.txt", &"some words, and äöü\n".repeat(5_000));
    write("wide.txt", &"a".repeat(4 * 1024 * 1024));
    write("lines.txt", &"\n".repeat(1024 * 1024));
    write("mixed.txt", &"aB1 \n".repeat(100_000));
    fs::write(folder.join("binary"), [0_u8, 255, 254].repeat(1000)).unwrap();
    fs::create_dir(folder.join("directory")).unwrap();
}

fn seconds() -> u64 {
    std::env::var("LLM_DO_ASSESS_SECONDS").map_or(5, |text| text.parse().unwrap())
}

fn runtime(folder: &Path) -> Runtime {
    let table = Descriptors::new(DescriptorSettings::default(), ContentStore::default());
    for (id, text) in [("fd:1.0", "x\n".to_owned()), ("fd:2.0", "word äö\n".repeat(20_000))] {
        table.add(FdId::from(id), &text, FdSource::ToolResult).unwrap();
    }
    let project = llm_do::load(folder).unwrap_or_else(|problems| panic!("{problems}"));
    project.runtime().model(Script::new([says("done")])).provide(table).build().unwrap()
}

fn judge_until_the_time_is_over(folder: &Path) {
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first: u64 = std::env::var("LLM_DO_SEED").map_or(0, |text| text.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds());
    executor.block_on(async {
        let runtime = runtime(folder);
        let mut figures = Figures::default();
        for (tool, arguments) in known_cases() {
            figures
                .judge(&runtime, folder, &Case { name: tool.to_owned(), tool, agent: "main", arguments })
                .await;
        }
        for seed in first.. {
            if Instant::now() >= until && figures.judged >= TOOLS.len() as u64 {
                break;
            }
            figures.judge(&runtime, folder, &Case::random(seed)).await;
        }
        println!("{}", figures.summary());
    });
}

/// One call to be judged.
struct Case {
    name: String,
    tool: &'static str,
    agent: &'static str,
    arguments: Value,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let (tool, agent) = *chance.one_of(&TOOLS);
        Self { name: format!("seed {seed}: {tool}"), tool, agent, arguments: arguments(tool, &mut chance) }
    }
}

/// Arguments that once took all memory, or come near to what is allowed.
fn known_cases() -> Vec<(&'static str, Value)> {
    let multiply = json!({"old": "x", "new": "x".repeat(25), "all": true});
    let classes = "\\pL".repeat(300_000);
    vec![
        ("edit_file", json!({"path": "x.txt", "edits": vec![multiply; 10]})),
        ("edit_file", json!({"path": "lines.txt", "edits": [{"old": "\n", "new": "", "all": true}]})),
        ("write_file", json!({"path": "lines.txt", "content": "a\n".repeat(256 * 1024)})),
        ("write_file", json!({"path": "new.txt", "content": "\n".repeat(4 * 1024 * 1024)})),
        ("fd_to_file", json!({"fd": "fd:2.0", "path": "lines.txt", "mode": "append"})),
        ("grep_fd", json!({"fd": "fd:2.0", "pattern": classes})),
        ("search_files", json!({"path": "words.txt", "pattern": classes})),
        ("list_files", json!({"pattern": "{a,b}".repeat(100_000)})),
    ]
}

#[derive(Default)]
struct Figures {
    judged: u64,
    run: u64,
    decisions: BTreeMap<&'static str, u64>,
    slowest: (Duration, String),
    slowest_run: (Duration, String),
}

impl Figures {
    async fn judge(&mut self, runtime: &Runtime, folder: &Path, case: &Case) {
        let Case { name, tool, agent, arguments } = case;
        fs::write(folder.join("last-case"), name).unwrap();
        let clock = Clock::start();
        let verdict = runtime.run(*tool, arguments.clone()).as_agent(*agent).judge().await;
        self.note(clock.elapsed(), name);
        assert!(!verdict.reason.contains("panicked"), "{name}: {verdict:?}");
        *self.decisions.entry(verdict.decision.as_str()).or_default() += 1;
        self.judged += 1;
        if FREE.contains(tool) && verdict.decision == VerdictKind::Allow {
            fs::write(folder.join("last-case"), format!("{name}, run")).unwrap();
            let started = Instant::now();
            let _ = runtime.run(*tool, arguments.clone()).as_agent(*agent).await;
            self.slowest_run = self.slowest_run.clone().max((started.elapsed(), name.clone()));
            self.run += 1;
        }
    }

    fn note(&mut self, time: Duration, case: &str) {
        assert!(time < MAX_TIME, "{case} took {time:?}");
        self.slowest = self.slowest.clone().max((time, case.to_owned()));
    }

    fn summary(&self) -> String {
        let Self { judged, run, decisions, slowest, slowest_run } = self;
        format!("{judged} judgments {decisions:?}, slowest {slowest:?}; {run} runs, slowest {slowest_run:?}")
    }
}

/// Time as it passes, or as the processor spends it if that is less: others may keep the machine busy.
struct Clock(Instant, Duration);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), processor_time())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed().min(processor_time() - self.1)
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

fn arguments(tool: &str, chance: &mut Chance) -> Value {
    let known = match tool {
        "edit_file" => json!({"path": path(chance), "edits": edits(chance)}),
        "write_file" => json!({"path": path(chance), "content": long_text(chance)}),
        "fd_to_file" => {
            let mode = *chance.one_of(&["write", "append", "x"]);
            json!({"fd": fd(chance), "path": path(chance), "mode": mode})
        }
        "agent_create" => new_agent(chance),
        "shell" => json!({"command": command(chance)}),
        "read_file" => json!({"path": path(chance), "offset": number(chance), "max_chars": number(chance)}),
        "list_files" => json!({"pattern": pattern(chance), "limit": number(chance)}),
        "search_files" => {
            let path = *chance.one_of(&["x.txt", "words.txt", "directory", "binary"]);
            json!({"path": path, "pattern": pattern(chance), "glob": pattern(chance), "context": number(chance)})
        }
        "read_fd" => json!({"fd": fd(chance), "start": number(chance), "count": number(chance)}),
        "grep_fd" => json!({"fd": fd(chance), "pattern": pattern(chance), "context": number(chance)}),
        "close_fd" => json!({"fd": "fd:9.9"}),
        "agent_call" => json!({"agent": text(chance), "input": text(chance)}),
        "spawn" => json!({"prompt": text(chance), "program": text(chance)}),
        "fork" => json!({"prompts": (0..chance.below(200)).map(|_| text(chance)).collect::<Vec<_>>()}),
        "goto" => json!({"message": text(chance), "position": number(chance)}),
        "write_stderr" => json!({"text": long_text(chance)}),
        "calculator" => json!({"expression": expression(chance), "precision": number(chance)}),
        _ => json!({}),
    };
    if chance.percent(10) { broken(known, chance) } else { known }
}

/// Takes arguments that fit, and puts something else in place of one.
fn broken(known: Value, chance: &mut Chance) -> Value {
    let Value::Object(mut fields) = known else { return known };
    let keys: Vec<String> = fields.keys().cloned().chain(["unknown".to_owned()]).collect();
    fields.insert(chance.one_of(&keys).clone(), any_value(chance, 4));
    fields.into()
}

fn any_value(chance: &mut Chance, depth: usize) -> Value {
    let below = chance.below(if depth == 0 { 1 } else { 8 });
    match chance.below(6) {
        0 => Value::Null,
        1 => json!(chance.percent(50)),
        2 => json!(number(chance)),
        3 => json!(text(chance)),
        4 => (0..below).map(|_| any_value(chance, depth - 1)).collect(),
        _ => (0..below)
            .map(|index| (format!("k{index}"), any_value(chance, depth - 1)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

fn number(chance: &mut Chance) -> u64 {
    *chance.one_of(&[0, 1, 2, 20, 1_000, u64::from(u32::MAX), 1 << 53, i64::MAX.unsigned_abs(), u64::MAX])
}

fn fd(chance: &mut Chance) -> &'static str {
    chance.one_of::<&str>(&["fd:1.0", "fd:2.0", "fd:2.0", "fd:9.9", "", "ref:x"])
}

fn path(chance: &mut Chance) -> String {
    const FILES: [&str; 12] = [
        "x.txt",
        "words.txt",
        "wide.txt",
        "lines.txt",
        "mixed.txt",
        "empty.txt",
        "binary",
        "new.txt",
        "directory",
        "new/deep/a.txt",
        "main.agent",
        "project.json",
    ];
    match chance.below(8) {
        0 => text(chance),
        1 => format!("{}x", "d/".repeat(size(chance, 3_000))),
        2 => format!("{}x", "../".repeat(size(chance, 3_000))),
        _ => (*chance.one_of(&FILES)).to_owned(),
    }
}

/// A size that is small most of the time.
fn size(chance: &mut Chance, most: usize) -> usize {
    match chance.below(4) {
        0 => chance.below(most.max(1)),
        1 => chance.below((most / 100).max(2)),
        _ => chance.below(20),
    }
}

fn text(chance: &mut Chance) -> String {
    const PIECES: [&str; 14] = [
        "x",
        "a",
        "\n",
        "some words",
        "ä",
        "🦀",
        "\u{202e}",
        "\0",
        "\\",
        "\"",
        "{{",
        "${x}",
        "---\n",
        "\u{feff}",
    ];
    let piece = *chance.one_of(&PIECES);
    piece.repeat(size(chance, 20_000))
}

fn long_text(chance: &mut Chance) -> String {
    let piece = *chance.one_of(&["a", "\n", "a\n", "aB1 \n", "é"]);
    match chance.below(3) {
        0 => piece.repeat(chance.below(1024 * 1024 / piece.len())),
        1 => piece.repeat(chance.below(100_000)),
        _ => text(chance),
    }
}

/// Edits that find something, most of them many times, and put more in its place.
fn edits(chance: &mut Chance) -> Value {
    const OLD: [&str; 10] = ["x", "a", "\n", "aB1", "aa", "some", "B", " ", "ä", "absent"];
    let count = *chance.one_of(&[1, 1, 2, 3, 10, 10, 30, 200, 201]);
    let old = *chance.one_of(&OLD);
    let edit = |chance: &mut Chance| {
        let old = if chance.percent(80) { old } else { *chance.one_of(&OLD) };
        let new = match chance.below(4) {
            0 => old.to_owned(),
            1 => old.repeat(1 + size(chance, 500)),
            2 if count <= 3 => long_text(chance),
            _ => text(chance).chars().take(200).collect(),
        };
        json!({"old": old, "new": new, "all": chance.percent(80)})
    };
    (0..count).map(|_| edit(chance)).collect()
}

fn pattern(chance: &mut Chance) -> String {
    const PARTS: [&str; 30] = [
        "a",
        ".",
        ".*",
        "(a|b)*",
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "\\w{500}",
        "\\pL",
        "(?i)\\w",
        "[^\\pL]",
        "(?x) a",
        "(",
        ")",
        "[",
        "{",
        "}",
        "a{,5}",
        "\\",
        "(?:",
        "|",
        "^",
        "$",
        "\\b",
        "**/",
        "*",
        "?",
        "[!a]",
        "{a,b}",
        "{a,{b,c}}",
        "\\x{10FFFF}",
    ];
    let mut pattern = String::new();
    for _ in 0..1 + chance.below(6) {
        let part = *chance.one_of(&PARTS);
        pattern.push_str(&part.repeat(1 + size(chance, 3_000)));
    }
    pattern
}

fn expression(chance: &mut Chance) -> String {
    const PARTS: [&str; 16] = [
        "(",
        ")",
        "1",
        "9**",
        "9**9**9",
        "factorial(170)",
        "factorial(1e300)",
        "-",
        "+",
        "1e308*",
        "sqrt(",
        "min(1,",
        "_",
        "0x",
        "gcd(1e15,",
        "round(1,1e9)",
    ];
    (0..chance.below(60)).map(|_| (*chance.one_of(&PARTS)).to_owned()).collect()
}

fn command(chance: &mut Chance) -> String {
    const PARTS: [&str; 26] = [
        "ls",
        "cat x.txt",
        "grep -rn a .",
        "find . -name '*.txt'",
        "git status",
        "git log",
        "sort words.txt",
        "mv a b",
        "rm x",
        "|",
        "&&",
        "||",
        ";",
        "'",
        "\"",
        "$(",
        "`",
        "\\",
        "{a,b}",
        "~",
        "*",
        "--",
        "-",
        "../",
        "/etc/passwd",
        "\u{2028}",
    ];
    let mut command = String::new();
    for _ in 0..1 + chance.below(10) {
        let part = *chance.one_of(&PARTS);
        command.push_str(&part.repeat(1 + size(chance, 1_000)));
        command.push(' ');
    }
    command
}

fn new_agent(chance: &mut Chance) -> Value {
    let names = |chance: &mut Chance| (0..size(chance, 500)).map(|_| text(chance)).collect::<Vec<_>>();
    let mut agent = json!({
        "name": if chance.percent(80) { "poet".to_owned() } else { text(chance) },
        "instructions": if chance.percent(50) { "Write.".to_owned() } else { long_text(chance) },
        "description": text(chance),
    });
    if chance.percent(30) {
        agent["tools"] = names(chance).into();
    }
    if chance.percent(30) {
        agent["toolsets"] = names(chance).into();
    }
    if chance.percent(40) {
        agent["input_schema"] = schema(chance, 8);
    }
    if chance.percent(40) {
        agent["output_schema"] = schema(chance, 8);
    }
    agent
}

fn schema(chance: &mut Chance, depth: usize) -> Value {
    let mut schema = json!({"type": *chance.one_of(&["object", "string", "array", "x"])});
    if chance.percent(30) {
        schema["pattern"] = pattern(chance).into();
    }
    if chance.percent(20) {
        schema["$ref"] = json!(*chance.one_of(&["#", "#/properties/a", "#/$defs/x", "http://127.0.0.1:9/x"]));
    }
    if chance.percent(10) {
        schema["enum"] = any_value(chance, 3);
    }
    if depth > 0 && chance.percent(60) {
        schema["properties"] = (0..chance.below(6))
            .map(|index| (format!("p{index}"), self::schema(chance, depth - 1)))
            .collect::<Map<_, _>>()
            .into();
    }
    if depth > 0 && chance.percent(20) {
        schema["allOf"] = (0..chance.below(4)).map(|_| self::schema(chance, depth - 1)).collect();
    }
    schema
}
