//! The names of descriptors.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use llm_do_core::Key;
use serde::{Deserialize, Serialize};

/// The name of a descriptor, as a model writes it.
///
/// `fd:3.1` is the result of call 1 of turn 3, `fd:3.1.stdout` a long text in a field of it, `fd:input` the input of a user, `fd:a1` what a parent passed, and
/// `ref:plan` a reference that a model named.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FdId(Arc<str>);

impl FdId {
    /// Names the result of a call by the key of the call: `1/t3/tool/1` is `fd:3.1`.
    ///
    /// An agent call has a table of its own, so the key counts from its last turn on. In a later message of a chat the
    /// message comes first (`2/t3/tool/1` is `fd:2.3.1`). The key of a call that code made inside a tool goes on after a
    /// slash.
    pub fn from_key(key: &Key) -> Self {
        let parts: Vec<&str> = key.split('/').collect();
        let Some((index, turn, call)) = last_turn(&parts) else {
            return Self::from(format!("fd:{}", if key.is_empty() { "0" } else { key }).as_str());
        };
        let message = match parts[..index] {
            [message] if message != "1" && is_number(message) => format!("{message}."),
            _ => String::new(),
        };
        let inner = parts[index + 3..].iter().map(|part| format!("/{part}")).collect::<String>();
        Self::from(format!("fd:{message}{turn}.{call}{inner}").as_str())
    }

    /// Names the input of a user.
    pub fn input() -> Self {
        Self::from("fd:input")
    }

    /// Names what a parent passed, counted from 1.
    pub fn passed(number: usize) -> Self {
        Self::from(format!("fd:a{number}").as_str())
    }

    /// Names a reference.
    pub fn reference(name: &str) -> Self {
        Self::from(format!("ref:{name}").as_str())
    }

    /// Returns the name of a field of what it names.
    pub(crate) fn field(&self, name: &str) -> Self {
        Self::from(format!("{self}.{name}").as_str())
    }

    /// Returns the name with a number behind it, for a second text of that name.
    pub(crate) fn numbered(&self, number: usize) -> Self {
        Self::from(format!("{self}-{number}").as_str())
    }

    /// Returns whether it names a reference.
    pub fn is_reference(&self) -> bool {
        self.0.starts_with("ref:")
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Finds the last `t3/tool/1` in a key.
fn last_turn<'a>(parts: &[&'a str]) -> Option<(usize, &'a str, &'a str)> {
    let found = parts.windows(3).enumerate().rev().find_map(|(index, window)| match window {
        [turn, "tool", call] => turn.strip_prefix('t').map(|turn| (index, turn, *call)),
        _ => None,
    });
    found.filter(|(_, turn, call)| is_number(turn) && is_number(call))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<&str> for FdId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for FdId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FdId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FdId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq<&str> for FdId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_named_by_turn_and_call() {
        let id = |key: &str| FdId::from_key(&Key::from(key)).to_string();
        assert_eq!(id("t3/tool/1"), "fd:3.1");
        assert_eq!(id("1/t3/tool/1"), "fd:3.1");
        assert_eq!(id("2/t3/tool/1"), "fd:2.3.1");
        assert_eq!(id("2/t3/tool/0/t12/tool/4"), "fd:12.4");
        assert_eq!(id("1/t3/tool/0/helper#0a1b.0/t2/tool/1"), "fd:2.1");
    }

    #[test]
    fn a_call_inside_a_tool_has_a_longer_name() {
        let id = |key: &str| FdId::from_key(&Key::from(key)).to_string();
        assert_eq!(id("1/t3/tool/0/count#0a1b2c.0"), "fd:3.0/count#0a1b2c.0");
    }

    #[test]
    fn a_call_outside_any_turn_is_named_by_its_key() {
        assert_eq!(FdId::from_key(&Key::from("1")), "fd:1");
        assert_eq!(FdId::from_key(&Key::root()), "fd:0");
    }
}
