//! A program that llm-do starts to answer approvals, `--approve-with COMMAND`.
//!
//! It speaks the protocol of [`super::program`] over its stdin and stdout, and its stderr is shown. It is told to end by
//! the end of its stdin when llm-do leaves; how it ended before that is the reason of the denials that follow.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::program::{GONE, ProgramApprover};
use crate::command_error::CommandError;
use crate::output;
use crate::text::{shortened, visible_line};

/// How long a program has to leave, and then once more after it was told to by a signal.
const GRACE: Duration = Duration::from_millis(500);

/// How much of the last line of its stderr is repeated.
const MAX_MESSAGE_CHARS: usize = 300;

/// The program that runs: a process that leaves ends it.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Whether this process leaves, so that the end of the program is not a failure.
static LEAVING: AtomicBool = AtomicBool::new(false);

struct Running {
    child: Child,
    stdin: SharedStdin,
}

/// The stdin of the program, which two sides may close.
#[derive(Clone)]
struct SharedStdin(Arc<Mutex<Option<ChildStdin>>>);

impl Write for SharedStdin {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut *self.0.lock() {
            Some(stdin) => stdin.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Starts a program and asks it.
pub(crate) fn start(command: &str) -> Result<ProgramApprover, CommandError> {
    let shown = visible_line(command);
    let text = shlex::split(command).filter(|text| !text.is_empty());
    let (program, arguments) = text.as_deref().and_then(<[String]>::split_first).ok_or_else(|| {
        CommandError::with_hint(
            format!("`--approve-with {shown}` is not a command"),
            "write a program and its arguments, quoted as in a shell",
        )
    })?;
    let streams = || (Stdio::piped(), Stdio::piped(), Stdio::piped());
    let (stdin, stdout, stderr) = streams();
    let spawned = Command::new(program).args(arguments).stdin(stdin).stdout(stdout).stderr(stderr).spawn();
    let child = spawned.map_err(|error| {
        let message = format!("`--approve-with {shown}` cannot be started: {error}");
        CommandError::with_hint(message, "name a program on the search path, or write its path")
    })?;
    connect(child, shown).map_err(|error| CommandError::Other(error.into()))
}

fn connect(mut child: Child, shown: String) -> std::io::Result<ProgramApprover> {
    let missing = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let stdin = SharedStdin(Arc::new(Mutex::new(child.stdin.take())));
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let last_line = Arc::new(Mutex::new(String::new()));
    let kept = last_line.clone();
    let thread = std::thread::Builder::new().name("llm-do-approver-stderr".to_owned());
    let reader = thread.spawn(move || forward(stderr, &kept))?;
    *RUNNING.lock() = Some(Running { child, stdin: stdin.clone() });
    let describe_end = move || {
        let status = wait(GRACE);
        if LEAVING.load(Ordering::Relaxed) {
            return GONE.to_owned();
        }
        // Its last words come before its end, unless a process that it left behind holds the stream open.
        let until = Instant::now() + GRACE;
        while !reader.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let message = last_line.lock().clone();
        let status =
            status.map_or_else(|| "closed its stdout".to_owned(), |status| format!("ended with {status}"));
        let message = if message.is_empty() { message } else { format!(": {message}") };
        format!("`{shown}`, which answers approvals, {status}{message}")
    };
    ProgramApprover::over(Box::new(stdout), Box::new(stdin), describe_end)
}

/// Shows what the program writes to its stderr, and keeps the last line.
fn forward(stderr: ChildStderr, last_line: &Mutex<String>) {
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        output::to_stderr(&visible_line(&line));
        if !line.trim().is_empty() {
            *last_line.lock() = shortened(&line, MAX_MESSAGE_CHARS);
        }
    }
}

/// Ends the program, if one runs: by the end of its stdin, then by signals.
pub(crate) fn end() {
    LEAVING.store(true, Ordering::Relaxed);
    // A program that does not read blocks whoever writes to it, and is ended by a signal.
    if let Some(running) = &*RUNNING.lock()
        && let Some(mut stdin) = running.stdin.0.try_lock()
    {
        stdin.take();
    }
    if wait(GRACE).is_some() {
        return;
    }
    if let Some(Running { child, .. }) = &*RUNNING.lock() {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(child),
            rustix::process::Signal::TERM,
        );
    }
    wait(GRACE);
    if let Some(Running { mut child, .. }) = RUNNING.lock().take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits for the program to end on its own; nothing if it goes on, or if there is none.
fn wait(limit: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        if let Ok(Some(status)) = RUNNING.lock().as_mut()?.child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
