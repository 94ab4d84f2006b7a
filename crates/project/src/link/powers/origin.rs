//! The origin of an address: what a person is told about where something goes.

/// Returns scheme, host and port of an address. Credentials, path and query are left out; letters beyond ASCII are
/// shown as escapes, so that a look-alike host does not look alike.
pub(crate) fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let ascii: String = host.chars().flat_map(escaped).collect();
    format!("{}://{ascii}", scheme.to_ascii_lowercase())
}

fn escaped(c: char) -> Vec<char> {
    if c.is_ascii_graphic() { vec![c] } else { c.escape_unicode().collect() }
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(origin("https://LLM.Example.com:8443/v1?a=b"), "https://llm.example.com:8443");
        assert_eq!(origin("http://api.openai.com@evil.example/v1"), "http://evil.example");
        assert_eq!(origin("http://evil.example\\@api.openai.com/"), "http://evil.example");
        assert_eq!(origin("http://api.\u{43e}penai.com"), "http://api.\\u{43e}penai.com");
        assert_eq!(origin("http://127.0.0.1:11434"), "http://127.0.0.1:11434");
    }
}
