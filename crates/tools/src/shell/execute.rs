//! Runs a checked command line: processes and the pipes between them, without a shell.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::try_join_all;
use llm_do_core::{Cancellation, Progress};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

use super::capture::{Capture, take_text};
use super::execution_env::ExecutionEnv;
use super::parse::After;
use llm_do_sandbox::PreparedSandbox;
use llm_do_sandbox::{ChildProcess, ProcessGroup};

/// A command line with everything that is needed to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) steps: Vec<PreparedStep>,
}

/// One pipeline of programs, and when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreparedStep {
    pub(crate) after: After,
    pub(crate) pipeline: Vec<Invocation>,
}

/// One program with its arguments, exactly as they are executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

/// How far a call may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    pub(crate) output: usize,
}

/// How a call ended, and what was printed until then.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) ending: ExecutionEnd,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum ExecutionEnd {
    /// The last program gave this exit code.
    Exited(i32),
    /// The time was over.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// A program could not be started.
    Failed(io::Error),
}

/// Who watches a call.
pub(crate) struct Watcher {
    pub(crate) cancellation: Cancellation,
    pub(crate) progress: Progress,
}

/// Runs a command line to its end, to its time limit, or until it is cancelled. Afterwards none of its
/// processes is left.
pub(crate) async fn execute(
    prepared: &Prepared,
    env: &ExecutionEnv,
    sandbox: Option<PreparedSandbox>,
    bounds: Bounds,
    watcher: &Watcher,
) -> Execution {
    let (mut stdout, mut stderr) = (Capture::new(bounds.output), Capture::new(bounds.output));
    let mut group = ProcessGroup::new(sandbox);
    let ending = tokio::select! {
        biased;
        () = watcher.cancellation.cancelled() => ExecutionEnd::Cancelled,
        () = tokio::time::sleep(bounds.time) => ExecutionEnd::TimedOut,
        result = run_and_read(prepared, env, &mut group, [&mut stdout, &mut stderr], watcher) => {
            result.map_or_else(ExecutionEnd::Failed, ExecutionEnd::Exited)
        }
    };
    group.end().await;
    Execution { ending, stdout, stderr }
}

async fn run_and_read(
    prepared: &Prepared,
    env: &ExecutionEnv,
    group: &mut ProcessGroup,
    [stdout, stderr]: [&mut Capture; 2],
    watcher: &Watcher,
) -> io::Result<i32> {
    let (output, output_end) = pipe()?;
    let (errors, errors_end) = pipe()?;
    let ends = Ends { output: output_end, errors: errors_end };
    let work = run_steps(prepared, env, group, ends);
    let reading = futures::future::try_join(
        read(output, stdout, &watcher.progress),
        read(errors, stderr, &watcher.progress),
    );
    let (code, _) = futures::future::try_join(work, reading).await?;
    Ok(code)
}

/// Where the programs of a call write. Dropped when the last one has ended, so that reading ends too.
struct Ends {
    output: PipeWriter,
    errors: PipeWriter,
}

async fn run_steps(
    prepared: &Prepared,
    env: &ExecutionEnv,
    group: &mut ProcessGroup,
    ends: Ends,
) -> io::Result<i32> {
    let mut code = 0;
    for step in &prepared.steps {
        let runs = match step.after {
            After::Anything => true,
            After::Success => code == 0,
            After::Failure => code != 0,
        };
        if runs {
            code = run_pipeline(&step.pipeline, env, group, &ends).await?;
        }
    }
    // Whoever left its group might still hold the pipes open.
    group.end().await;
    Ok(code)
}

async fn run_pipeline(
    pipeline: &[Invocation],
    env: &ExecutionEnv,
    group: &mut ProcessGroup,
    ends: &Ends,
) -> io::Result<i32> {
    let mut children = Vec::new();
    let mut input = Stdio::null();
    for (index, invocation) in pipeline.iter().enumerate() {
        let (output, next) = if index + 1 == pipeline.len() {
            (Stdio::from(ends.output.try_clone()?), Stdio::null())
        } else {
            let (reader, writer) = pipe()?;
            (Stdio::from(writer), Stdio::from(reader))
        };
        let mut command = command(invocation, env);
        command.stdin(std::mem::replace(&mut input, next)).stdout(output);
        command.stderr(Stdio::from(ends.errors.try_clone()?));
        children.push(group.spawn(command)?);
    }
    let statuses = try_join_all(children.into_iter().map(ChildProcess::wait)).await?;
    Ok(statuses.last().copied().map_or(0, exit_code))
}

fn command(invocation: &Invocation, env: &ExecutionEnv) -> Command {
    let mut command = Command::new(&invocation.program);
    command.arg0(&invocation.name).args(&invocation.arguments).current_dir(env.root.path());
    command.env_clear().envs(env.environment()).envs(invocation.environment.iter().copied());
    command
}

/// The exit code as shells write it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

async fn read(pipe: PipeReader, capture: &mut Capture, progress: &Progress) -> io::Result<()> {
    let mut receiver = Receiver::from_owned_fd(OwnedFd::from(pipe))?;
    let mut buffer = vec![0; 64 * 1024];
    let mut pending = Vec::new();
    loop {
        let count = receiver.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        capture.push(bytes);
        // Who watches sees as much as is kept: endless output must not become endless progress.
        if !capture.is_cut() {
            pending.extend_from_slice(bytes);
            progress.report(take_text(&mut pending));
        }
        // A program that prints without end must not keep the others waiting, nor the time limit.
        tokio::task::yield_now().await;
    }
}

/// Runs one program quietly and returns its exit code and what it printed; nothing where it takes too long.
pub(crate) async fn run_quietly(
    invocation: Invocation,
    env: &ExecutionEnv,
    sandbox: Option<PreparedSandbox>,
    bounds: Bounds,
) -> Option<(i32, Vec<u8>)> {
    let mut group = ProcessGroup::new(sandbox);
    let result =
        tokio::time::timeout(bounds.time, quiet_output(invocation, env, &mut group, bounds.output)).await;
    group.end().await;
    result.ok()?.ok()?
}

async fn quiet_output(
    invocation: Invocation,
    env: &ExecutionEnv,
    group: &mut ProcessGroup,
    most: usize,
) -> io::Result<Option<(i32, Vec<u8>)>> {
    let mut command = command(&invocation, env);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = group.spawn(command)?;
    let mut printed = Vec::new();
    if let Some(output) = child.take_stdout() {
        output.take(most as u64 + 1).read_to_end(&mut printed).await?;
    }
    let status = child.wait().await?;
    group.mark_ended();
    Ok((printed.len() <= most).then(|| (exit_code(status), printed)))
}
