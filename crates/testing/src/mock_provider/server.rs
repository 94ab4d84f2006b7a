//! The script on a port of this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::response::{Fault, MockResponse};
use super::steps::{Step, steps};
use super::{MockRequest, Script};

/// How long nobody listens where the script refuses a connection. Whoever is refused is not seen, so that the
/// port cannot know when to open again: a client that waits less than this is refused more than once.
pub(super) const REFUSED_FOR: Duration = Duration::from_millis(100);

/// How many connections may wait to be accepted.
const WAITING: u32 = 128;

/// A provider on a port of this machine. It ends with this value.
///
/// ```
/// # use llm_do_testing::{MockProvider, MockResponse};
/// # async fn example() {
/// let provider = MockProvider::start([MockResponse::status(503), MockResponse::events("data: {}\n\n")]).await;
/// // ... requests to provider.base_url() ...
/// assert_eq!(provider.requests()[0].header("x-api-key"), "test-key");
/// # }
/// ```
pub struct MockProvider {
    address: SocketAddr,
    script: Arc<Script>,
    task: JoinHandle<()>,
}

impl MockProvider {
    /// Starts a provider that answers the n-th request with the n-th response; the last one is repeated.
    pub async fn start(responses: impl IntoIterator<Item = MockResponse>) -> Self {
        let script = Script::new(responses);
        let elsewhere =
            |response: &MockResponse| matches!(response.fault, Some(Fault::DnsFailure | Fault::TlsFailure));
        assert!(!script.responses.iter().any(elsewhere), "such a fault needs a `FakeTransport`");
        let socket = reserved(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port must be free");
        let address = socket.local_addr().expect("a bound socket has an address");
        let port = match script.due().fault {
            Some(Fault::RefuseConnection) => Port::Closed(socket),
            _ => Port::Open(socket.listen(WAITING).expect("a bound socket can listen")),
        };
        let task = tokio::spawn(serve(port, address, Arc::clone(&script)));
        Self { address, script, task }
    }

    /// Returns the address, such as `http://127.0.0.1:40001`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far. A refused connection brings none.
    pub fn requests(&self) -> Vec<MockRequest> {
        self.script.requests()
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A wish to stop listening; it is answered when nobody listens any more.
type Closing = mpsc::Sender<oneshot::Sender<()>>;

/// The provider's port, which is taken even while nobody listens on it.
enum Port {
    Open(TcpListener),
    Closed(TcpSocket),
}

impl Port {
    /// Listens, when the script refuses connections no more.
    async fn opened(self, script: &Script) -> TcpListener {
        match self {
            Self::Open(listener) => listener,
            Self::Closed(socket) => {
                while script.due().fault == Some(Fault::RefuseConnection) {
                    tokio::time::sleep(REFUSED_FOR).await;
                    script.take();
                }
                socket.listen(WAITING).expect("a bound socket can listen")
            }
        }
    }
}

async fn serve(mut port: Port, address: SocketAddr, script: Arc<Script>) {
    let (closing, mut wishes) = mpsc::channel::<oneshot::Sender<()>>(1);
    let mut connections = JoinSet::new();
    loop {
        let listener = port.opened(&script).await;
        let closed = loop {
            tokio::select! {
                Some(closed) = wishes.recv() => break closed,
                stream = accepted(&listener) => {
                    connections.spawn(answer_all(stream, Arc::clone(&script), closing.clone()));
                }
            }
        };
        drop(listener);
        port = Port::Closed(reserved(address).expect("the port was in use by this provider alone"));
        // Whoever asked may have gone.
        let _gone = closed.send(());
    }
}

/// Takes a port without listening on it.
fn reserved(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accepted(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().await.expect("a connection can be accepted");
    stream.set_nodelay(true).expect("a connection can be set up");
    stream
}

/// Answers the requests of one connection. An error means that the client has gone.
async fn answer_all(mut stream: TcpStream, script: Arc<Script>, closing: Closing) -> io::Result<()> {
    let mut read = BytesMut::new();
    while let Some(request) = next_request(&mut stream, &mut read).await? {
        let response = script.take();
        script.note(request);
        match response.fault {
            Some(Fault::HangBeforeHeaders) => std::future::pending().await,
            Some(_) => return stream.set_zero_linger(),
            None => {}
        }
        let is_last = script.due().fault == Some(Fault::RefuseConnection);
        if is_last {
            stop_listening(&closing).await;
        }
        if !answer(&mut stream, response, is_last).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Closes the port before a client can know that it will be closed.
async fn stop_listening(closing: &Closing) {
    let (closed, is_closed) = oneshot::channel();
    if closing.send(closed).await.is_ok() {
        // The provider may be ending.
        let _ended = is_closed.await;
    }
}

/// Sends a response; returns whether the connection can serve another.
async fn answer(stream: &mut TcpStream, response: &MockResponse, is_last: bool) -> io::Result<bool> {
    let status = StatusCode::from_u16(response.status).expect("a script holds valid statuses");
    let mut head =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("Status"));
    for (name, value) in response.headers_at(Timestamp::now()) {
        head += &format!("{name}: {value}\r\n");
    }
    let is_chunked = response.promised_length().is_none();
    head += if is_chunked { "transfer-encoding: chunked\r\n" } else { "" };
    head += if is_last { "connection: close\r\n\r\n" } else { "\r\n" };
    stream.write_all(head.as_bytes()).await?;
    for step in steps(response) {
        match step {
            Step::Send(piece) if is_chunked => stream.write_all(&chunk(&piece)).await?,
            Step::Send(piece) => stream.write_all(&piece).await?,
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Cut => return Ok(false),
        }
    }
    if is_chunked {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    Ok(!is_last)
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

/// Reads one request, or nothing at the end of the connection.
async fn next_request(stream: &mut TcpStream, read: &mut BytesMut) -> io::Result<Option<MockRequest>> {
    let end_of_head = loop {
        if let Some(place) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break place + 4;
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(read.split_to(end_of_head).to_vec()).expect("the head of a request is text");
    let mut lines = head.trim_end().split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let headers: HeaderMap = lines.map(header).collect();
    let length = headers.get("content-length").map_or(0, |length| {
        length.to_str().ok().and_then(|length| length.parse().ok()).expect("the length of a body is a number")
    });
    Ok(Some(MockRequest {
        method: first.next().unwrap_or_default().to_owned(),
        path: first.next().unwrap_or_default().to_owned(),
        headers,
        body: body(stream, read, length).await?,
        at: Instant::now(),
    }))
}

fn header(line: &str) -> (HeaderName, HeaderValue) {
    let (name, value) = line.split_once(':').expect("a header has a colon");
    let name = HeaderName::try_from(name).expect("a header has a valid name");
    (name, HeaderValue::try_from(value.trim()).expect("a header has a valid value"))
}

async fn body(stream: &mut TcpStream, read: &mut BytesMut, length: usize) -> io::Result<Bytes> {
    while read.len() < length {
        if stream.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(read.split_to(length).freeze())
}
