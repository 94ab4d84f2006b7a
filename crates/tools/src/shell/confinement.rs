//! How the programs of one toolset instance are confined: which sandbox, and what to say about it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use llm_do_core::{Approval, RunId};
use parking_lot::Mutex;

use super::execution_env::ExecutionEnv;
use super::settings::{ReadScope, SandboxMode, ShellSettings, WriteScope};
use crate::toolset_error::ToolsetError;
use llm_do_sandbox::{PreparedSandbox, Reads, Sandbox, SandboxStatus, Writes};

/// The sandbox of one toolset instance, in three forms, each prepared when it is needed first.
#[derive(Debug)]
pub(crate) struct Confinement {
    mode: SandboxMode,
    reads: ReadScope,
    writes: WriteScope,
    network: bool,
    readable: Vec<PathBuf>,
    root: PathBuf,
    status: SandboxStatus,
    prepared: [OnceLock<Result<PreparedSandbox, String>>; 3],
}

/// Why a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call that nobody had to be asked about.
    Unasked,
    /// A call that asks first.
    Asked,
    /// A question to git, whose answer decides about a call.
    Probe,
}

impl Purpose {
    /// The purpose of a call that was judged so.
    pub(crate) fn from_approval(judged: Approval) -> Self {
        if judged == Approval::PreApproved { Self::Unasked } else { Self::Asked }
    }
}

impl Confinement {
    /// Checks what the settings say; a toolset that only reads cannot be given more.
    pub(crate) fn new(
        settings: &ShellSettings,
        only_reads: bool,
        env: &ExecutionEnv,
        status: &SandboxStatus,
    ) -> Result<Self, ToolsetError> {
        if only_reads {
            check_only_reads(settings)?;
        }
        let by_preset = if only_reads { WriteScope::Nowhere } else { WriteScope::Root };
        Ok(Self {
            mode: settings.sandbox,
            reads: settings.reads,
            writes: settings.writes.unwrap_or(by_preset),
            network: settings.network,
            readable: readable(env),
            root: env.root.path().to_path_buf(),
            status: status.clone(),
            prepared: Default::default(),
        })
    }

    /// Returns the sandbox for a purpose; none where the settings or the system have none.
    pub(crate) fn sandbox(&self, purpose: Purpose) -> Result<Option<PreparedSandbox>, String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        if !self.is_active() {
            return Ok(None);
        }
        let prepared = self.prepared[purpose as usize].get_or_init(|| {
            self.wanted(purpose).prepare().map_err(|error| format!("the sandbox cannot be prepared: {error}"))
        });
        prepared.clone().map(Some)
    }

    fn wanted(&self, purpose: Purpose) -> Sandbox {
        let root = || vec![self.root.clone()];
        match purpose {
            // Where a repository lies must be found out before anybody can be asked about it.
            Purpose::Probe => Sandbox { reads: Reads::Anywhere, writes: Writes::Nowhere, network: false },
            Purpose::Unasked | Purpose::Asked => Sandbox {
                reads: match (purpose, self.reads) {
                    (Purpose::Unasked, ReadScope::Root) => Reads::Below(self.readable.clone()),
                    _ => Reads::Anywhere,
                },
                writes: match self.writes {
                    WriteScope::Nowhere => Writes::Nowhere,
                    WriteScope::Root => Writes::Below(root()),
                    WriteScope::Anywhere => Writes::Anywhere,
                },
                network: self.network,
            },
        }
    }

    fn is_active(&self) -> bool {
        self.mode != SandboxMode::Off && self.status.is_partly_active()
    }

    /// Says why nothing runs at all, where a sandbox is required and the system has none.
    pub(crate) fn refusal(&self) -> Option<String> {
        let is_missing = self.mode == SandboxMode::Required && !self.status.is_active();
        is_missing.then(|| format!("`sandbox` is `required`, and {}", self.status.missing.join("; ")))
    }

    /// Says what a person should know before a call: what the settings loosened, or the system has not.
    pub(crate) fn loosened(&self) -> Vec<String> {
        if self.mode == SandboxMode::Off {
            return vec!["`sandbox: off`: nothing confines the programs".to_owned()];
        }
        let settings = [
            (self.network, "`network: true`: programs may use the network"),
            (self.writes == WriteScope::Anywhere, "`writes: anywhere`: programs may write anywhere"),
            (self.reads == ReadScope::Anywhere, "`reads: anywhere`: programs may read anywhere"),
        ];
        settings.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned()).collect()
    }

    /// Says what the system lacks, for people.
    pub(crate) fn missing(&self) -> Option<String> {
        let is_missing = self.mode != SandboxMode::Off && !self.status.is_active();
        let what = self.status.missing.join("; ");
        is_missing.then(|| format!("commands run without the full sandbox: {what} (see `llm-do doctor`)"))
    }

    /// Says what the system lacks, once for each run.
    pub(crate) fn notice_for(&self, run: RunId) -> Option<String> {
        static NOTICED: Mutex<VecDeque<RunId>> = Mutex::new(VecDeque::new());
        const REMEMBERED: usize = 256;
        let missing = self.missing()?;
        let mut noticed = NOTICED.lock();
        if noticed.contains(&run) {
            return None;
        }
        noticed.push_back(run);
        if noticed.len() > REMEMBERED {
            noticed.pop_front();
        }
        Some(missing)
    }

    /// Says that the sandbox may be why a command failed, where it looks so.
    pub(crate) fn hint(&self, purpose: Purpose, exit_code: i32, stderr: &str) -> Option<String> {
        if exit_code == 0 || !self.is_active() {
            return None;
        }
        let stderr = stderr.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| stderr.contains(phrase));
        let by_network = !self.network && says(&NO_NETWORK);
        let limits = if says(&REFUSED) { self.limits(purpose) } else { Vec::new() };
        let limits = if limits.is_empty() && by_network { vec![self.network_limit()] } else { limits };
        (!limits.is_empty()).then(|| format!("the sandbox may be the reason: {}", limits.join("; ")))
    }

    fn limits(&self, purpose: Purpose) -> Vec<String> {
        let root = self.root.display();
        let writes = match self.writes {
            WriteScope::Nowhere => {
                Some("this toolset may not write (another one, such as `shell_file_ops`, may)".to_owned())
            }
            WriteScope::Root => Some(format!("programs may write only below {root} (setting `writes`)")),
            WriteScope::Anywhere => None,
        };
        let reads = matches!(self.wanted(purpose).reads, Reads::Below(_)).then(|| {
            format!("programs that nobody was asked about read only below {root} and in directories of the system (setting `reads`)")
        });
        let network = (!self.network).then(|| self.network_limit());
        writes.into_iter().chain(reads).chain(network).collect()
    }

    fn network_limit(&self) -> String {
        match self.writes {
            WriteScope::Nowhere => "this toolset may not use the network".to_owned(),
            _ => "programs may not use the network (setting `network`)".to_owned(),
        }
    }
}

