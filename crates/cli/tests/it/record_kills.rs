//! Runs that are killed at any moment, again while they go on, and then resumed to their end.
//!
//! What happened is also written outside the record: each effect appends a line to a log and syncs it, and so does the
//! program that approves. Whether a call of unknown outcome happened is judged from that log, as a person would.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use llm_do_core::{CallResult, Event, EventBody, Key, ModelResult};
use llm_do_record::{FindError, Reader};
use llm_do_runtime::{UnknownCall, unknown_calls};
use llm_do_testing::{Chance, needs};
use serde_json::{Value, json};

use crate::record_oracle::{check_order, check_questions, check_whole, responses};
use crate::support::{Ran, Sandbox};

/// How often runs of each project are killed.
pub(crate) fn kills() -> u64 {
    std::env::var("LLM_DO_RUN_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// How often a run may be killed while it is resumed.
const MAX_KILLS_OF_RESUME: usize = 3;

/// A project whose tools write into `effects.log`.
struct KilledProject {
    files: Vec<(String, String)>,
    flags: Vec<&'static str>,
    /// What its agents ask instead of scripts.
    provider: Option<TurnProvider>,
}

impl KilledProject {
    fn new(main: &str, replies: &Value) -> Self {
        let project = "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n";
        let files = vec![("project.yaml".into(), project.into())];
        Self { files, flags: vec!["--approve", "all"], provider: None }.agent("main", main, replies)
    }

    /// Adds an agent with a header and a script.
    fn agent(self, name: &str, header: &str, replies: &Value) -> Self {
        let agent = format!("---\nname: {name}\nmodel: script:{name}.yaml\n{header}\n---\nWork.\n");
        let script = json!({"mode": "by_turn", "replies": replies}).to_string();
        self.file(&format!("{name}.agent"), &agent).file(&format!("{name}.yaml"), &script)
    }

    fn file(mut self, name: &str, text: &str) -> Self {
        self.files.retain(|(other, _)| other != name);
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Asks a program about every command.
    fn asking(mut self) -> Self {
        self.flags = vec!["--approve-with", "sh approve.sh"];
        self.file("approve.sh", APPROVING)
    }

    /// Lets a provider answer as the scripts would.
    fn asking_a_provider(mut self) -> Self {
        let mut replies = HashMap::new();
        for (name, text) in &mut self.files {
            if let Some(agent) = name.strip_suffix(".agent") {
                *text = text.replace(&format!("script:{agent}.yaml"), "openai-chat:small");
                *text = text.replace("\nWork.\n", &format!("\n{agent}\n"));
            } else if let Ok(script) = serde_json::from_str::<Value>(text) {
                replies.insert(name.replace(".yaml", ""), script["replies"].clone());
            }
        }
        self.provider = Some(TurnProvider::start(replies));
        self
    }

    /// How many requests its provider had.
    fn requests(&self) -> usize {
        self.provider.as_ref().map_or(0, TurnProvider::requests)
    }

    fn sandbox(&self) -> Sandbox {
        let files = self.files.iter();
        files.fold(Sandbox::new(), |sandbox, (name, text)| sandbox.file(name, text))
    }
}

/// Answers each question, and notes it first.
const APPROVING: &str = "while read -r line; do
  id=$(printf '%s' \"$line\" | sed 's/.*\"id\": *\"\\([^\"]*\\)\".*/\\1/')
  echo \"$id\" | dd of=questions.log oflag=append conv=notrunc,fsync status=none
  printf '{\"id\": \"%s\", \"decision\": \"once\"}\\n' \"$id\"
done
";

/// The header of an agent that may run what writes into the log.
pub(crate) fn shell(approval: &str, others: &str) -> String {
    let rule = |program: &str| {
        format!("{{program: {program}, approval: {approval}, allow_flags: [\"*\"], operands: text}}")
    };
    format!("toolsets:\n  - shell_file_ops: {{rules: [{}, {}]}}\n{others}", rule("echo"), rule("dd"))
}

/// A command that happens once: a line in the log, on disk before the command ends.
pub(crate) fn pay(name: &str) -> Value {
    let command = format!("echo {name} | dd of=effects.log oflag=append conv=notrunc,fsync status=none");
    json!({"shell": {"command": command}})
}

fn call(agent: &str) -> Value {
    json!({ agent: {"input": "go"} })
}

/// Several calls of one turn, as a script lists them.
fn all<const N: usize>(calls: [Value; N]) -> Value {
    let listed = calls.iter().flat_map(|call| call.as_object().unwrap());
    listed.map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect()
}

fn nested() -> KilledProject {
    let header = |others: &str| shell("pre_approved", others);
    KilledProject::new(
        &header("  - outer\n"),
        &json!([{"ask": call("outer")}, {"ask": pay("p-main")}, {"say": "main is done"}]),
    )
    .agent(
        "outer",
        &header("  - inner\n"),
        &json!([{"ask": pay("p-outer")}, {"ask": call("inner")}, {"say": "outer is done"}]),
    )
    .agent(
        "inner",
        &header(""),
        &json!([{"ask": all([pay("p-inner1"), pay("p-inner2")])}, {"say": "inner is done"}]),
    )
}

fn parallel() -> KilledProject {
    let header = shell("pre_approved", "  - left\n  - right\n");
    let asks = all([pay("p-one"), call("left"), pay("p-two"), call("right"), pay("p-three")]);
    KilledProject::new(&header, &json!([{"ask": asks}, {"say": "main is done"}]))
        .agent(
            "left",
            &shell("pre_approved", ""),
            &json!([{"ask": all([pay("p-l1"), pay("p-l2")])}, {"say": "left"}]),
        )
        .agent(
            "right",
            &shell("pre_approved", ""),
            &json!([{"ask": all([pay("p-r1"), pay("p-r2")])}, {"say": "right"}]),
        )
}

fn approvals() -> KilledProject {
    KilledProject::new(
        &shell("ask", "  - helper\n"),
        &json!([{"ask": all([pay("p-one"), call("helper")])}, {"ask": pay("p-two")}, {"say": "main is done"}]),
    )
    .agent("helper", &shell("ask", ""), &json!([{"ask": pay("p-helper")}, {"say": "helped"}]))
    .asking()
}

fn commands() -> KilledProject {
    let two = json!({"shell": {"command": format!(
        "{} && {}",
        pay("p-four-a")["shell"]["command"].as_str().unwrap(),
        pay("p-four-b")["shell"]["command"].as_str().unwrap(),
    )}});
    KilledProject::new(
        &shell("pre_approved", ""),
        &json!([
            {"ask": pay("p-one")}, {"ask": all([pay("p-two"), pay("p-three")])}, {"ask": two}, {"ask": pay("p-five")},
            {"say": "main is done"},
        ]),
    )
}

fn several_agents() -> KilledProject {
    let names = ["plan", "write", "check"];
    let listed: String = names.iter().map(|name| format!("  - {name}\n")).collect();
    let mut turns: Vec<Value> = names.iter().map(|name| json!({"ask": call(name)})).collect();
    turns.push(json!({"ask": all([pay("p-main"), call("write")])}));
    turns.push(json!({"say": "main is done"}));
    let first = KilledProject::new(&shell("pre_approved", &listed), &json!(turns));
    names.iter().enumerate().fold(first, |project, (index, name)| {
        let header = shell("pre_approved", "  - filesystem_project\n");
        let write =
            json!({"write_file": {"path": format!("{name}.txt"), "content": "text ".repeat(200 * index)}});
        // The file is read back, so that a later step depends on an earlier one.
        let read = json!({"read_file": {"path": format!("{name}.txt")}});
        // `write` is called twice, and only once it pays.
        let first = if *name == "write" { read.clone() } else { pay(&format!("p-{name}")) };
        let replies =
            json!([{"ask": write}, {"ask": all([first, read])}, {"say": format!("{name} is done")}]);
        project.agent(name, &format!("{header}approval: {{'*': pre_approved}}"), &replies)
    })
}

const TOOLS: &str = "import os

def pay(name: str) -> str:
    \"\"\"Pays.\"\"\"
    log = os.open('effects.log', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f'{name}\\n'.encode())
    os.fsync(log)
    os.close(log)
    return f'paid {name}'

TOOLS = [pay]
";

fn python() -> KilledProject {
    let pay = |name: &str| json!({"pay": {"name": name}});
    KilledProject::new(
        "tools: [pay]\ntoolsets: [helper]",
        &json!([{"ask": all([pay("p-one"), call("helper")])}, {"ask": pay("p-two")}, {"say": "main is done"}]),
    )
    .agent("helper", "tools: [pay]", &json!([{"ask": pay("p-helper")}, {"say": "helped"}]))
    .file("tools.py", TOOLS)
    .file(
        "project.yaml",
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\npython_files: [tools.py]\n",
    )
}

/// A provider that answers by agent and turn, as it reads them from a request, and counts requests.
struct TurnProvider {
    address: SocketAddr,
    state: Arc<ProviderState>,
}

#[derive(Default)]
struct ProviderState {
    /// What each agent is answered, by turn.
    replies: HashMap<String, Value>,
    requests: AtomicUsize,
    connections: AtomicUsize,
}

impl TurnProvider {
    /// Listens until the tests end.
    fn start(replies: HashMap<String, Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ProviderState { replies, ..ProviderState::default() });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = shared.clone();
                state.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    // A client that was killed is not answered.
                    let _ = stream.and_then(|stream| state.answer(stream));
                    state.connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, state }
    }

    fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Waits until the requests of processes that are gone were read.
    fn wait_until_idle(&self) {
        std::thread::sleep(Duration::from_millis(20));
        while self.state.connections.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl ProviderState {
    /// Answers one request, and closes the connection.
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(&stream);
        let (mut line, mut len) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            let header = line.to_ascii_lowercase();
            len = header.strip_prefix("content-length:").map_or(len, |value| value.trim().parse().unwrap());
            line.clear();
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        let Ok(request) = serde_json::from_slice::<Value>(&body) else { return Ok(()) };
        self.requests.fetch_add(1, Ordering::SeqCst);
        let messages = request["messages"].as_array().unwrap();
        let agent = messages[0]["content"].as_str().unwrap().trim();
        let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
        let answer = streamed(&self.replies[agent][turn]);
        let len = answer.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
        (&stream).write_all(format!("{head}\r\ncontent-length: {len}\r\n\r\n{answer}").as_bytes())
    }
}

/// A reply of a script as Chat Completions streams it.
fn streamed(reply: &Value) -> String {
    let (message, stop) = match &reply["ask"] {
        Value::Null => (json!({"role": "assistant", "content": reply["say"]}), "stop"),
        asked => (json!({"role": "assistant", "tool_calls": tool_calls(asked)}), "tool_calls"),
    };
    let chunk = |delta: &Value, stop: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": stop});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let usage = json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let (first, last) = (chunk(&message, Value::Null), chunk(&json!({}), stop.into()));
    format!("{first}{last}data: {usage}\n\ndata: [DONE]\n\n")
}

fn tool_calls(asked: &Value) -> Value {
    let listed = match asked {
        Value::Array(calls) => calls.clone(),
        call => {
            let (name, arguments) = call.as_object().unwrap().iter().next().unwrap();
            vec![json!({"name": name, "arguments": arguments})]
        }
    };
    let calls = listed.iter().enumerate().map(|(index, call)| {
        let function = json!({"name": call["name"], "arguments": call["arguments"].to_string()});
        json!({"index": index, "id": format!("call-{index}"), "type": "function", "function": function})
    });
    calls.collect()
}

/// How a run goes that nobody disturbs.
struct Undisturbed {
    report: Value,
    effects: Vec<String>,
    /// What each call came to.
    outputs: HashMap<Key, Value>,
    /// How many requests a provider had.
    requests: usize,
    duration: Duration,
}

impl Undisturbed {
    /// What is reported if so many requests were lost, and asked again.
    fn report_after(&self, lost: u64) -> Value {
        let mut report = self.report.clone();
        let requests = report["usage"]["requests"].as_u64().unwrap();
        report["usage"]["requests"] = (requests + lost).into();
        report
    }

    fn new(project: &KilledProject) -> Self {
        let (sandbox, earlier) = (project.sandbox(), project.requests());
        let report = report(&Ran::from(run(&sandbox, project).output().unwrap()).ended(0).json());
        let (effects, requests) = (effects(&sandbox), project.requests() - earlier);
        let count = effects.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(count >= 3 && count == effects.len(), "{effects:?}");
        let outputs = events(&sandbox).iter().filter_map(|event| output_of(event)).collect();
        // Others use the machine too: the shortest of several is how long it takes.
        let durations = (0..3).map(|_| {
            let (sandbox, begun) = (project.sandbox(), Instant::now());
            Ran::from(run(&sandbox, project).output().unwrap()).ended(0);
            begun.elapsed()
        });
        Self { report, effects, outputs, requests, duration: durations.min().unwrap() }
    }
}

fn output_of(event: &Event) -> Option<(Key, Value)> {
    match &event.body {
        EventBody::CallFinished { result: CallResult::Output(output), .. } => {
            Some((event.call.id.clone(), output.to_value()))
        }
        _ => None,
    }
}

/// What two runs must have in common.
fn report(report: &Value) -> Value {
    json!({"status": report["status"], "output": report["output"], "usage": report["usage"]})
}

/// Counts the requests that were in flight at a kill. Each may have been charged, so it counts as one.
fn lost_requests(events: &[Arc<Event>]) -> u64 {
    let is_lost = |event: &&Arc<Event>| match &event.body {
        EventBody::ModelResponse { result: ModelResult::Failed { error }, .. } => {
            error.message == "the run was broken off before the answer was recorded"
        }
        _ => false,
    };
    events.iter().filter(is_lost).count() as u64
}

fn effects(sandbox: &Sandbox) -> Vec<String> {
    let mut lines = log(sandbox, "effects.log");
    lines.sort();
    lines
}

pub(crate) fn log(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn record(sandbox: &Sandbox) -> PathBuf {
    sandbox.state().join("llm-do/record.db")
}

/// The events of the only run, read by a connection of their own; none if there is none yet.
fn events(sandbox: &Sandbox) -> Vec<Arc<Event>> {
    let Some(reader) = Reader::open(record(sandbox)).unwrap() else { return Vec::new() };
    match reader.find("last") {
        Ok(run) => reader.events(run.id, None).unwrap(),
        Err(FindError::NotFound) => Vec::new(),
        Err(error) => panic!("{error:?}"),
    }
}

fn run(sandbox: &Sandbox, project: &KilledProject) -> Command {
    with_flags(sandbox, project, &["run", ".", "go"])
}

fn with_flags(sandbox: &Sandbox, project: &KilledProject, words: &[&str]) -> Command {
    let mut command = sandbox.command(&[words, &project.flags, &["--trust", "--output", "json"]].concat());
    if let Some(provider) = &project.provider {
        command
            .env("OPENAI_BASE_URL", format!("http://{}/v1", provider.address))
            .env("OPENAI_API_KEY", "none");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Begins the run, or goes on with it, as a person would who looks at what happened.
fn go_on(sandbox: &Sandbox, project: &KilledProject, undisturbed: &Undisturbed) -> Command {
    let events = events(sandbox);
    if events.is_empty() {
        return run(sandbox, project);
    }
    let unknown = unknown_calls(&events);
    let answers: Vec<String> = unknown.iter().map(|call| judged(sandbox, call, undisturbed)).collect();
    let flags = answers.iter().flat_map(|answer| ["--unknown", answer]);
    let words: Vec<&str> = ["resume", "last"].into_iter().chain(flags).collect();
    with_flags(sandbox, project, &words)
}

/// What a person says about a call after a look at the log. If it happened in part, the person does the rest.
fn judged(sandbox: &Sandbox, unknown: &UnknownCall, undisturbed: &Undisturbed) -> String {
    let (key, input) = (&unknown.call.id, unknown.input.text());
    let effects: Vec<&String> = undisturbed.effects.iter().filter(|effect| has_word(input, effect)).collect();
    assert!(!effects.is_empty(), "{input}");
    let done = log(sandbox, "effects.log");
    let missing: Vec<&&String> = effects.iter().filter(|effect| !done.contains(effect)).collect();
    if missing.len() == effects.len() {
        return format!("{key}=again");
    }
    let mut file = File::options().append(true).open(sandbox.path("effects.log")).unwrap();
    missing.iter().for_each(|effect| writeln!(file, "{effect}").unwrap());
    format!("{key}=done:{}", undisturbed.outputs[key])
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|other| other == word)
}

/// Kills a process after a while, and waits until everything that it had started is gone too. Returns whether it still ran.
pub(crate) fn kill(mut child: Child, after: Duration, sandbox: &Sandbox) -> bool {
    std::thread::sleep(after);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while has_processes(&sandbox.root()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "what a killed run had started goes on");
        std::thread::sleep(Duration::from_millis(2));
    }
    was_running
}

/// Returns whether a process has its working directory in a project.
fn has_processes(directory: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .map(|process| process.path().join("cwd"))
        .any(|link| std::fs::read_link(link).is_ok_and(|found| found.starts_with(directory)))
}

/// Kills a run, perhaps again while it is resumed, and brings it to its end. Returns how often it was killed.
fn check_killed(project: &KilledProject, undisturbed: &Undisturbed, seed: u64) -> u64 {
    let (mut chance, sandbox) = (Chance::new(seed), project.sandbox());
    let mut moment = || {
        let micros = undisturbed.duration.as_micros() as u64 * 11 / 10;
        Duration::from_micros(chance.below_u64(micros))
    };
    let context = format!("seed {seed}");
    let mut killed = u64::from(kill(run(&sandbox, project).spawn().unwrap(), moment(), &sandbox));
    let mut others = Chance::new(!seed);
    for _ in 0..MAX_KILLS_OF_RESUME {
        check_whole(&record(&sandbox), &context);
        if is_done(&sandbox) || others.below(3) > 0 {
            break;
        }
        killed += u64::from(kill(go_on(&sandbox, project, undisturbed).spawn().unwrap(), moment(), &sandbox));
    }
    let (before, asked) = (events(&sandbox), log(&sandbox, "questions.log").len());
    if let Some(provider) = &project.provider {
        provider.wait_until_idle();
    }
    let requests = project.requests();
    if !is_done(&sandbox) {
        let ran: Ran = go_on(&sandbox, project, undisturbed).output().unwrap().into();
        assert_eq!(ran.code, Some(0), "{context}: {ran:#?}");
        let expected = undisturbed.report_after(lost_requests(&events(&sandbox)));
        assert_eq!(report(&ran.json()), expected, "{context}");
        if project.provider.is_some() {
            // Everything that was answered is read back, and nothing else is asked again.
            let expected = undisturbed.requests - responses(&before);
            assert_eq!(project.requests() - requests, expected, "{context}");
        }
    }
    assert_eq!(effects(&sandbox), undisturbed.effects, "{context}");
    check_whole(&record(&sandbox), &context);
    let after = events(&sandbox);
    assert_eq!(after[..before.len()], before, "{context}: what was recorded remains");
    check_order(&after, &context);
    check_questions(&before, &log(&sandbox, "questions.log")[asked..], &context);
    killed
}

/// Returns whether the record has the end of the run.
fn is_done(sandbox: &Sandbox) -> bool {
    matches!(events(sandbox).last().map(|event| &event.body), Some(EventBody::RunFinished { .. }))
}

fn check(name: &str, project: &KilledProject) {
    let undisturbed = Undisturbed::new(project);
    let (begun, mut killed, mut runs) = (Instant::now(), 0, 0);
    while killed < kills() {
        killed += check_killed(project, &undisturbed, runs);
        runs += 1;
        assert!(runs < 8 * kills(), "{runs} runs were killed {killed} times");
    }
    println!("{name}: {runs} runs, killed {killed} times, {:.1} s", begun.elapsed().as_secs_f64());
}

#[test]
fn a_nested_run() {
    check("nested", &nested());
}

#[test]
fn a_run_with_calls_side_by_side() {
    check("parallel", &parallel());
}

#[test]
fn a_run_with_approvals() {
    check("approvals", &approvals());
}

#[test]
fn a_run_of_commands() {
    check("commands", &commands());
}

#[test]
fn a_run_of_several_agents() {
    check("several agents", &several_agents());
}

#[test]
fn a_run_that_asks_a_provider() {
    check("provider", &nested().asking_a_provider());
}

#[needs(python)]
#[test]
fn a_run_of_python_code() {
    check("python", &python());
}
