//! The capabilities by name, and how each is found on this machine.
//!
//! The build script compiles this file too, so it uses nothing of this crate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Names the directory with the recorded exchanges of real providers.
pub const WIRE_VARIABLE: &str = "LLM_DO_WIRE";

/// Something that a test needs and that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Landlock and system call filters, with which Linux confines commands.
    Sandbox,
    /// A sandbox that also keeps signals from other processes (level 6 of Landlock).
    SandboxSignals,
    /// A `python3` of version 3.10 or newer.
    Python,
    /// The virtual environments with packages from PyPI that `cargo xtask setup` makes.
    Packages,
    /// The small local model that `cargo xtask setup --model` installs.
    Model,
    /// Recorded exchanges of real providers, in the directory that `LLM_DO_WIRE` names.
    Wire,
    /// The rights of the super-user.
    Root,
    /// Tracing of child processes, on a processor whose registers the tests know.
    Tracing,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 8] = [
        Self::Sandbox,
        Self::SandboxSignals,
        Self::Python,
        Self::Packages,
        Self::Model,
        Self::Wire,
        Self::Root,
        Self::Tracing,
    ];

    /// Returns the name, as `LLM_DO_REQUIRE` and `#[needs(..)]` use it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::SandboxSignals => "sandbox_signals",
            Self::Python => "python",
            Self::Packages => "packages",
            Self::Model => "model",
            Self::Wire => "wire",
            Self::Root => "root",
            Self::Tracing => "tracing",
        }
    }

    /// Looks for the capability now.
    ///
    /// # Errors
    ///
    /// Fails with what is missing and what to do about it.
    pub fn find(self) -> Result<(), MissingCapability> {
        match self {
            Self::Sandbox => find_sandbox(),
            Self::SandboxSignals => find_sandbox_signals(),
            Self::Python => python_version().map(drop),
            Self::Packages => find_packages(),
            Self::Model => find_model(),
            Self::Wire => find_wire(),
            Self::Root => find_root(),
            Self::Tracing => find_tracing(),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(name: &str) -> Result<Self, UnknownCapability> {
        let found = Self::ALL.into_iter().find(|capability| capability.as_str() == name);
        found.ok_or_else(|| UnknownCapability { name: name.to_owned() })
    }
}

/// What is missing, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingCapability(String);

impl MissingCapability {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MissingCapability {}

/// A name that is not that of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCapability {
    name: String,
}

impl fmt::Display for UnknownCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Capability::ALL.map(Capability::as_str).join(", ");
        write!(f, "there is no capability `{}`; known are {known}", self.name)
    }
}

impl std::error::Error for UnknownCapability {}

/// A virtual environment that tests run Python in.
#[derive(Debug, Clone, Copy)]
pub struct PythonEnvironment {
    /// The name, also of its directory.
    pub name: &'static str,
    /// What pip installs into it.
    pub packages: &'static [&'static str],
}

const PYDANTIC: &str = "pydantic==2.14.3";
const PYDANTIC_AI: &str = "pydantic-ai-slim==2.66.0";

/// The virtual environments, from nothing to everything.
pub const PYTHON_ENVIRONMENTS: [PythonEnvironment; 3] = [
    PythonEnvironment { name: "nothing", packages: &[] },
    PythonEnvironment { name: "pydantic", packages: &[PYDANTIC] },
    PythonEnvironment { name: "both", packages: &[PYDANTIC, PYDANTIC_AI] },
];

impl PythonEnvironment {
    /// Returns the directory.
    pub fn directory(&self) -> PathBuf {
        test_cache().join("python").join(self.name)
    }

    /// Returns the interpreter.
    pub fn python(&self) -> PathBuf {
        self.directory().join("bin/python")
    }

    /// Returns the file that is written last, with [`PythonEnvironment::contents`].
    pub fn marker(&self) -> PathBuf {
        self.directory().join("contents")
    }

    /// Returns what the environment is made of. It changes with the packages and with the Python below it.
    pub fn contents(&self, python_version: &str) -> String {
        format!("{python_version}\n{}\n", self.packages.join("\n"))
    }

    /// Returns whether the environment was made completely, by this Python.
    pub fn is_ready(&self, python_version: &str) -> bool {
        std::fs::read_to_string(self.marker()).is_ok_and(|found| found == self.contents(python_version))
    }
}

/// Returns version and location of `python3`.
///
/// # Errors
///
/// Fails if there is none, or one that is too old.
pub fn python_version() -> Result<String, MissingCapability> {
    let script =
        "import sys; print(sys.version.split()[0], sys.prefix); sys.exit(sys.version_info < (3, 10))";
    match Command::new("python3").args(["-c", script]).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Err(MissingCapability::new("no `python3` of version 3.10 or newer is on the PATH")),
    }
}

