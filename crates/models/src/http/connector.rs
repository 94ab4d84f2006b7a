//! Opens connections: straight to a host, or through a proxy.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::TryFutureExt;
use futures::future::{BoxFuture, FutureExt};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use llm_do_core::ModelError;
use tower_service::Service;

use super::HttpSettings;
use super::connection::Connection;
use super::failure::{self, Unresolved};
use super::proxies::{Proxies, Route};
use super::tls::Tls;

/// Connects to the host of an address, within a time.
#[derive(Clone)]
pub(super) struct Connector {
    direct: Direct,
    proxies: Proxies,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(proxies: Proxies, settings: &HttpSettings) -> Self {
        let timeout = settings.connect_timeout;
        Self { direct: Direct::new(timeout, Tls::new(settings)), proxies, timeout }
    }

    async fn connect(self, address: Uri) -> Result<TokioIo<Connection>, ModelError> {
        match tokio::time::timeout(self.timeout, self.open(&address)).await {
            Ok(connection) => connection.map(TokioIo::new),
            Err(_) => Err(failure::too_slow(&address, self.timeout)),
        }
    }

    async fn open(&self, address: &Uri) -> Result<Connection, ModelError> {
        match self.proxies.route(address) {
            Route::Direct => self.direct.open(address).await,
            Route::Forward(proxy) => {
                let connection = self.direct.open(proxy.uri()).await.map_err(failure::proxy_error)?;
                Ok(connection.forwarding())
            }
            Route::Tunnel(proxy) => self.through_tunnel(&proxy, address).await,
            Route::Socks(proxy) => self.through_socks(&proxy, address).await,
        }
    }

    async fn through_tunnel(&self, proxy: &Intercept, address: &Uri) -> Result<Connection, ModelError> {
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.opened(proxy).await?);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let tunnelled = tunnel.call(address.clone()).await;
        let connection = tunnelled.map_err(|error| failure::tunnel_error(&error, proxy.uri(), address))?;
        self.direct.secure(connection.into_inner(), address).await
    }

    async fn through_socks(&self, proxy: &Intercept, address: &Uri) -> Result<Connection, ModelError> {
        let mut socks = SocksV5::new(proxy.uri().clone(), self.opened(proxy).await?);
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let tunnelled = socks.call(with_port(address)).await;
        let connection = tunnelled.map_err(|error| failure::tunnel_error(&error, proxy.uri(), address))?;
        self.direct.secure(connection.into_inner(), address).await
    }

    async fn opened(&self, proxy: &Intercept) -> Result<Opened, ModelError> {
        let connection = self.direct.open(proxy.uri()).await.map_err(failure::proxy_error)?;
        Ok(Opened(Some(TokioIo::new(connection))))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Connection>;
    type Error = ModelError;
    type Future = BoxFuture<'static, Result<TokioIo<Connection>, ModelError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        self.clone().connect(address).boxed()
    }
}

/// Connects straight to a host, secured where its address says `https`.
#[derive(Clone)]
struct Direct {
    tcp: HttpConnector<Resolver>,
    tls: Arc<Tls>,
}

impl Direct {
    fn new(timeout: Duration, tls: Tls) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // A host may have several addresses: the time is shared out among them.
        tcp.set_connect_timeout(Some(timeout));
        Self { tcp, tls: Arc::new(tls) }
    }

    async fn open(&self, address: &Uri) -> Result<Connection, ModelError> {
        let connected = self.tcp.clone().call(address.clone()).await;
        let stream = connected.map_err(|error| failure::connect_error(&error, address))?;
        self.secure(Connection::plain(stream.into_inner()), address).await
    }

    async fn secure(&self, connection: Connection, address: &Uri) -> Result<Connection, ModelError> {
        match address.scheme_str() {
            Some("https") => self.tls.secure(connection, address).await,
            _ => Ok(connection),
        }
    }
}

/// A connection to a proxy, ready to be tunnelled through.
struct Opened(Option<TokioIo<Connection>>);

impl Service<Uri> for Opened {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Connection>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

/// The system's resolver, whose failures can be told from those of connecting.
#[derive(Clone)]
struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = <GaiResolver as Service<Name>>::Response;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        self.0.poll_ready(context).map_err(|_: io::Error| Unresolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        self.0.call(name).map_err(|_: io::Error| Unresolved).boxed()
    }
}

/// Returns the address with its port written out, since SOCKS takes a missing one for that of `https`.
fn with_port(address: &Uri) -> Uri {
    let (Some(host), None, Some("http")) = (address.host(), address.port(), address.scheme_str()) else {
        return address.clone();
    };
    let written = Uri::builder().scheme("http").authority(format!("{host}:80")).path_and_query("/").build();
    written.unwrap_or_else(|_| address.clone())
}
