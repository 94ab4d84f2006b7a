//! The server that all tests share, and the project of the example on it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

use crate::support::{Ran, Sandbox};

/// The protocols that the server speaks, by the providers of the example.
pub const PROTOCOLS: [&str; 3] = ["local-chat", "local-responses", "local-messages"];

/// The folder of the example.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/local-model")
}

/// The example's own command.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(example().join("run"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server, until it is dropped or this process ends: it ends with its stdin.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    /// Starts a server.
    pub fn start() -> Self {
        let mut child = command(&["--serve", "--setup-timeout", "240"]).spawn().unwrap();
        // It says little, but a pipe that nobody reads must not fill up.
        let mut stderr = child.stderr.take().unwrap();
        let told = std::thread::spawn(move || {
            let mut told = String::new();
            stderr.read_to_string(&mut told).map(|_| told)
        });
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        if !address.is_empty() {
            return Self { child, address: address.trim().to_owned() };
        }
        let status = child.wait().unwrap();
        let told = told.join().unwrap().unwrap();
        panic!("the example cannot serve its model ({status}):\n{told}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Returns the address of the server that all tests share.
pub fn shared() -> &'static str {
    static SHARED: OnceLock<Mutex<Server>> = OnceLock::new();
    static ADDRESS: OnceLock<String> = OnceLock::new();
    let server = SHARED.get_or_init(|| Mutex::new(Server::start()));
    ADDRESS.get_or_init(|| server.lock().unwrap().address.clone())
}

/// The project of the example on the shared server.
pub struct Local {
    sandbox: Sandbox,
    model: String,
}

impl Local {
    /// The project, its model asked by one protocol.
    pub fn new(protocol: &str) -> Self {
        Self { sandbox: project(shared()), model: format!("{protocol}:smollm2") }
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        Self { sandbox: self.sandbox.file(name, text), ..self }
    }

    /// Writes a file that is not text.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.sandbox.path(name), bytes).unwrap();
    }

    /// Runs a command of the binary on the project; the first argument is the command.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    pub fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Ran {
        let short = ["--set", "agents.greeter.model_settings.max_tokens=24", "--model", &self.model];
        let all: Vec<&str> =
            [arguments[0], "."].iter().chain(&arguments[1..]).chain(&short).copied().collect();
        self.sandbox.run_with(&all, stdin)
    }

    /// Runs the greeter and reads the events.
    pub fn events(&self, arguments: &[&str]) -> Events {
        let all: Vec<&str> = ["run", "--output", "jsonl"].iter().chain(arguments).copied().collect();
        let mut lines = self.run(&all).ended(0).lines();
        let result = lines.pop().unwrap();
        assert_eq!((&result["type"], &result["status"]), (&"result".into(), &"done".into()), "{result}");
        Events(lines)
    }
}

/// The example's project, with its server at an address.
pub fn project(address: &str) -> Sandbox {
    let text = |name: &str| std::fs::read_to_string(example().join(name)).unwrap();
    let manifest = text("project.yaml").replace("http://127.0.0.1:8080", address);
    let sandbox = Sandbox::new().file("project.yaml", &manifest);
    ["greeter.agent", "card.agent", "offline.yaml"]
        .into_iter()
        .fold(sandbox, |sandbox, name| sandbox.file(name, &text(name)))
}

/// What `--output jsonl` gave.
#[derive(Debug)]
pub struct Events(pub Vec<Value>);

impl Events {
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.0.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The pieces of text, in the order in which they came.
    pub fn deltas(&self) -> Vec<&str> {
        self.of("text_delta").into_iter().map(|event| event["text"].as_str().unwrap()).collect()
    }

    /// The answers of the runs.
    pub fn answers(&self) -> Vec<&str> {
        self.of("run_finished").into_iter().map(|event| event["output"].as_str().unwrap()).collect()
    }

    /// The input tokens of each answer, cached ones among them. The server may close an idle connection just as it is
    /// used again: such an attempt fails, is repeated, and is not an answer.
    pub fn input_tokens(&self) -> Vec<u64> {
        let count = |usage: &Value, key: &str| usage[key].as_u64().unwrap_or(0);
        let total =
            |usage: &Value| count(usage, "input") + count(usage, "cache_read") + count(usage, "cache_write");
        let answers = self.of("model_response").into_iter().filter(|event| event.get("error").is_none());
        answers.map(|event| total(&event["usage"])).collect()
    }
}
