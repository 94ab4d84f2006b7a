//! Editing arguments in the person's own editor.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The editor that is open: a process that leaves ends it and takes its file along.
static OPEN: Mutex<Option<(Child, PathBuf)>> = Mutex::new(None);

/// Opens the arguments in an editor on the terminal of this process.
pub(crate) fn edit_at_terminal(arguments: &Value) -> Result<Value, String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    edit(arguments, &terminal.map_err(|error| format!("the terminal cannot be opened: {error}"))?)
}

/// Opens the arguments in `$VISUAL` or `$EDITOR` and returns what the person left there.
pub(super) fn edit(arguments: &Value, terminal: &File) -> Result<Value, String> {
    let file = written(arguments).map_err(|error| format!("no file to edit could be made: {error}"))?;
    let message = editor();
    let (program, rest) = message.split_first().ok_or("`$EDITOR` names no program")?;
    let stream = || terminal.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    let child = Command::new(program)
        .args(rest)
        .arg(file.path())
        .stdin(stream()?)
        .stdout(stream()?)
        .stderr(stream()?)
        .spawn()
        .map_err(|error| format!("`{program}` cannot be started: {error}; set `EDITOR`"))?;
    *open() = Some((child, file.path().to_path_buf()));
    let status = wait().map_err(|error| error.to_string())?;
    if !status.is_some_and(|status| status.success()) {
        return Err(format!("`{program}` did not end well"));
    }
    let text = std::fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
    llm_do_core::parse_strict(&text).map_err(|error| format!("the text is not valid JSON: {error}"))
}

/// Opens a file in `$VISUAL` or `$EDITOR`, on the streams of this process, and waits for the end of the editor.
pub(crate) fn edit_file(path: &Path) -> Result<(), String> {
    let message = editor();
    let (program, rest) = message.split_first().ok_or("`$EDITOR` names no program")?;
    let status = Command::new(program).args(rest).arg(path).status();
    let status = status.map_err(|error| format!("`{program}` cannot be started: {error}; set `EDITOR`"))?;
    if status.success() { Ok(()) } else { Err(format!("`{program}` did not end well: {status}")) }
}

/// How long an editor has to give the terminal back.
const GRACE: Duration = Duration::from_secs(1);

/// Ends an editor that is still open, and removes its file. It may put the terminal in order first.
pub(crate) fn abandon() {
    if let Some((child, _)) = &*open() {
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
    let begun = Instant::now();
    while begun.elapsed() < GRACE && is_running() {
        std::thread::sleep(Duration::from_millis(20));
    }
    if let Some((mut child, file)) = open().take() {
        let _ = child.kill();
        let _ = child.wait();
        let _ = std::fs::remove_file(file);
    }
}

fn is_running() -> bool {
    open().as_mut().is_some_and(|(child, _)| matches!(child.try_wait(), Ok(None)))
}

/// Waits for the editor without keeping others from ending it; nothing where somebody did.
fn wait() -> std::io::Result<Option<std::process::ExitStatus>> {
    loop {
        let mut editor = open();
        let Some((child, _)) = &mut *editor else { return Ok(None) };
        if let Some(status) = child.try_wait()? {
            *editor = None;
            return Ok(Some(status));
        }
        drop(editor);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn open() -> MutexGuard<'static, Option<(Child, PathBuf)>> {
    OPEN.lock()
}

/// A private file with the arguments as people read them.
fn written(arguments: &Value) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("llm-do-arguments-").suffix(".json").tempfile()?;
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.flush()?;
    Ok(file)
}

/// The editor with its arguments, read from the process's own environment.
fn editor() -> Vec<String> {
    let set = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let text = set.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
    shlex::split(&text).unwrap_or_default()
}