/// What programs print when they were refused something.
const REFUSED: [&str; 4] =
    ["permission denied", "operation not permitted", "read-only file system", "access denied"];

/// What programs print when they find no network.
const NO_NETWORK: [&str; 5] = [
    "resolve host",
    "name resolution",
    "network is unreachable",
    "failed to lookup address",
    "name or service not known",
];

/// Checks that the settings of a project do not loosen a read-only preset.
fn check_only_reads(settings: &ShellSettings) -> Result<(), ToolsetError> {
    let loosened = [
        ("network: true", settings.network),
        ("writes", settings.writes.is_some_and(|writes| writes != WriteScope::Nowhere)),
        ("reads: anywhere", settings.reads == ReadScope::Anywhere),
        ("sandbox: off", settings.sandbox == SandboxMode::Off),
    ];
    match loosened.into_iter().find(|(_, is_set)| *is_set) {
        Some((setting, _)) => Err(ToolsetError::Setting(format!(
            "a read-only toolset cannot have `{setting}`: base yours on `shell_file_ops`, with rules for the programs"
        ))),
        None => Ok(()),
    }
}

/// What a program may read that nobody was asked about: the root, the system, and the rules by which searches
/// leave files out, which lie above the root too.
fn readable(env: &ExecutionEnv) -> Vec<PathBuf> {
    const IGNORE_FILES: [&str; 4] = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];
    let root = env.root.path();
    let above = root.ancestors().skip(1);
    let ignore_files = above.flat_map(|directory| IGNORE_FILES.map(|name| directory.join(name)));
    let ignore_files = ignore_files.filter(|path| is_plain_file(path));
    let programs = env.directories().iter().cloned();
    let system = Sandbox::system_directories().into_iter();
    std::iter::once(root.to_path_buf()).chain(system).chain(programs).chain(ignore_files).collect()
}

