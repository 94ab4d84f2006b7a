//! A server of few words: it reads requests and writes what it is told.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server saw.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: usize,
    pub(super) requests: Vec<String>,
}

/// A listening server.
pub(super) struct Server {
    pub(super) port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    /// Starts a server that handles each connection, which it numbers, with a function.
    pub(super) async fn start<F, D>(handle: F) -> Self
    where
        F: Fn(TcpStream, usize, Log) -> D + Send + 'static,
        D: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let log = Log(Arc::clone(&seen));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = log.connected();
                tokio::spawn(handle(stream, number, log.clone()));
            }
        });
        Self { port, seen }
    }

    /// Starts a server that gives the same answer to every request and keeps connections open.
    pub(super) async fn answering(answer: &'static str) -> Self {
        Self::start(move |stream, _, log| answer_all(stream, log, answer)).await
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/v1/messages", self.port)
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

/// Where a connection's handler notes what it read.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<Seen>>);

impl Log {
    fn connected(&self) -> usize {
        let mut seen = self.0.lock().unwrap();
        seen.connections += 1;
        seen.connections - 1
    }

    /// Reads one request and notes it; `None` at the end of the connection.
    pub(super) async fn read(&self, stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
        let request = read_request(stream).await?;
        self.0.lock().unwrap().requests.push(request.clone());
        Some(request)
    }
}

/// Answers every request of a connection alike.
pub(super) async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, log: Log, answer: &str) {
    while log.read(&mut stream).await.is_some() {
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    while bytes.len() < head + length {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request was cut");
    }
    Some(String::from_utf8(bytes).unwrap())
}
