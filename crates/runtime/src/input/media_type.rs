//! What kind of file some bytes are.

/// Kinds that are text, besides all `text/`.
const TEXTS: &[&str] = &["json", "xml", "yaml", "toml", "javascript", "sql", "x-sh"];

/// Finds the media type from the content. The name decides only which kind of text a text is.
pub(crate) fn media_type(name: &str, bytes: &[u8]) -> String {
    let is_text = is_text(bytes);
    match infer::get(bytes).map(|kind| kind.mime_type()) {
        // Some formats begin with a few letters, as texts do too.
        Some(kind) if !is_text || is_text_type(kind) || kind == "application/pdf" => kind.to_owned(),
        _ if is_text => kind_of_text(name).to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let is_binary = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}');
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_binary))
}

fn kind_of_text(name: &str) -> &'static str {
    mime_guess::from_path(name).first_raw().filter(|kind| is_text_type(kind)).unwrap_or("text/plain")
}

fn is_text_type(kind: &str) -> bool {
    kind.starts_with("text/") || TEXTS.iter().any(|text| kind.ends_with(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_comes_from_the_content_and_not_from_the_name() {
        assert_eq!(media_type("a.txt", b"\x89PNG\r\n\x1a\n0000"), "image/png");
        assert_eq!(media_type("a.png", b"no picture"), "text/plain");
        assert_eq!(media_type("a.txt", b"%PDF-1.4 and so on"), "application/pdf");
        assert_eq!(media_type("cars.txt", b"BMW and others"), "text/plain");
        assert_eq!(media_type("main.ts", b"let a = 1;"), "text/plain");
        assert_eq!(media_type("a.csv", b"a,b"), "text/csv");
        assert_eq!(media_type("a.json", b"{}"), "application/json");
        assert_eq!(media_type("unknown", "é".as_bytes()), "text/plain");
        assert_eq!(media_type("a.png", &[0xff, 0x00]), "application/octet-stream");
        assert_eq!(media_type("empty.png", b""), "text/plain");
    }
}
