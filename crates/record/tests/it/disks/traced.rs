//! A process whose writes and syncs of files are watched, and made to fail.
//!
//! The process is traced: it stops at each system call, so what it does to files is seen in its order, as the kernel would
//! see it, and a call can be kept from the kernel and answered with an error. Nothing of the program under test knows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::registers::Registers;

/// Something that a process does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiskCall {
    Create,
    Write { offset: u64, bytes: Vec<u8> },
    Truncate { len: u64 },
    Sync,
    Remove,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    /// It is not done, and fails so.
    Fail(Errno),
    /// Half of a write is done.
    Shorten,
    /// The process is killed before it.
    Kill,
}

/// Runs a command to its end. The function sees each call that is about to be made on a file below the directory, and once
/// more, as done, when it has succeeded. Returns what the command printed.
#[expect(clippy::zombie_processes, reason = "the tracer waits for it")]
pub(crate) fn trace(
    command: Command,
    directory: &Path,
    decide: impl FnMut(&Path, &DiskCall, Stage) -> Verdict,
) -> Vec<u8> {
    let mut child = start(&command);
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap());
    ptrace::seize(
        process,
        Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL,
    )
    .unwrap();
    ptrace::interrupt(process).unwrap();
    // The shell waits for a line before it becomes the command.
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).map(|_| bytes)
    });
    Tracer { directory: directory.to_owned(), decide, open: HashMap::new() }.follow(process);
    reader.join().unwrap().unwrap()
}

/// Whether a call is about to be made or was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Before,
    Done,
}

/// Starts a command in a shell that first waits for a line.
fn start(command: &Command) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "read -r line; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

struct Tracer<F> {
    directory: PathBuf,
    decide: F,
    /// The calls that threads are in.
    open: HashMap<Pid, OpenCall>,
}

/// A system call that has begun.
struct OpenCall {
    /// What it does to a file, if that concerns us.
    call: Option<(PathBuf, DiskCall)>,
    verdict: Verdict,
    registers: Registers,
}

impl<F: FnMut(&Path, &DiskCall, Stage) -> Verdict> Tracer<F> {
    /// Follows all threads of a process until it ends.
    fn follow(mut self, process: Pid) {
        // Of this thread only: other tests wait for processes of their own.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            let status = match waitpid(None, Some(flags)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(error) => panic!("the traced process cannot be waited for: {error}"),
            };
            let resumed = match status {
                WaitStatus::PtraceSyscall(thread) => {
                    self.at_system_call(thread);
                    ptrace::syscall(thread, None)
                }
                WaitStatus::PtraceEvent(thread, ..) => ptrace::syscall(thread, None),
                WaitStatus::Stopped(thread, Signal::SIGTRAP) => ptrace::syscall(thread, None),
                WaitStatus::Stopped(thread, signal) => ptrace::syscall(thread, signal),
                WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) if thread == process => {
                    return;
                }
                _ => Ok(()),
            };
            // A thread may be gone by now.
            assert!(matches!(resumed, Ok(()) | Err(Errno::ESRCH)), "{resumed:?}");
        }
    }

    fn at_system_call(&mut self, thread: Pid) {
        match self.open.remove(&thread) {
            None => self.begins(thread),
            Some(open) => self.ends(thread, open),
        }
    }

    fn begins(&mut self, thread: Pid) {
        let Ok(mut registers) = Registers::read(thread) else { return };
        let mut open = OpenCall { call: None, verdict: Verdict::Allow, registers };
        if let Some((path, call)) = disk_call(thread, &registers)
            && path.starts_with(&self.directory)
        {
            open.verdict = (self.decide)(&path, &call, Stage::Before);
            match open.verdict {
                Verdict::Allow => {}
                Verdict::Kill => signal::kill(thread, Signal::SIGKILL).unwrap(),
                // A descriptor or pointer that is not valid keeps the kernel from doing anything.
                Verdict::Fail(_) => {
                    registers.set_argument(0, u64::MAX);
                    registers.set_argument(1, u64::MAX);
                    registers.write(thread);
                }
                Verdict::Shorten => {
                    registers.set_argument(2, registers.argument(2) / 2);
                    registers.write(thread);
                }
            }
            open.call = Some((path, call));
        }
        self.open.insert(thread, open);
    }

    fn ends(&mut self, thread: Pid, open: OpenCall) {
        let Some((path, call)) = open.call else { return };
        let Ok(mut registers) = Registers::read(thread) else { return };
        let result = registers.result();
        if open.verdict != Verdict::Allow {
            // The program finds its arguments as they were.
            registers = registers.with_arguments_of(&open.registers);
            registers.set_result(match open.verdict {
                Verdict::Fail(error) => -(error as i64),
                _ => result,
            });
            registers.write(thread);
        } else if result >= 0 {
            (self.decide)(&path, &call, Stage::Done);
        }
    }
}

/// What a system call does to a file, if it changes or syncs one.
fn disk_call(thread: Pid, registers: &Registers) -> Option<(PathBuf, DiskCall)> {
    let argument = |index| registers.argument(index);
    let bytes = || memory(thread, argument(1), usize::try_from(argument(2)).unwrap());
    match registers.number() {
        libc::SYS_write => {
            let path = path_of(thread, argument(0))?;
            Some((path, DiskCall::Write { offset: position(thread, argument(0))?, bytes: bytes()? }))
        }
        libc::SYS_pwrite64 => {
            let call = DiskCall::Write { offset: argument(3), bytes: bytes()? };
            Some((path_of(thread, argument(0))?, call))
        }
        libc::SYS_ftruncate => Some((path_of(thread, argument(0))?, DiskCall::Truncate { len: argument(1) })),
        libc::SYS_fsync | libc::SYS_fdatasync => Some((path_of(thread, argument(0))?, DiskCall::Sync)),
        libc::SYS_openat if argument(2) & u64::from(libc::O_CREAT.cast_unsigned()) != 0 => {
            let path = PathBuf::from(text(thread, argument(1))?);
            (!path.exists()).then_some((path, DiskCall::Create))
        }
        libc::SYS_unlinkat => Some((PathBuf::from(text(thread, argument(1))?), DiskCall::Remove)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => Some((PathBuf::from(text(thread, argument(0))?), DiskCall::Remove)),
        _ => None,
    }
}

/// The file of a descriptor.
fn path_of(thread: Pid, descriptor: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()
}

/// Where the next write of a descriptor goes: to the end of a file that is only appended to.
fn position(thread: Pid, descriptor: u64) -> Option<u64> {
    let info = std::fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok()?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    if flags & libc::O_APPEND != 0 {
        return std::fs::metadata(path_of(thread, descriptor)?).ok().map(|file| file.len());
    }
    field("pos:")?.parse().ok()
}

fn memory(thread: Pid, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    File::open(format!("/proc/{thread}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

fn text(thread: Pid, address: u64) -> Option<String> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = vec![0; 4_096];
    let len = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..len].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}
