//! Headers that a project or a user adds to requests: they are sent unchanged, and carry no keys.

/// What is wrong with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderProblem {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

/// Headers that carry keys. A project's files are shared and recorded, so they never contain keys.
const WITH_KEYS: [&str; 7] = [
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
];

/// Headers that the connection makes.
const OF_THE_CONNECTION: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns why a header may not be sent.
pub fn header_problem(name: &str, value: &str) -> Option<HeaderProblem> {
    let lower = name.to_ascii_lowercase();
    let problem = |message: String, hint| Some(HeaderProblem { message, hint });
    match () {
        () if !is_token(name) => {
            problem(format!("`{name}` is not a valid header name"), "use letters, digits and `-`")
        }
        () if WITH_KEYS.contains(&lower.as_str()) => problem(
            format!("`{name}` may not be set here, because keys come from the environment"),
            "name the variable that holds the key: `api_key_env` of a provider",
        ),
        () if OF_THE_CONNECTION.contains(&lower.as_str()) => {
            problem(format!("`{name}` may not be set, because the HTTP client sets it"), "leave it out")
        }
        () if value.chars().any(|c| c.is_control() || !c.is_ascii()) => problem(
            format!("the value of `{name}` has characters that are not allowed in a header"),
            "use printable ASCII",
        ),
        () => None,
    }
}

fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 100 && name.bytes().all(allowed)
}
