//! A provider whose answers are fed by the test, piece by piece: no test has to guess how fast a text comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use llm_do_testing::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::tui::support::AtTerminal;

/// How long a request may take to come.
const LIMIT: Duration = Duration::from_secs(30);

/// A server of Chat Completions on a port of this machine.
pub struct FedProvider {
    address: String,
    arriving: Receiver<FedAnswer>,
    waiting: Vec<FedAnswer>,
}

/// A request, and the answer that it is given.
pub struct FedAnswer {
    pub request: Value,
    stream: TcpStream,
}

impl FedProvider {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, arriving) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = FedAnswer::accept(stream.unwrap());
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { address, arriving, waiting: Vec::new() }
    }

    /// Starts the binary, whose agents ask `openai-chat:small`.
    pub fn at_terminal<'a>(&self, sandbox: &'a Sandbox, arguments: &[&str]) -> AtTerminal<'a> {
        let beside = AtTerminal::new(sandbox, arguments).env("OPENAI_BASE_URL", &self.address);
        beside.env("OPENAI_API_KEY", "sk-nobody")
    }

    /// Starts the binary at a usual terminal.
    pub fn begin(&self, sandbox: &Sandbox, arguments: &[&str]) -> TerminalSession {
        self.at_terminal(sandbox, arguments).start()
    }

    /// Waits for a request that holds some words, such as those of an agent's instructions.
    #[track_caller]
    pub fn asked(&mut self, words: &str) -> FedAnswer {
        loop {
            let is_meant = |answer: &FedAnswer| answer.request.to_string().contains(words);
            if let Some(place) = self.waiting.iter().position(is_meant) {
                return self.waiting.remove(place);
            }
            let answer = self.arriving.recv_timeout(LIMIT);
            self.waiting.push(answer.unwrap_or_else(|_| panic!("nobody asked with `{words}`")));
        }
    }
}

impl FedAnswer {
    fn accept(mut stream: TcpStream) -> Self {
        let request = read_request(&stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            .unwrap();
        Self { request, stream }
    }

    /// Says a piece of the answer.
    pub fn say(&mut self, text: &str) {
        self.chunk(&json!({"content": text}), &Value::Null);
    }

    /// Ends the answer.
    pub fn end(self) {
        self.finish("stop");
    }

    /// Ends the answer with calls of tools.
    pub fn ask(mut self, calls: &[(&str, Value)]) {
        let call = |(place, (name, arguments)): (usize, &(&str, Value))| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!({"index": place, "id": format!("call-{place}"), "type": "function", "function": function})
        };
        let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
        self.chunk(&json!({"tool_calls": calls}), &Value::Null);
        self.finish("tool_calls");
    }

    fn finish(mut self, reason: &str) {
        self.chunk(&json!({}), &reason.into());
        let tokens = self.request.to_string().len() / 4;
        let usage = json!({"prompt_tokens": tokens, "completion_tokens": 40});
        self.event(&json!({"id": "c", "choices": [], "usage": usage}).to_string());
        self.event("[DONE]");
    }

    fn chunk(&mut self, delta: &Value, finish: &Value) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.event(&json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).to_string());
    }

    fn event(&mut self, data: &str) {
        // Whoever asked may have been stopped.
        let _ = self.stream.write_all(format!("data: {data}\n\n").as_bytes());
    }
}

fn read_request(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap_or_default()
}
