//! Says once that a model has been silent for a while: without the status line of a terminal, a server that hangs looks
//! like a program that hangs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use llm_do::event::{Event, EventBody};
use llm_do::model::ModelSettings;
use llm_do::project::LoadedProject;
use llm_do::value::{Key, Name};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::console::Console;
use crate::text::visible_line;

/// How long a model may be silent before it is mentioned.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a model may be silent before its request fails, in seconds, if the agent does not set it.
const DEFAULT_IDLE_TIMEOUT: u64 = 300;

/// The same for an answer that comes as a whole.
const DEFAULT_TIMEOUT: u64 = 1800;

/// Watches the requests of a run.
pub(crate) struct SilenceWatch {
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    patience: Duration,
    /// The time limits of agents, in seconds.
    limits: HashMap<Name, u64>,
    executor: Handle,
    /// The requests without any part of an answer, by their calls.
    waiting: Mutex<HashMap<Key, AbortHandle>>,
}

impl SilenceWatch {
    /// Prepares for the runs of a project. Must be called inside a Tokio runtime, which keeps the time.
    pub(crate) fn new(project: &LoadedProject, console: Arc<Console>) -> Self {
        let outlines = project.project.outline();
        let agents = outlines.iter().filter_map(|outline| outline.agent.as_ref());
        let limits = agents.map(|spec| (spec.name.clone(), limit(&spec.settings)));
        Self::telling(limits.collect(), PATIENCE, move |text| console.line(text))
    }

    fn telling(
        limits: HashMap<Name, u64>,
        patience: Duration,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let executor = Handle::current();
        Self { tell: Arc::new(tell), patience, limits, executor, waiting: Mutex::default() }
    }

    /// Reads one event.
    pub(crate) fn read(&self, event: &Event) {
        match &event.body {
            EventBody::ModelRequest { model, .. } => self.begin(event, model),
            EventBody::TextDelta(_) | EventBody::ThinkingDelta(_) | EventBody::ModelResponse { .. } => {
                self.end(&event.call.id);
            }
            EventBody::RunFinished { .. } => {
                self.waiting.lock().drain().for_each(|(_, wait)| wait.abort());
            }
            _ => {}
        }
    }

    fn begin(&self, event: &Event, model: &Name) {
        let limit = self.limits.get(&event.call.agent).copied().unwrap_or(DEFAULT_IDLE_TIMEOUT);
        let seconds = self.patience.as_secs();
        if limit <= seconds {
            return;
        }
        let text =
            format!("still waiting for {} ({seconds} s; time limit {limit} s)", visible_line(model.as_str()));
        let (tell, patience) = (self.tell.clone(), self.patience);
        let wait = self.executor.spawn(async move {
            tokio::time::sleep(patience).await;
            tell(&text);
        });
        self.waiting.lock().insert(event.call.id.clone(), wait.abort_handle());
    }

    fn end(&self, call: &Key) {
        if let Some(wait) = self.waiting.lock().remove(call) {
            wait.abort();
        }
    }
}

/// Returns how long a model may be silent, in seconds.
fn limit(settings: &ModelSettings) -> u64 {
    let whole = settings.timeout.unwrap_or(DEFAULT_TIMEOUT);
    match settings.stream {
        Some(false) => whole,
        _ => settings.idle_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT).min(whole),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(body: Value) -> Event {
        let mut event = json!({
            "key": "1/t1/model", "time": "2026-11-19T05:34:28Z", "run": "a6cc9164-46e6-4fc4-90dc-e973e9ffa561",
            "call": "1", "parent": "", "depth": 1, "path": "main", "agent": "main",
        });
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    /// What is told about a request after these events and a multiple of the patience.
    async fn told_after(events: &[Value]) -> Vec<String> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let into = told.clone();
        let limits = [("main".into(), 120)].into();
        let patience = Duration::from_millis(20);
        let watch = SilenceWatch::telling(limits, patience, move |text| into.lock().push(text.to_owned()));
        let request = json!({"type": "model_request", "model": "test:echo", "turn": 1, "messages": [], "head": "0".repeat(64)});
        watch.read(&event(request));
        events.iter().for_each(|body| watch.read(&event(body.clone())));
        tokio::time::sleep(patience * 5).await;
        let told = told.lock();
        told.clone()
    }

    #[tokio::test]
    async fn a_silent_model_is_mentioned_once_with_its_time_limit() {
        assert_eq!(told_after(&[]).await, ["still waiting for test:echo (0 s; time limit 120 s)"]);
    }

    #[tokio::test]
    async fn a_model_that_says_something_is_not_mentioned() {
        let delta = json!({"type": "text_delta", "attempt": 0, "index": 0, "text": "Hel"});
        assert!(told_after(&[delta]).await.is_empty());
    }
}
