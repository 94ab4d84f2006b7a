//! A provider for tests: it answers as its script says, also badly.
//!
//! One script serves two stages. [`MockProvider`] is a server on a port of this machine, for tests of the whole
//! way; it needs real time. [`FakeTransport`] stands in for the network without a socket, so that stalls of an
//! hour pass at once in virtual time (`#[tokio::test(start_paused = true)]`). [`StrictProvider`] has no script: it
//! refuses requests that the real providers refuse.

mod fake;
mod request;
mod response;
mod server;
mod steps;
mod strict;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use fake::FakeTransport;
use parking_lot::Mutex;
pub use request::MockRequest;
pub use response::{Drip, Fault, Generated, MockResponse};
pub use server::MockProvider;
pub use strict::{MockAnswer, MockApi, ProviderFault, StrictProvider, StrictRequest};

/// What both stages know: the script, and the requests so far.
struct Script {
    responses: Vec<MockResponse>,
    requests: Mutex<Vec<MockRequest>>,
    begun: AtomicUsize,
}

impl Script {
    fn new(responses: impl IntoIterator<Item = MockResponse>) -> Arc<Self> {
        let responses: Vec<MockResponse> = responses.into_iter().collect();
        assert!(!responses.is_empty(), "a provider needs at least one response");
        Arc::new(Self { responses, requests: Mutex::default(), begun: AtomicUsize::new(0) })
    }

    /// Returns the response that is due. The last one is repeated.
    fn due(&self) -> &MockResponse {
        let due = self.begun.load(Ordering::SeqCst).min(self.responses.len() - 1);
        &self.responses[due]
    }

    /// Goes on in the script and returns the response that was due.
    fn take(&self) -> &MockResponse {
        let due = self.begun.fetch_add(1, Ordering::SeqCst).min(self.responses.len() - 1);
        &self.responses[due]
    }

    fn note(&self, request: MockRequest) {
        self.requests.lock().push(request);
    }

    fn requests(&self) -> Vec<MockRequest> {
        self.requests.lock().clone()
    }
}
