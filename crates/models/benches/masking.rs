//! What the masking of keys costs in a streamed answer.
//!
//! The same answer is read with and without keys to mask, in turns, so that a busy machine disturbs both alike. First
//! from memory, where nothing but decoding and masking happens; then over HTTP from a server in another thread. Time is
//! the CPU time of the reading thread.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use divan::Bencher;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use http::{Request, Response};
use llm_do_core::{Conversation, Message, Model, ModelError, ModelPart, ModelRequest, ModelSettings, Models};
use llm_do_models::{ByteStream, Chunks, DeclaredProvider, Environment, StandardModels, Transport};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

const PROTOCOLS: [&str; 2] = ["anthropic", "openai-chat"];
const DELTAS: usize = 2_000;
/// As much as a connection hands on at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Keys as a person has them who uses several providers. No answer contains them.
const KEYS: [(&str, &str); 3] = [
    ("BOX_KEY", "sk-ant-api03-V9x2LqTz7RkWmB4nYc8JdHs1PfGe5UaXo3Ei6KtQwZ0"),
    ("OPENAI_API_KEY", "sk-proj-7Hq2mZx9TbVw4LkRnC8sJfYd1GePu5AaXo3Ei6KtQwZ0"),
    ("GEMINI_API_KEY", "AIzaSyB7Hq2mZx9TbVw4LkRnC8sJfYd1GePu5Aa"),
];

/// A key that is not masked.
const NO_KEYS: [(&str, &str); 1] = [("BOX_KEY", "none")];

const WORDS: &str = " The parser reads one block at a time, so that a file of any size fits into memory. It keeps the \
    offset of each block, skips those that a filter excludes, and asks for the next one only if the caller still \
    wants it. Errors name the line on which they occurred; a broken block is reported once and then skipped. ";

fn main() {
    // `cargo test --benches` gives no `--bench`: then one round shows that it works.
    let rounds = if std::env::args().any(|word| word == "--bench") { 401 } else { 1 };
    println!("CPU time per delta in nanoseconds, median of {rounds} rounds of {DELTAS} deltas");
    println!("{:34} {:>9} {:>9} {:>8}", "", "no mask", "mask", "more");
    for protocol in PROTOCOLS {
        report(&format!("{protocol}, from memory"), rounds, protocol, Source::memory);
    }
    for protocol in PROTOCOLS {
        report(&format!("{protocol}, over HTTP"), rounds, protocol, Source::http);
    }
    divan::main();
}

fn report(title: &str, rounds: usize, protocol: &str, source: fn(&str) -> Source) {
    let source = source(protocol);
    let readers = [source.reader(protocol, &NO_KEYS), source.reader(protocol, &KEYS)];
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (reader, samples) in readers.iter().zip(&mut samples) {
            let before = cpu_time();
            black_box(reader.read());
            samples.push((cpu_time() - before).as_secs_f64() * 1e9);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let [plain, masked] = samples.map(|samples| median(samples) / DELTAS as f64);
    println!("{title:34} {plain:9.1} {masked:9.1} {:7.2}%", (masked / plain - 1.0) * 100.0);
}

#[divan::bench(args = PROTOCOLS)]
fn without_mask(bencher: Bencher<'_, '_>, protocol: &str) {
    let reader = Source::memory(protocol).reader(protocol, &NO_KEYS);
    bencher.bench_local(|| reader.read());
}

#[divan::bench(args = PROTOCOLS)]
fn with_mask(bencher: Bencher<'_, '_>, protocol: &str) {
    let reader = Source::memory(protocol).reader(protocol, &KEYS);
    bencher.bench_local(|| reader.read());
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("a time after the start")
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Where an answer comes from.
enum Source {
    Memory(Arc<Memory>),
    /// The address of a server.
    Http(String),
}

impl Source {
    fn memory(protocol: &str) -> Self {
        let body = Bytes::from(events(protocol).concat());
        let starts = (0..body.len()).step_by(PIECE_BYTES);
        let pieces = starts.map(|start| body.slice(start..body.len().min(start + PIECE_BYTES)));
        Self::Memory(Arc::new(Memory { pieces: pieces.collect() }))
    }

    /// A server that sends each event by itself.
    fn http(protocol: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let events = Arc::new(events(protocol));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let events = events.clone();
                // The connection ends with the client.
                std::thread::spawn(move || serve(&connection, &events).ok());
            }
        });
        Self::Http(format!("http://{address}"))
    }

    fn reader(&self, protocol: &str, keys: &[(&str, &str)]) -> Reader {
        let base_url = match self {
            Self::Memory(_) => "http://127.0.0.1:9".to_owned(),
            Self::Http(address) => address.clone(),
        };
        let provider = DeclaredProvider {
            name: "box".into(),
            protocol: protocol.into(),
            base_url,
            key_env: Some("BOX_KEY".into()),
            headers: BTreeMap::new(),
            is_users: true,
        };
        let variables = keys.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let models = StandardModels::new(".").environment(variables.collect::<Environment>());
        let models = match self {
            Self::Memory(memory) => models.transport(memory.clone()),
            Self::Http(_) => models,
        };
        Reader {
            model: models.provider(provider).resolve("box:small").expect("a model"),
            executor: Builder::new_current_thread().enable_all().build().expect("an executor"),
            conversation: Conversation::from_messages([Arc::new(Message::user("Hello"))]),
        }
    }
}