/// Returns the directory for what is installed for the tests.
pub fn test_cache() -> PathBuf {
    cache_home().join("llm-do-tests")
}

/// Returns the cache directory of the user, as the XDG specification says.
fn cache_home() -> PathBuf {
    let chosen = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    chosen.unwrap_or_else(|| std::env::home_dir().unwrap_or_else(std::env::temp_dir).join(".cache"))
}

fn find_packages() -> Result<(), MissingCapability> {
    let version = python_version()?;
    match PYTHON_ENVIRONMENTS.iter().all(|environment| environment.is_ready(&version)) {
        true => Ok(()),
        false => Err(MissingCapability::new("the packages are not installed: run `cargo xtask setup`")),
    }
}

/// Looks for the file that the example with the local model writes after its own set-up.
fn find_model() -> Result<(), MissingCapability> {
    let is_model = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("local-model-") && path.join("done").exists()
    };
    let entries = std::fs::read_dir(cache_home().join("llm-do")).into_iter().flatten().flatten();
    match entries.map(|entry| entry.path()).any(|path| is_model(&path)) {
        true => Ok(()),
        false => {
            Err(MissingCapability::new("the local model is not installed: run `cargo xtask setup --model`"))
        }
    }
}

fn find_wire() -> Result<(), MissingCapability> {
    let Some(directory) = std::env::var_os(WIRE_VARIABLE) else {
        return Err(MissingCapability::new(format!(
            "`{WIRE_VARIABLE}` names no directory with recorded exchanges"
        )));
    };
    let has_files = std::fs::read_dir(&directory).is_ok_and(|mut files| files.next().is_some());
    has_files
        .then_some(())
        .ok_or_else(|| MissingCapability::new(format!("`{WIRE_VARIABLE}` names a directory without files")))
}

/// The owner of a process is the owner of its directory below `/proc`, which only Linux has.
#[cfg(target_os = "linux")]
fn find_root() -> Result<(), MissingCapability> {
    use std::os::unix::fs::MetadataExt;

    let is_root = std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    is_root.then_some(()).ok_or_else(|| MissingCapability::new("the tests do not run as the super-user"))
}

#[cfg(not(target_os = "linux"))]
fn find_root() -> Result<(), MissingCapability> {
    Err(MissingCapability::new("tests as the super-user run on Linux only"))
}

/// Traces a process.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn find_tracing() -> Result<(), MissingCapability> {
    use nix::sys::ptrace::{Options, seize};
    use nix::unistd::Pid;

    let failed = |error: String| MissingCapability::new(format!("processes cannot be traced: {error}"));
    let mut child = Command::new("sleep").arg("60").spawn().map_err(|error| failed(error.to_string()))?;
    let traced = seize(Pid::from_raw(child.id().cast_signed()), Options::empty());
    // It is of no use any more, however this ends.
    let _ = child.kill().and_then(|()| child.wait());
    traced.map_err(|error| failed(error.to_string()))
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn find_tracing() -> Result<(), MissingCapability> {
    Err(MissingCapability::new("processes are traced on Linux only, on x86-64 and ARM"))
}

#[cfg(target_os = "linux")]
fn find_sandbox() -> Result<(), MissingCapability> {
    use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr};

    let required = required_ruleset(Ruleset::default()).handle_access(AccessFs::from_all(ABI::V1));
    let created = required.and_then(Ruleset::create);
    created.map_err(|error| MissingCapability::new(format!("files cannot be confined: {error}")))?;
    match Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        true => Ok(()),
        false => Err(MissingCapability::new("the kernel does not filter system calls")),
    }
}

#[cfg(target_os = "linux")]
fn find_sandbox_signals() -> Result<(), MissingCapability> {
    use landlock::{Ruleset, RulesetAttr, Scope};

    find_sandbox()?;
    let created = required_ruleset(Ruleset::default()).scope(Scope::Signal).and_then(Ruleset::create);
    created.map(drop).map_err(|error| MissingCapability::new(format!("signals cannot be confined: {error}")))
}

/// Makes it an error if the kernel cannot do what the rules say.
#[cfg(target_os = "linux")]
fn required_ruleset(ruleset: landlock::Ruleset) -> landlock::Ruleset {
    use landlock::{CompatLevel, Compatible};

    ruleset.set_compatibility(CompatLevel::HardRequirement)
}

#[cfg(not(target_os = "linux"))]
fn find_sandbox() -> Result<(), MissingCapability> {
    Err(MissingCapability::new("there is a sandbox on Linux only"))
}

#[cfg(not(target_os = "linux"))]
fn find_sandbox_signals() -> Result<(), MissingCapability> {
    find_sandbox()
}
