//! What all runs of a runtime share.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use llm_do_core::{
    ApprovalMode, Approver, Clock, Context, Digest, Limits, Model, ModelChoice, ModelError, Models, Prices,
    ProjectBundle, ProjectSource, ProjectState, Random, RunId, UsageByModel,
};
use llm_do_secrets::{KnownSecrets, SecretFiles};
use tokio_util::task::TaskTracker;

use crate::descriptors::ContentStore;
use crate::project::Linked;
use crate::project::agent_call_policy::AgentCallPolicy;
use crate::record::message_log::MessageLog;
use crate::record::store::Store;
use crate::record::subscribers::{Subscriber, Subscribers};
use crate::retry::RetryPolicy;
use crate::state::broker::Broker;
use crate::state::created::CreatedAgents;
use crate::state::redaction::Redactor;
use crate::state::run_state::RunState;
use crate::sync::Mutex;

/// Nested agents permitted where nothing else is said.
pub const DEFAULT_DEPTH: u32 = 5;
/// The most nested agents that can be permitted.
pub const MAX_DEPTH: u32 = 64;
/// What all runs of a runtime share.
pub(crate) struct Shared {
    pub(crate) project: Arc<Linked>,
    pub(crate) created: CreatedAgents,
    pub(crate) context: Arc<Context>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) entry_model: Option<ModelChoice>,
    pub(crate) prices: Arc<dyn Prices>,
    /// Where texts lie that are too long for a conversation.
    pub(crate) contents: ContentStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) store: Arc<dyn Store>,
    /// What the project was loaded from.
    pub(crate) source: Option<ProjectSource>,
    /// The files that define the project, and their digest.
    pub(crate) bundle: Option<(Digest, Arc<ProjectBundle>)>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approver_limit: Option<Duration>,
    pub(crate) mode: ApprovalMode,
    pub(crate) agent_calls: AgentCallPolicy,
    pub(crate) denials_end_runs: bool,
    pub(crate) limits: Limits,
    pub(crate) max_depth: u32,
    pub(crate) repeat_limit: u32,
    pub(crate) retry: RetryPolicy,
    pub(crate) grace: Duration,
    pub(crate) root: Option<PathBuf>,
    pub(crate) secret_files: SecretFiles,
    /// The keys and passwords that the catalog of models knows; those of the key store come when a model needs them.
    pub(crate) known_secrets: KnownSecrets,
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) readings: Subscribers,
    /// Runs in progress: none of them can be resumed.
    pub(crate) running: Mutex<HashMap<RunId, Weak<RunState>>>,
    pub(crate) broker: Broker,
    /// Held while something is added to the record of a run that is not in progress.
    pub(crate) appending: tokio::sync::Mutex<()>,
    pub(crate) usage: Mutex<UsageByModel>,
    pub(crate) messages: MessageLog,
    pub(crate) tasks: TaskTracker,
    pub(crate) still_running: StillRunning,
}

impl Shared {
    /// Returns the project as it is now, for the record.
    pub(crate) fn project_state(&self) -> ProjectState {
        // As a path that means the same in another process.
        let root = self.root.as_ref().map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
        ProjectState {
            pin: Some(self.project.pin),
            parts: self.project.pinned.clone(),
            project: root,
            bundle: self.bundle.as_ref().map(|(digest, _)| *digest),
            source: self.source.clone(),
        }
    }

    /// Finds a model in the catalog, and learns the keys that were opened for it.
    pub(crate) fn resolve_model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let model = self.models.resolve(name);
        self.known_secrets.add(self.models.secrets());
        model
    }

    /// Returns what takes the secrets that are known now out of results and events.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(&self.known_secrets)
    }

    /// A version 7 id: the time first, so that ids sort by age.
    pub(crate) fn new_run_id(&self) -> RunId {
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.random.bits().to_le_bytes());
        random[8..].copy_from_slice(&self.random.bits().to_le_bytes());
        // People type the beginning of an id, and ids that begin with the time begin alike.
        RunId(uuid::Builder::from_random_bytes(random).into_uuid())
    }
}

/// Blocking code. It cannot be stopped, only listed once it has outlived its call, and waited for.
#[derive(Debug, Default)]
pub(crate) struct StillRunning {
    state: Arc<StillRunningState>,
}

#[derive(Debug, Default)]
struct StillRunningState {
    pieces: Mutex<BTreeMap<u64, BlockingCode>>,
    changed: tokio::sync::Notify,
}

#[derive(Debug)]
struct BlockingCode {
    path: String,
    left_behind: bool,
}

impl StillRunning {
    /// Registers a piece of blocking code: one guard for the code, one for the call that waits for it.
    pub(crate) fn begin(&self, path: String) -> (CodeGuard, CallGuard) {
        let mut pieces = self.state.pieces.lock();
        let id = pieces.keys().next_back().map_or(0, |last| last + 1);
        pieces.insert(id, BlockingCode { path, left_behind: false });
        let state = &self.state;
        (CodeGuard { state: state.clone(), id }, CallGuard { state: state.clone(), id })
    }

    pub(crate) fn list(&self) -> Vec<String> {
        let pieces = self.state.pieces.lock();
        pieces.values().filter(|piece| piece.left_behind).map(|piece| piece.path.clone()).collect()
    }

    pub(crate) async fn none(&self) {
        loop {
            let changed = self.state.changed.notified();
            if self.state.pieces.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }
}

/// Lives as long as the code runs.
pub(crate) struct CodeGuard {
    state: Arc<StillRunningState>,
    id: u64,
}

impl Drop for CodeGuard {
    fn drop(&mut self) {
        self.state.pieces.lock().remove(&self.id);
        self.state.changed.notify_waiters();
    }
}

/// Lives as long as the call waits for the code.
pub(crate) struct CallGuard {
    state: Arc<StillRunningState>,
    id: u64,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(piece) = self.state.pieces.lock().get_mut(&self.id) {
            piece.left_behind = true;
        }
    }
}
