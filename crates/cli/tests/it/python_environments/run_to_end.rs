//! Commands with a time limit.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take: one that hangs must not hang the tests.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a command to its end, and returns its output if it fails or takes too long.
pub fn run_to_end(mut command: Command) -> Result<(), String> {
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
