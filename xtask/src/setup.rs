//! `cargo xtask setup`: installs what tests need from PyPI, so that the tests themselves need no network.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use llm_do_capabilities::{PYTHON_ENVIRONMENTS, PythonEnvironment, python_version, test_cache};

use crate::command::{finish, in_root, tell};

/// Installs the packages, and the local model if asked to.
pub(crate) fn run(model: bool) -> anyhow::Result<()> {
    packages()?;
    if model {
        local_model()?;
    }
    Ok(())
}

/// Makes the virtual environments that are not there yet.
pub(crate) fn packages() -> anyhow::Result<()> {
    let version = python_version()?;
    let cache = test_cache();
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    // Another process may set up the same cache.
    let lock = File::create(cache.join("lock"))?;
    lock.lock()?;
    let pending: Vec<_> =
        PYTHON_ENVIRONMENTS.iter().filter(|environment| !environment.is_ready(&version)).collect();
    if pending.is_empty() {
        tell(&format!("the packages are in {}", cache.display()));
    }
    pending.into_iter().try_for_each(|environment| install(environment, &version))
}

fn install(environment: &PythonEnvironment, version: &str) -> anyhow::Result<()> {
    let directory = environment.directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("{} cannot be removed", directory.display()))?;
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"])
        .args(environment.packages.is_empty().then_some("--without-pip"))
        .arg(&directory);
    finish(venv)?;
    if !environment.packages.is_empty() {
        let mut pip = Command::new(environment.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--timeout", "20", "--retries", "2"]).args(environment.packages);
        finish(pip).context("PyPI cannot be reached, or has no such package")?;
    }
    fs::write(environment.marker(), environment.contents(version))?;
    Ok(())
}

/// Lets the example with the local model set itself up: it installs before it serves, and is ended once it serves.
fn local_model() -> anyhow::Result<()> {
    let mut command = in_root("examples/local-model/run", &["--serve"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    tell("$ examples/local-model/run --serve");
    let mut child = command.spawn().context("the example with the local model could not be started")?;
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        let line = line?;
        tell(&line);
        if line.contains("is served") {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
    }
    let status = child.wait()?;
    bail!("the local model cannot be installed: {status}")
}
