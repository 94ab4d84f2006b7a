//! Notices a model that makes the same failing call again and again.

use std::collections::HashMap;

use llm_do_core::{Digest, Failure};

/// Equal failing calls of one agent call, by name and canonical arguments.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    failures: HashMap<(String, Digest), u32>,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Nothing: it is new.
    New,
    /// Tell the model that it has failed so often.
    Tell(u32),
    /// Stop: it has failed too often.
    Stop(u32),
}

impl Repeats {
    /// Counts how a call ended. A success of the same call forgets its failures.
    pub(crate) fn count(
        &mut self,
        name: &str,
        arguments: Digest,
        failure: Option<&Failure>,
        limit: u32,
    ) -> Advice {
        if failure.is_none() && self.failures.is_empty() {
            return Advice::New;
        }
        let key = (name.to_owned(), arguments);
        if failure.is_none() {
            self.failures.remove(&key);
            return Advice::New;
        }
        let count = self.failures.entry(key).or_insert(0);
        *count += 1;
        match *count {
            1 => Advice::New,
            count if count >= limit => Advice::Stop(count),
            count => Advice::Tell(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm_do_core::FailureKind;

    #[test]
    fn the_second_equal_failure_is_told_and_the_third_stops() {
        let mut repeats = Repeats::default();
        let failure = Failure::new(FailureKind::Tool, "no");
        let mut count = |arguments: &str, failure| repeats.count("t", Digest::of(arguments), failure, 3);
        assert_eq!(count("a", Some(&failure)), Advice::New);
        assert_eq!(count("a", Some(&failure)), Advice::Tell(2));
        assert_eq!(count("b", Some(&failure)), Advice::New);
        assert_eq!(count("a", None), Advice::New);
        assert_eq!(count("a", Some(&failure)), Advice::New);
        assert_eq!(count("a", Some(&failure)), Advice::Tell(2));
        assert_eq!(count("a", Some(&failure)), Advice::Stop(3));
    }
}
