//! What the network needs to know of the user's machine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Environment;

/// How providers are reached.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The proxy of `http` addresses: `http`, `https` or `socks5`, with `user:password@` where it wants them.
    pub http_proxy: Option<String>,
    /// The proxy of `https` addresses.
    pub https_proxy: Option<String>,
    /// The hosts that are reached directly: names with their subdomains, addresses, networks, or `*`.
    ///
    /// This machine itself never goes through a proxy.
    pub no_proxy: Option<String>,
    /// A file of trusted certificates, which replaces those of the system.
    pub certificate_file: Option<PathBuf>,
    /// Directories of trusted certificates, which replace those of the system.
    pub certificate_directories: Vec<PathBuf>,
    /// How long a connection may take, from the name of the host to the end of the TLS handshake.
    pub connect_timeout: Duration,
}

impl HttpSettings {
    /// Reads the usual variables: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` in either case, and
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    ///
    /// Only the user's own count: a project must not choose who reads the traffic.
    pub fn from_environment(environment: &Environment) -> Self {
        let own = |name: &str| {
            let variable = environment.get(name).filter(|variable| !variable.is_projects)?;
            Some(variable.value.trim().to_owned())
        };
        // The lower case goes first, as in curl: some servers set `HTTP_PROXY` from a header of a request.
        let either = |name: &str| own(&name.to_lowercase()).or_else(|| own(name));
        let all = either("ALL_PROXY");
        let directories = own("SSL_CERT_DIR").unwrap_or_default();
        Self {
            http_proxy: either("HTTP_PROXY").or_else(|| all.clone()),
            https_proxy: either("HTTPS_PROXY").or(all),
            no_proxy: either("NO_PROXY"),
            certificate_file: own("SSL_CERT_FILE").map(PathBuf::from),
            certificate_directories: std::env::split_paths(&directories)
                .filter(|path| !path.as_os_str().is_empty())
                .collect(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Returns the passwords in the addresses of the proxies.
    pub(crate) fn passwords(&self) -> Vec<String> {
        let proxies = [&self.http_proxy, &self.https_proxy].into_iter().flatten();
        let users = proxies.filter_map(|proxy| {
            let authority = proxy.split_once("://").map_or(proxy.as_str(), |(_, rest)| rest);
            authority.rsplit_once('@').map(|(user, _)| user)
        });
        let passwords =
            users.filter_map(|user| user.split_once(':')).map(|(_, password)| password.to_owned());
        passwords.collect()
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self::from_environment(&Environment::empty())
    }
}

// A proxy's address may hold a password.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("http_proxy", &self.http_proxy.is_some())
            .field("https_proxy", &self.https_proxy.is_some())
            .field("no_proxy", &self.no_proxy)
            .field("certificate_file", &self.certificate_file)
            .field("certificate_directories", &self.certificate_directories)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}