fn is_plain_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(landlock_level: Option<u32>, filters_calls: bool) -> SandboxStatus {
        let missing = if landlock_level.is_some() && filters_calls { vec![] } else { vec!["no wall".into()] };
        SandboxStatus { landlock_level, filters_calls, missing }
    }

    fn confinement(
        only_reads: bool,
        status: &SandboxStatus,
        change: impl FnOnce(&mut ShellSettings),
    ) -> Result<Confinement, ToolsetError> {
        let mut settings = ShellSettings::default();
        change(&mut settings);
        let env = ExecutionEnv::new(&std::env::temp_dir(), &settings).unwrap();
        Confinement::new(&settings, only_reads, &env, status)
    }

    #[test]
    fn where_the_system_has_no_sandbox_commands_run_with_a_notice_or_not_at_all() {
        let on = confinement(true, &status(None, false), |_| ()).unwrap();
        assert!(on.sandbox(Purpose::Unasked).unwrap().is_none());
        let run = RunId(uuid::Uuid::from_u128(1));
        assert!(on.notice_for(run).unwrap().contains("no wall"));
        assert_eq!(on.notice_for(run), None, "once for each run");
        assert!(on.notice_for(RunId(uuid::Uuid::from_u128(2))).is_some());
        assert_eq!(on.hint(Purpose::Unasked, 1, "Permission denied"), None, "there is no wall to blame");

        for missing in [status(None, false), status(Some(7), false), status(None, true)] {
            let required =
                confinement(true, &missing, |settings| settings.sandbox = SandboxMode::Required).unwrap();
            assert!(required.sandbox(Purpose::Probe).unwrap_err().contains("`required`, and no wall"));
        }
        let required =
            confinement(true, &status(Some(1), true), |settings| settings.sandbox = SandboxMode::Required);
        assert_eq!(required.unwrap().refusal(), None);
    }

    type Change = fn(&mut ShellSettings);

    #[test]
    fn a_toolset_that_only_reads_cannot_be_loosened() {
        let changes: [(&str, Change); 5] = [
            ("network", |settings| settings.network = true),
            ("writes", |settings| settings.writes = Some(WriteScope::Root)),
            ("writes", |settings| settings.writes = Some(WriteScope::Anywhere)),
            ("reads", |settings| settings.reads = ReadScope::Anywhere),
            ("sandbox", |settings| settings.sandbox = SandboxMode::Off),
        ];
        for (word, change) in changes {
            let error = confinement(true, &status(Some(7), true), change).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("read-only toolset"), "{error}");
            let other = confinement(false, &status(Some(7), true), change).unwrap();
            let is_default = word == "writes" && other.writes == WriteScope::Root;
            assert_eq!(other.loosened().is_empty(), is_default, "{word}: {:?}", other.loosened());
        }
        assert!(
            confinement(true, &status(Some(7), true), |settings| settings.writes = Some(WriteScope::Nowhere))
                .is_ok()
        );
    }

    #[test]
    fn purposes_get_what_they_need_and_no_more() {
        let own = confinement(false, &status(Some(7), true), |settings| settings.network = true).unwrap();
        let root = own.root.clone();
        assert!(matches!(own.wanted(Purpose::Unasked).reads, Reads::Below(paths) if paths.contains(&root)));
        let asked = Sandbox { reads: Reads::Anywhere, writes: Writes::Below(vec![root]), network: true };
        assert_eq!(own.wanted(Purpose::Asked), asked);
        let probe = Sandbox { reads: Reads::Anywhere, writes: Writes::Nowhere, network: false };
        assert_eq!(own.wanted(Purpose::Probe), probe);
    }

    #[test]
    fn a_hint_is_given_only_where_the_sandbox_may_be_the_reason() {
        let reading = confinement(true, &status(Some(7), true), |_| ()).unwrap();
        let hint = reading.hint(Purpose::Asked, 1, "touch: a: Permission denied").unwrap();
        assert!(hint.contains("may be the reason: this toolset may not write"), "{hint}");
        assert_eq!(reading.hint(Purpose::Asked, 0, "touch: a: Permission denied"), None);
        assert_eq!(reading.hint(Purpose::Asked, 1, "no such file"), None);
        let lookup = "curl: (6) Could not resolve host: example.com";
        assert_eq!(
            reading.hint(Purpose::Asked, 6, lookup).unwrap(),
            "the sandbox may be the reason: this toolset may not use the network"
        );
        let free = confinement(false, &status(Some(7), true), |settings| {
            settings.network = true;
            settings.writes = Some(WriteScope::Anywhere);
        })
        .unwrap();
        assert_eq!(free.hint(Purpose::Asked, 6, lookup), None);
        assert_eq!(free.hint(Purpose::Asked, 1, "Permission denied"), None);
        let off = confinement(false, &status(Some(7), true), |settings| settings.sandbox = SandboxMode::Off);
        assert_eq!(off.unwrap().hint(Purpose::Unasked, 1, "Permission denied"), None);
    }
}
