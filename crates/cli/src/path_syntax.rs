//! Tells a path that does not exist from a prompt or a command, by how it is written.

/// Returns whether a text that names nothing was meant as a path: `a/b`, `./my notes`, `main.agent`.
pub(crate) fn is_like_path(text: &str) -> bool {
    let endings = [".agent", ".worker", ".yaml", ".yml", ".json", ".toml"];
    let is_relative = ["./", "../"].iter().any(|start| text.starts_with(start));
    let is_one_word = !text.is_empty() && !text.contains(char::is_whitespace);
    let is_named = endings.iter().any(|ending| text.ends_with(ending));
    !text.contains('\n') && (is_relative || (is_one_word && (text.contains(['/', '\\']) || is_named)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_from_a_path() {
        for path in ["a/b", "/srv/x", "./my notes", "../x", "main.agent", "project.yaml", "x.toml", "a\\b"] {
            assert!(is_like_path(path), "{path}");
        }
        for text in
            ["", "Good morning", "hello", "What is 1/2?", "fix main.agent", "read a/b please", "./a\nb"]
        {
            assert!(!is_like_path(text), "{text}");
        }
    }
}
