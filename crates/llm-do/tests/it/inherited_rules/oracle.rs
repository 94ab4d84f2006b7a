//! What `main` may do, worked out from its file without the runtime: own matching of patterns, own order of rules.

use llm_do::tools::Access;

/// An approval as it is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    PreApproved,
    Ask,
    Blocked,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::PreApproved => "pre_approved",
            Self::Ask => "ask",
            Self::Blocked => "blocked",
        }
    }
}

/// A tool as the creator holds it.
#[derive(Debug, Clone)]
pub(crate) struct HeldTool {
    pub(crate) toolset: String,
    /// Its name in the toolset, prefix included.
    pub(crate) own: String,
    /// Its name without the prefix.
    pub(crate) base: &'static str,
    /// The name by which the creator's model calls it.
    pub(crate) called: String,
    /// The access that the creator's file demands for it.
    pub(crate) demanded: Option<Access>,
    /// Whether it can be had alone only.
    pub(crate) alone: bool,
}

/// The creator, as its file describes it.
#[derive(Debug, Clone)]
pub(crate) struct Creator {
    pub(crate) tools: Vec<HeldTool>,
    pub(crate) rules: Vec<(String, Level)>,
    pub(crate) manual_only: Vec<String>,
}

impl Creator {
    pub(crate) fn is_blocked(&self, tool: &HeldTool) -> bool {
        self.level(tool) == Some(Level::Blocked)
    }

    pub(crate) fn asks(&self, tool: &HeldTool) -> bool {
        self.level(tool) == Some(Level::Ask)
    }

    pub(crate) fn is_manual_only(&self, tool: &HeldTool) -> bool {
        self.manual_only.iter().any(|pattern| means(pattern, tool))
    }

    pub(crate) fn called(&self, own: &str) -> &str {
        &self.tools.iter().find(|tool| tool.own == own).unwrap().called
    }

    pub(crate) fn tool(&self, toolset: Option<&str>, own: &str) -> Option<&HeldTool> {
        self.tools.iter().find(|tool| Some(tool.toolset.as_str()) == toolset && tool.own == own)
    }

    fn level(&self, tool: &HeldTool) -> Option<Level> {
        self.rules.iter().filter(|(pattern, _)| means(pattern, tool)).map(|(_, level)| *level).max()
    }
}

fn means(pattern: &str, tool: &HeldTool) -> bool {
    matches(pattern, &tool.called) || matches(pattern, &format!("{}.{}", tool.toolset, tool.own))
}

/// Matches `*`, `?` and `{a,b}`, as the guide describes patterns.
fn matches(pattern: &str, text: &str) -> bool {
    let (head, rest) = match pattern.chars().next() {
        None => return text.is_empty(),
        Some(head) => (head, &pattern[head.len_utf8()..]),
    };
    match head {
        '*' => (0..=text.len()).any(|cut| matches(rest, &text[cut..])),
        '?' => !text.is_empty() && matches(rest, &text[1..]),
        '{' => {
            let (choices, rest) = rest.split_once('}').unwrap();
            choices.split(',').any(|choice| matches(&format!("{choice}{rest}"), text))
        }
        plain => text.strip_prefix(plain).is_some_and(|text| matches(rest, text)),
    }
}

#[test]
fn the_oracle_matches_patterns_as_they_are_described() {
    for (pattern, text, expected) in [
        ("read_*", "read_notes", true),
        ("read_*", "a.read_notes", false),
        ("*.read_?otes", "a.read_notes", true),
        ("{read,write}_file", "write_file", true),
        ("{read,write}_file", "edit_file", false),
        ("write_file", "write_files", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}
