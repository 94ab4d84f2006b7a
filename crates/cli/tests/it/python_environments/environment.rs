//! Virtual environments that are made once and kept below the target directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PYDANTIC: &str = "pydantic==2.14.3";
const PYDANTIC_AI: &str = "pydantic-ai-slim==2.66.0";

/// How long a step may take: one that hangs must not hang the tests.
const PATIENCE: Duration = Duration::from_secs(180);

/// A virtual environment.
pub struct Environment {
    pub name: &'static str,
    pub place: PathBuf,
    packages: &'static [&'static str],
}

impl Environment {
    pub fn python(&self) -> PathBuf {
        self.place.join("bin/python")
    }
}

/// The directory with the environments.
pub fn places() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/python-environments"))
}

/// Makes the environments that are not there yet: with nothing, with pydantic, with both. An error says why the
/// tests are skipped.
pub fn ready() -> Result<&'static [Environment], String> {
    static READY: OnceLock<Result<Vec<Environment>, String>> = OnceLock::new();
    READY.get_or_init(make_all).as_deref().map_err(Clone::clone)
}

fn make_all() -> Result<Vec<Environment>, String> {
    let version = version_of_python()?;
    fs::create_dir_all(places()).unwrap();
    // Another process may run these tests, too.
    let lock = File::create(places().join("lock")).unwrap();
    lock.lock().unwrap();
    let kinds: [(&str, &[&str]); 3] =
        [("nothing", &[]), ("pydantic", &[PYDANTIC]), ("both", &[PYDANTIC, PYDANTIC_AI])];
    kinds.into_iter().map(|(name, packages)| make(name, packages, &version)).collect()
}

/// The version and place of `python3`.
fn version_of_python() -> Result<String, String> {
    let script = "import sys; print(sys.version, sys.prefix); sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", script]).output();
    match found {
        Ok(found) if found.status.success() => Ok(String::from_utf8_lossy(&found.stdout).into_owned()),
        _ => Err("there is no python3 (3.10 or newer)".to_owned()),
    }
}

/// Makes an environment, unless the same one is there.
fn make(name: &'static str, packages: &'static [&'static str], version: &str) -> Result<Environment, String> {
    let environment = Environment { name, place: places().join(name), packages };
    let marker = environment.place.join("made-of");
    let made_of = format!("{version}{}\n", packages.join("\n"));
    if fs::read_to_string(&marker).is_ok_and(|found| found == made_of) {
        return Ok(environment);
    }
    let _ = fs::remove_dir_all(&environment.place);
    environment.build()?;
    fs::write(marker, made_of).unwrap();
    Ok(environment)
}

impl Environment {
    fn build(&self) -> Result<(), String> {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).args(self.packages.is_empty().then_some("--without-pip"));
        command.arg(&self.place);
        after(command).unwrap_or_else(|output| panic!("no virtual environment: {output}"));
        if !self.packages.is_empty() {
            self.install()?;
        }
        for (package, is_there) in
            [("pydantic", self.packages.contains(&PYDANTIC)), ("pydantic_ai", self.name == "both")]
        {
            let found =
                Command::new(self.python()).args(["-c", &format!("import {package}")]).output().unwrap();
            assert_eq!(found.status.success(), is_there, "{package} in {}: {found:?}", self.name);
        }
        Ok(())
    }

    fn install(&self) -> Result<(), String> {
        let mut command = Command::new(self.python());
        let options = ["--disable-pip-version-check", "--no-input", "--timeout", "10", "--retries", "1"];
        command.args(["-m", "pip", "install"]).args(options).args(self.packages);
        after(command).map_err(|output| match is_unreachable(&output) {
            true => "PyPI cannot be reached".to_owned(),
            false => panic!("{} cannot be installed: {output}", self.packages.join(", ")),
        })
    }
}

/// Returns whether pip failed because there was no connection.
fn is_unreachable(output: &str) -> bool {
    ["connection broken by", "Network is unreachable", "took longer than"]
        .iter()
        .any(|words| output.contains(words))
}

/// Waits for a command, but not for ever; returns what it said where it fails.
pub fn after(mut command: Command) -> Result<(), String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let said = || fs::read(log.path()).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap();
    let file = fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{status}\n{}", said())),
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("took longer than {} s\n{}", PATIENCE.as_secs(), said()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
