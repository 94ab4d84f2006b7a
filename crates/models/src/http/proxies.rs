//! Decides through which proxy an address is reached.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use llm_do_core::{ModelError, ModelErrorKind};

use super::HttpSettings;

/// The user's proxies. Most users have none.
#[derive(Clone)]
pub(super) struct Proxies(Option<Arc<Matcher>>);

/// The way to a host.
pub(super) enum Route {
    /// Straight to it.
    Direct,
    /// To a proxy that passes each request on.
    Forward(Intercept),
    /// To a proxy that opens a tunnel for `CONNECT`.
    Tunnel(Intercept),
    /// To a proxy that opens a tunnel for SOCKS 5.
    Socks(Intercept),
}

impl Proxies {
    /// Reads the addresses of the proxies. One that cannot be read is an error, since going around a proxy may
    /// be the last thing that its user wants.
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, ModelError> {
        let http = checked("HTTP_PROXY", settings.http_proxy.as_deref())?;
        let https = checked("HTTPS_PROXY", settings.https_proxy.as_deref())?;
        if http.is_empty() && https.is_empty() {
            return Ok(Self(None));
        }
        let no = settings.no_proxy.clone().unwrap_or_default();
        Ok(Self(Some(Arc::new(Matcher::builder().http(http).https(https).no(no).build()))))
    }

    /// Returns the way to an address.
    pub(super) fn route(&self, address: &Uri) -> Route {
        let Some(proxy) = self.proxy_of(address) else { return Route::Direct };
        match (proxy.uri().scheme_str(), address.scheme_str()) {
            (Some("socks5" | "socks5h"), _) => Route::Socks(proxy),
            (_, Some("https")) => Route::Tunnel(proxy),
            _ => Route::Forward(proxy),
        }
    }

    /// Returns what a request must tell the proxy that passes it on.
    pub(super) fn authorization(&self, address: &Uri) -> Option<HeaderValue> {
        match self.route(address) {
            Route::Forward(proxy) => proxy.basic_auth().cloned(),
            _ => None,
        }
    }

    fn proxy_of(&self, address: &Uri) -> Option<Intercept> {
        let matcher = self.0.as_ref()?;
        if is_this_machine(address.host()?) { None } else { matcher.intercept(address) }
    }
}

/// Returns a proxy's address if it can be read. The error does not show it: it may hold a password.
fn checked<'a>(variable: &str, proxy: Option<&'a str>) -> Result<&'a str, ModelError> {
    let Some(proxy) = proxy else { return Ok("") };
    let refused = |why: &str| {
        Err(ModelError::new(
            ModelErrorKind::Invalid,
            format!("the proxy in `{variable}` (or `ALL_PROXY`) {why}"),
        ))
    };
    let matcher = Matcher::builder().all(proxy).build();
    let anywhere = Uri::from_static("http://host.invalid/");
    match matcher.intercept(&anywhere).as_ref().and_then(|proxy| proxy.uri().scheme_str()) {
        Some("http" | "https" | "socks5" | "socks5h") => Ok(proxy),
        Some(_) => refused("speaks SOCKS 4; use `http://`, `https://` or `socks5://`"),
        None => refused("has no readable address, such as `http://proxy.example:3128`"),
    }
}

/// Returns whether a host is this machine by its loopback address or name.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback()) || host.eq_ignore_ascii_case("localhost")
}
