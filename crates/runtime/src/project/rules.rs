//! Approval rules of one agent, compiled. The strictest of all that match wins, whatever their order.

use globset::{GlobBuilder, GlobMatcher};
use llm_do_core::{Approval, ApprovalRule, Name};

use crate::project::plan::CallTarget;

/// The approval rules of one agent. They belong to its plan and touch nothing that is shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<(Pattern, Approval)>);

/// The longest glob, in bytes. The library panics at one that is too large or too deep for its regexes, and one
/// of this length cannot be.
const MAX_GLOB_LEN: usize = 256;

/// A name, or a glob over names.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Most patterns are plain names, and a glob is dear to compile.
    Name(String),
    Glob(GlobMatcher),
}

impl Pattern {
    /// Compiles a pattern.
    pub(crate) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.chars().all(|c| c.is_ascii_alphanumeric() || "_-. :/".contains(c)) {
            return Ok(Self::Name(pattern.to_owned()));
        }
        if pattern.len() > MAX_GLOB_LEN {
            return Err(format!("a glob has more than {MAX_GLOB_LEN} bytes"));
        }
        let glob = GlobBuilder::new(pattern).build().map_err(|error| error.to_string())?;
        Ok(Self::Glob(glob.compile_matcher()))
    }

    /// Returns whether it is a name, and no glob.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// Returns whether a name fits.
    pub(crate) fn is_match(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Glob(glob) => glob.is_match(name),
        }
    }
}

impl Rules {
    /// Compiles rules.
    pub(crate) fn compile(rules: &[ApprovalRule]) -> Result<Self, String> {
        let compiled = rules.iter().map(|rule| Ok((Pattern::compile(&rule.pattern)?, rule.approval)));
        compiled.collect::<Result<Vec<_>, String>>().map(Self)
    }

    /// Returns the strictest rule that matches the name or `toolset.name`.
    pub(crate) fn strictest(&self, name: &str, toolset: Option<&Name>) -> Option<Approval> {
        self.strictest_of(name, toolset.map(|toolset| format!("{toolset}.{name}")).as_deref())
    }

    /// Returns the strictest rule for a call: by the name that the model uses, or by toolset and own name.
    pub(crate) fn strictest_for(&self, called: &Name, target: &CallTarget) -> Option<Approval> {
        let name = target.ruled_name(called);
        let own = target.own_name.as_ref().unwrap_or(name);
        let toolset = target.definition.toolset.as_ref();
        self.strictest_of(name, toolset.map(|toolset| format!("{toolset}.{own}")).as_deref())
    }

    fn strictest_of(&self, name: &str, qualified: Option<&str>) -> Option<Approval> {
        let matches = |pattern: &Pattern| {
            pattern.is_match(name) || qualified.is_some_and(|name| pattern.is_match(name))
        };
        self.0.iter().filter(|(pattern, _)| matches(pattern)).map(|(_, approval)| *approval).max()
    }
}

/// Returns the approval that the rules of an agent give a tool: by the name that its model calls, or by toolset and the
/// tool's own name. The strictest rule that matches counts; rules that cannot be read match nothing.
pub fn approval_by_rules(
    rules: &[ApprovalRule],
    called: &Name,
    toolset: Option<&Name>,
    own: &Name,
) -> Option<Approval> {
    let rules = Rules::compile(rules).ok()?;
    rules.strictest_of(called, toolset.map(|toolset| format!("{toolset}.{own}")).as_deref())
}

/// Returns whether a pattern means a tool: by the name that a model calls, or by toolset and the tool's own name. A
/// pattern that cannot be read means nothing.
pub fn pattern_means_tool(pattern: &str, called: &Name, toolset: Option<&Name>, own: &Name) -> bool {
    let qualified = toolset.map(|toolset| format!("{toolset}.{own}"));
    Pattern::compile(pattern).is_ok_and(|pattern| {
        pattern.is_match(called) || qualified.is_some_and(|qualified| pattern.is_match(&qualified))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_too_large_to_compile_is_refused() {
        let deep = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(Pattern::compile(&deep(127)).is_ok());
        assert!(Pattern::compile(&deep(300)).is_err());
        assert!(Pattern::compile(&"{a,b}*?".repeat(100_000)).is_err());
    }

    #[test]
    fn the_strictest_rule_wins_in_any_order() {
        let rule = |pattern: &str, approval| ApprovalRule { pattern: pattern.into(), approval };
        let loose = rule("write_*", Approval::PreApproved);
        let strict = rule("files.*", Approval::Blocked);
        for rules in [[loose.clone(), strict.clone()], [strict, loose]] {
            let rules = Rules::compile(&rules).unwrap();
            assert_eq!(rules.strictest("write_file", Some(&"files".into())), Some(Approval::Blocked));
            assert_eq!(rules.strictest("write_file", Some(&"other".into())), Some(Approval::PreApproved));
            assert_eq!(rules.strictest("read_file", Some(&"other".into())), None);
        }
    }
}