/// Asks one model and reads its answers.
struct Reader {
    model: Arc<dyn Model>,
    executor: Runtime,
    conversation: Conversation,
}

impl Reader {
    /// Reads one answer and returns the number of its bytes.
    fn read(&self) -> usize {
        let request = ModelRequest {
            instructions: "",
            conversation: &self.conversation,
            tools: &[],
            server_tools: &[],
            output_schema: None,
            settings: &ModelSettings::default(),
            max_output: None,
        };
        self.executor.block_on(async {
            let mut session = self.model.open();
            let mut parts = session.request(request).await.expect("an answer");
            let mut bytes = 0;
            while let Some(part) = parts.next().await {
                match part.expect("a part") {
                    ModelPart::Text(text) | ModelPart::Thinking(text) => bytes += text.len(),
                    ModelPart::Finished(response) => assert_eq!(response.message.text().len(), bytes),
                    ModelPart::Notice(_) => {}
                }
            }
            assert!(bytes > DELTAS, "the answer is empty");
            bytes
        })
    }
}

/// A transport that answers from memory.
struct Memory {
    pieces: Vec<Bytes>,
}

impl Transport for Memory {
    fn send(&self, _request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        let body = stream::iter(self.pieces.clone()).map(Ok).boxed();
        Box::pin(std::future::ready(Ok(Response::new(body))))
    }
}

/// Answers the requests of one connection.
fn serve(connection: &TcpStream, events: &[String]) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(connection), connection);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        writer.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        for event in events {
            writer.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
        }
        writer.write_all(b"0\r\n\r\n")?;
    }
}

/// Returns the events of an answer in a protocol. Each delta holds a word with the space before it, as tokens do.
fn events(protocol: &str) -> Vec<String> {
    let starts: Vec<usize> = WORDS.match_indices(' ').map(|(start, _)| start).collect();
    let words = starts.windows(2).map(|pair| &WORDS[pair[0]..pair[1]]);
    let deltas: Vec<&str> = words.cycle().take(DELTAS).collect();
    let events: Vec<Value> = match protocol {
        "anthropic" => anthropic(&deltas),
        _ => chat(&deltas),
    };
    let mut events: Vec<String> = events.iter().map(|event| written(protocol, event)).collect();
    if protocol != "anthropic" {
        events.push("data: [DONE]\n\n".to_owned());
    }
    events
}

fn written(protocol: &str, event: &Value) -> String {
    match (protocol, event["type"].as_str()) {
        ("anthropic", Some(kind)) => format!("event: {kind}\ndata: {event}\n\n"),
        _ => format!("data: {event}\n\n"),
    }
}

fn anthropic(deltas: &[&str]) -> Vec<Value> {
    let usage = json!({"input_tokens": 12, "output_tokens": 1});
    let begin = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "small", "content": [], "stop_reason": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let deltas = deltas.iter().map(|delta| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": delta}})
    });
    let end = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": DELTAS}}),
        json!({"type": "message_stop"}),
    ];
    begin.into_iter().chain(deltas).chain(end).collect()
}

fn chat(deltas: &[&str]) -> Vec<Value> {
    let chunk = |delta: Value, reason: Option<&str>| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "small",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let deltas = deltas.iter().map(|delta| chunk(json!({"content": delta}), None));
    deltas.chain([chunk(json!({}), Some("stop"))]).collect()
}
