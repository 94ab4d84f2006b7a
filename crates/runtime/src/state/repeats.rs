//! Notices a model that makes the same failing call again and again.
//!
//! Only calls in a row count: a failing call that the next turn does not repeat is forgotten, and so is everything after
//! a call that changed something (a test may pass after an edit) and after a message of the user. Denied calls are
//! remembered over turns without them, since each of them bothers a person.

use std::collections::{HashMap, HashSet};

use llm_do_core::Digest;

/// A call, by name and canonical arguments.
type CallKey = (String, Digest);

/// Equal failing calls of one agent call.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    failures: HashMap<CallKey, u32>,
    denied: HashSet<CallKey>,
    /// Calls that failed in the current turn.
    current: HashSet<CallKey>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// It succeeded, and cannot have changed anything.
    Succeeded,
    /// It succeeded, and may have changed something.
    Changed,
    Failed,
    Denied,
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
    /// Counts how a call ended.
    pub(crate) fn count(&mut self, name: &str, arguments: Digest, ended: CallEnd, limit: u32) -> Advice {
        if matches!(ended, CallEnd::Succeeded | CallEnd::Changed) && self.failures.is_empty() {
            return Advice::New;
        }
        let key = (name.to_owned(), arguments);
        match ended {
            CallEnd::Changed => {
                self.reset();
                return Advice::New;
            }
            CallEnd::Succeeded => {
                self.failures.remove(&key);
                return Advice::New;
            }
            CallEnd::Denied => drop(self.denied.insert(key.clone())),
            CallEnd::Failed => {}
        }
        self.current.insert(key.clone());
        let count = self.failures.entry(key).or_insert(0);
        *count += 1;
        match *count {
            count if count >= limit => Advice::Stop(count),
            1 => Advice::New,
            count => Advice::Tell(count),
        }
    }

    /// Ends a turn: what failed earlier and was not repeated in it is forgotten, unless it was denied.
    pub(crate) fn end_turn(&mut self) {
        let (current, denied) = (&self.current, &self.denied);
        self.failures.retain(|key, _| current.contains(key) || denied.contains(key));
        self.current.clear();
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays turns of calls, each a name and how it ended, and returns what is advised about the last call.
    fn advice(turns: &[&[(&str, CallEnd)]]) -> Advice {
        let mut repeats = Repeats::default();
        let mut last = Advice::New;
        for turn in turns {
            for (name, ended) in *turn {
                last = repeats.count(name, Digest::hash("{}"), *ended, 3);
            }
            repeats.end_turn();
        }
        last
    }

    use CallEnd::{Changed, Denied, Failed, Succeeded};

    #[test]
    fn the_second_equal_failure_in_a_row_is_told_and_the_third_stops() {
        assert_eq!(advice(&[&[("a", Failed)]]), Advice::New);
        assert_eq!(advice(&[&[("a", Failed)], &[("a", Failed)]]), Advice::Tell(2));
        assert_eq!(advice(&[&[("a", Failed)], &[("a", Failed)], &[("a", Failed)]]), Advice::Stop(3));
        assert_eq!(advice(&[&[("a", Failed), ("a", Failed), ("a", Failed)]]), Advice::Stop(3));
        let with_others = [("b", Succeeded), ("a", Failed)];
        assert_eq!(advice(&[&with_others, &with_others, &with_others]), Advice::Stop(3));
    }

    #[test]
    fn a_success_a_change_and_another_turn_in_between_begin_the_count_again() {
        assert_eq!(advice(&[&[("a", Failed)], &[("a", Succeeded)], &[("a", Failed)]]), Advice::New);
        let edit_and_test = [("edit", Changed), ("test", Failed)];
        assert_eq!(advice(&[&edit_and_test[..]; 5]), Advice::New);
        assert_eq!(advice(&[&[("test", Failed)], &[("edit", Changed)], &[("test", Failed)]]), Advice::New);
        assert_eq!(advice(&[&[("a", Failed)], &[("b", Failed)], &[("a", Failed)]]), Advice::New);
        assert_eq!(advice(&[&[("a", Failed)], &[("look", Succeeded)], &[("a", Failed)]]), Advice::New);
    }

    #[test]
    fn denials_are_counted_over_turns_without_them_until_something_changes() {
        let nagging: [&[(&str, CallEnd)]; 5] = [
            &[("a", Denied)],
            &[("look", Succeeded)],
            &[("a", Denied)],
            &[("look", Succeeded)],
            &[("a", Denied)],
        ];
        assert_eq!(advice(&nagging), Advice::Stop(3));
        let changing: [&[(&str, CallEnd)]; 3] = [&[("a", Denied)], &[("edit", Changed)], &[("a", Denied)]];
        assert_eq!(advice(&changing), Advice::New);
    }
}
