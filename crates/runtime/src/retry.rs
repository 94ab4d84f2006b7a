//! When a provider that failed is asked again.
//!
//! A retry is another attempt of the same step: it reserves anew, is shown as events of its own, and never repeats a
//! tool. Waits grow twofold, with jitter, unless the provider says how long to wait.

use std::time::Duration;

use llm_do_core::ModelError;

/// How often, and after what waits, a provider that failed is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Requests to one model per turn, the first among them.
    pub attempts: u32,
    /// The wait after the first failure; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait between two attempts, also where the provider asks for a longer one: then it is not asked
    /// again.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, first_wait: Duration::from_millis(500), longest_wait: Duration::from_mins(1) }
    }
}

/// What follows from a failure.
#[derive(Debug, PartialEq)]
pub(crate) enum Retry {
    After(Duration),
    /// Not, for this reason.
    Never(Option<String>),
}

impl RetryPolicy {
    /// Decides after the `attempt`-th request to a model failed. The sample makes callers that failed together come
    /// back apart.
    pub(crate) fn after(&self, attempt: u32, error: &ModelError, sample: u64) -> Retry {
        if !error.is_passing() {
            return Retry::Never(None);
        }
        if attempt >= self.attempts {
            return Retry::Never((attempt > 1).then(|| format!("gave up after {attempt} attempts")));
        }
        match error.retry_after {
            Some(asked) if asked > self.longest_wait => Retry::Never(Some(format!(
                "the provider says to retry after {} s, longer than the {} s that are waited",
                asked.as_secs(),
                self.longest_wait.as_secs()
            ))),
            Some(asked) => Retry::After(asked + share(self.first_wait, 0, 50, sample)),
            None => {
                let doubled =
                    self.first_wait.saturating_mul(1 << (attempt - 1).min(20)).min(self.longest_wait);
                Retry::After(share(doubled, 80, 120, sample).min(self.longest_wait))
            }
        }
    }
}

/// A part of a duration, between two percentages.
fn share(whole: Duration, least: u32, most: u32, sample: u64) -> Duration {
    // The remainder is below the range, so it fits.
    let percent = least + u32::try_from(sample % u64::from(most - least + 1)).unwrap_or(0);
    whole.saturating_mul(percent) / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm_do_core::ModelErrorKind;

    fn failed(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError { retry_after: retry_after.map(Duration::from_secs), ..ModelError::new(kind, "no") }
    }

    fn wait(attempt: u32, sample: u64) -> Duration {
        match RetryPolicy::default().after(attempt, &failed(ModelErrorKind::Overloaded, None), sample) {
            Retry::After(wait) => wait,
            Retry::Never(reason) => panic!("{reason:?}"),
        }
    }

    #[test]
    fn waits_grow_whatever_the_jitter() {
        assert_eq!((wait(1, 0), wait(1, 40)), (Duration::from_millis(400), Duration::from_millis(600)));
        assert!((1..4).all(|attempt| wait(attempt, 40) < wait(attempt + 1, 0)));
    }

    #[test]
    fn a_provider_that_says_how_long_is_obeyed_up_to_a_limit() {
        let policy = RetryPolicy::default();
        let after = |seconds| policy.after(1, &failed(ModelErrorKind::RateLimit, Some(seconds)), 50);
        assert_eq!(after(7), Retry::After(Duration::from_millis(7_250)));
        let Retry::Never(Some(reason)) = after(61) else { panic!() };
        assert_eq!(reason, "the provider says to retry after 61 s, longer than the 60 s that are waited");
    }

    #[test]
    fn only_what_may_pass_is_tried_again_and_not_for_ever() {
        let policy = RetryPolicy::default();
        for kind in
            [ModelErrorKind::Auth, ModelErrorKind::Quota, ModelErrorKind::TimedOut, ModelErrorKind::Invalid]
        {
            assert_eq!(policy.after(1, &failed(kind, None), 0), Retry::Never(None), "{kind:?}");
        }
        let last = policy.after(5, &failed(ModelErrorKind::Network, None), 0);
        assert_eq!(last, Retry::Never(Some("gave up after 5 attempts".to_owned())));
    }
}
