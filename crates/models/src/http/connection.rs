//! A connection: plain or secured, to a host or to the proxy before it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection as Connects};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What requests are written to.
pub(super) struct Connection {
    stream: ConnectionStream,
    is_forwarding: bool,
}

enum ConnectionStream {
    Plain(TcpStream),
    // Within a tunnel through a proxy that itself speaks TLS, one secured connection lies in another.
    Secured(Box<TlsStream<Connection>>),
}

impl Connection {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self { stream: ConnectionStream::Plain(stream), is_forwarding: false }
    }

    pub(super) fn secured(stream: TlsStream<Self>) -> Self {
        Self { stream: ConnectionStream::Secured(Box::new(stream)), is_forwarding: false }
    }

    /// The connection to a proxy that passes requests on, so that each must name its whole address.
    pub(super) fn forwarding(self) -> Self {
        Self { is_forwarding: true, ..self }
    }
}

impl Connects for Connection {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarding)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            ConnectionStream::Secured(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            ConnectionStream::Secured(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            ConnectionStream::Secured(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            ConnectionStream::Plain(stream) => stream.is_write_vectored(),
            ConnectionStream::Secured(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_flush(context),
            ConnectionStream::Secured(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            ConnectionStream::Secured(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
