//! One process that runs the Python files of a project, with the calls that it runs.
//!
//! Four threads serve it: one reads what it says, one reads what its code prints past it, one sends what it does
//! not take at once, one waits for its end. They end with the process. None of them belongs to an async runtime: a
//! project that is loaded outlives any.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use llm_do_core::{CallContext, NoticeSink, UndeliveredNotice};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::cancel_watch::CancelWatch;
use crate::outbox::Outbox;
use crate::outside::Outside;
use crate::process_exit::{ProcessExit, describe_status};
use crate::wire::{Ask, CallReply, FromHost, LineReader, Loaded, SayKind, ToHost, WireProblem};
use llm_do_sandbox::{ProcessTag, TAG_VARIABLE, forget_group, guard_group, kill_group};

/// How much of what code prints past its call is told, per call.
const MAX_LOG_BYTES: usize = 256 * 1024;
/// How much a call may say; the process keeps to less by itself.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// What a line costs beyond its text.
const COST_OF_LINE: usize = 32;
/// How much of what was printed outside any call is kept.
const MAX_KEPT_BYTES: usize = 64 * 1024;
/// How long a process that has closed its channel may take to end.
const TIME_TO_END: Duration = Duration::from_secs(1);
/// How long is waited for the last words of a process that has ended.
const TIME_FOR_LAST_WORDS: Duration = Duration::from_millis(500);

/// After how long it is said which file is being imported, and how often it is said again.
const TIME_BEFORE_REPORT: Duration = Duration::from_secs(2);
const TIME_BETWEEN_REPORTS: Duration = Duration::from_secs(10);

/// How a process is started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) interpreter: PathBuf,
    pub(crate) start: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The message by which the files are loaded.
    pub(crate) load: Vec<u8>,
    pub(crate) load_limit: Duration,
    /// Where lines go that belong to no call.
    pub(crate) outside: Arc<Outside>,
}

/// Why the files could not be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The process could not be started.
    NotStarted(io::Error),
    /// The process says what is wrong with the files.
    Refused(Vec<WireProblem>),
    /// The process ended.
    Ended(Arc<ProcessExit>),
    /// Loading took too long.
    TooLong {
        limit: Duration,
        /// The file that was being imported.
        file: Option<String>,
        ending: Arc<ProcessExit>,
    },
}

/// What a call hears from its process.
#[derive(Debug)]
pub(crate) enum News {
    Done(CallReply),
    Ask(Ask),
    Ended(Arc<ProcessExit>),
}

/// Who is told what the code of a request prints and says.
pub(crate) enum Listener {
    /// The call in whose name the code runs.
    Call(CallContext),
    /// The agent call for which a toolset is opened or closed.
    Agent(NoticeSink),
    /// Nobody in particular: a call that was given up, or code that belongs to no call.
    Nobody,
}

impl Listener {
    fn call(&self) -> Option<&CallContext> {
        match self {
            Self::Call(call) => Some(call),
            Self::Agent(_) | Self::Nobody => None,
        }
    }

    /// Returns where lines go that are printed outside of calls while this request, or its run, goes on.
    fn notices(&self) -> Option<NoticeSink> {
        match self {
            Self::Call(call) => Some(call.run_notices()),
            Self::Agent(notices) => Some(notices.clone()),
            Self::Nobody => None,
        }
    }

    /// Tells one text; returns it if nobody is there to hear it.
    fn hear(&self, kind: SayKind, text: String) -> Result<(), String> {
        match (self, kind) {
            (Self::Call(call), SayKind::Stderr) => call.stderr(text),
            (Self::Call(call), SayKind::Notice) => call.notice(text),
            (Self::Call(call), SayKind::Progress) => call.progress().report(text),
            (Self::Agent(_) | Self::Nobody, SayKind::Progress) => {}
            (Self::Agent(notices), _) => return notices.send(text).map_err(|UndeliveredNotice(text)| text),
            (Self::Nobody, _) => return Err(text),
        }
        Ok(())
    }
}

/// A call that the process runs.
pub(crate) struct Slot {
    /// What people call it.
    pub(crate) name: Arc<str>,
    /// Who is told what its code prints and says.
    pub(crate) listener: Listener,
    /// Where its news go.
    pub(crate) news: Box<dyn Fn(News) + Send>,
    /// Whether its success shows that the process works.
    pub(crate) counts: bool,
    told: usize,
    said: usize,
}

impl Slot {
    pub(crate) fn new(
        name: Arc<str>,
        listener: Listener,
        counts: bool,
        news: Box<dyn Fn(News) + Send>,
    ) -> Self {
        Self { name, listener, news, counts, told: 0, said: 0 }
    }
}

/// A process that runs Python files.
pub(crate) struct Process {
    id: Pid,
    tag: ProcessTag,
    control: UnixStream,
    pub(crate) outbox: Outbox,
    calls: Mutex<RunningCalls>,
    life: Mutex<Life>,
    changed: Condvar,
    kept: Mutex<Kept>,
    outside: Arc<Outside>,
    pub(crate) watch: CancelWatch,
}

#[derive(Default)]
struct RunningCalls {
    /// By number, so that the first is the oldest.
    running: BTreeMap<u64, Slot>,
    succeeded: bool,
    ended: Option<Arc<ProcessExit>>,
}

/// Whether the process lives, under one lock with whoever kills it: its id must not belong to another by then.
#[derive(Default)]
struct Life {
    has_exited: bool,
    status: Option<ExitStatus>,
    /// Why this program killed it.
    killed_for: Option<String>,
    on_purpose: bool,
}

/// What was printed outside any call: the last of it.
#[derive(Default)]
struct Kept(String);

impl Kept {
    fn add(&mut self, text: &str) {
        self.0.push_str(text);
        if self.0.len() > 2 * MAX_KEPT_BYTES {
            let cut = self.0.len() - MAX_KEPT_BYTES;
            let cut = (cut..).find(|index| self.0.is_char_boundary(*index)).unwrap_or(self.0.len());
            self.0.drain(..cut);
        }
    }
}

/// What the reading thread tells whoever loads.
enum LoadNews {
    /// A file is imported; none when all are.
    Loading(Option<String>),
    Loaded(Box<Loaded>),
    Refused(Vec<WireProblem>),
    Ended(Arc<ProcessExit>),
}

impl Process {
    /// Starts a process and lets it load the files.
    pub(crate) fn load(launch: &Launch) -> Result<(Arc<Self>, Loaded), LoadError> {
        let (sender, news) = mpsc::channel();
        let process = Self::start(launch, sender).map_err(LoadError::NotStarted)?;
        process.outbox.send_now(launch.load.clone());
        let mut loading = None;
        match wait_for_load(&news, launch, &mut loading) {
            Some(LoadNews::Loaded(loaded)) => Ok((process, *loaded)),
            Some(LoadNews::Refused(problems)) => {
                process.end(Duration::from_millis(200));
                Err(LoadError::Refused(problems))
            }
            Some(LoadNews::Ended(ending)) => Err(LoadError::Ended(ending)),
            Some(LoadNews::Loading(_)) | None => {
                process.kill("took too long to load the files", false);
                process.wait_for_end(TIME_TO_END);
                let ending = process.ending_so_far();
                Err(LoadError::TooLong { limit: launch.load_limit, file: loading, ending })
            }
        }
    }

    fn start(launch: &Launch, load: Sender<LoadNews>) -> io::Result<Arc<Self>> {
        let (ours, theirs) = UnixStream::pair()?;
        let (output, output_end) = io::pipe()?;
        let tag = ProcessTag::new();
        let mut command = Command::new(&launch.interpreter);
        command.arg("-u").arg(&launch.start).current_dir(&launch.directory);
        command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
        command.env(TAG_VARIABLE, tag.value()).process_group(0);
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::from(output_end.try_clone()?)).stderr(Stdio::from(output_end));
        let child = tag.while_inherited(|| command.spawn())?;
        // The command holds the other ends of what the process was given.
        drop(command);
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
        tag.fix_on(id);
        guard_group(id);
        let process = Arc::new(Self {
            id,
            tag,
            control: ours.try_clone()?,
            outbox: Outbox::new(ours.try_clone()?),
            calls: Mutex::default(),
            life: Mutex::default(),
            changed: Condvar::new(),
            kept: Mutex::default(),
            outside: launch.outside.clone(),
            watch: CancelWatch::default(),
        });
        // A process that nobody serves must not stay.
        process.clone().begin(child, ours, output, load).inspect_err(|_| kill_group(id))?;
        Ok(process)
    }

    /// Starts the threads that serve the process.
    fn begin(
        self: Arc<Self>,
        child: Child,
        control: UnixStream,
        output: PipeReader,
        load: Sender<LoadNews>,
    ) -> io::Result<()> {
        let (sender, last_message) = mpsc::channel();
        let (waiting, printing, writing, reading) = (self.clone(), self.clone(), self.clone(), self);
        spawn("wait", move || waiting.wait_for(child))?;
        spawn("output", move || {
            printing.read_output(output);
            // Whoever waits for it may be gone.
            let _ = sender.send(());
        })?;
        spawn("send", move || writing.outbox.work())?;
        spawn("read", move || reading.serve(control, &load, &last_message))
    }

    /// Waits for the end of the process, and ends everything that it started.
    fn wait_for(&self, mut child: Child) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(self.id), options) {}
        // Looked for first: with the death of a parent it is forgotten whose child a process was.
        let found = self.tag.find();
        kill_group(self.id);
        forget_group(self.id);
        if found.kill() {
            self.tag.kill_all();
        }
        let mut life = self.life();
        life.status = child.wait().ok();
        life.has_exited = true;
        drop(life);
        // What it has said is still read; whoever else holds the channel says nothing more.
        let _ = self.control.shutdown(Shutdown::Both);
        self.changed.notify_all();
    }

    /// Reads what the process says until its end.
    fn serve(&self, control: UnixStream, load: &Sender<LoadNews>, last_message: &Receiver<()>) {
        let mut lines = LineReader::new(control);
        let broken = loop {
            match lines.next() {
                Ok(Some(line)) => match FromHost::read(line) {
                    Ok(message) => self.hear(message, load),
                    Err(error) => break Some(format!("{error}: `{}`", beginning(line))),
                },
                Ok(None) => break None,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => break Some(error.to_string()),
                Err(_) => break None,
            }
        };
        if let Some(broken) = broken {
            let hint = "its code may have written to a descriptor that is not its own";
            self.kill(&format!("was ended because it said what is not a message ({hint}): {broken}"), false);
        }
        if !self.wait_for_exit(TIME_TO_END) {
            self.kill("was ended because it closed its channel", false);
            self.wait_for_exit(TIME_TO_END);
        }
        let _ = last_message.recv_timeout(TIME_FOR_LAST_WORDS);
        let ending = self.finish();
        let _ = load.send(LoadNews::Ended(ending));
    }

    fn hear(&self, message: FromHost, load: &Sender<LoadNews>) {
        match message {
            FromHost::Done { id, reply } => self.done(id, reply),
            FromHost::Ask { call, ask } => self.ask(call, ask),
            FromHost::Say { call, kind, text } => self.say(call, kind, text),
            // Whoever loads may have given up.
            FromHost::Loading(file) => drop(load.send(LoadNews::Loading(file))),
            FromHost::Loaded(loaded) => drop(load.send(LoadNews::Loaded(loaded))),
            FromHost::Refused(problems) => drop(load.send(LoadNews::Refused(problems))),
        }
    }

    fn done(&self, id: u64, reply: CallReply) {
        let mut calls = self.calls();
        let Some(slot) = calls.running.remove(&id) else { return };
        calls.succeeded |= slot.counts && reply.error.is_none();
        drop(calls);
        self.watch.wake();
        (slot.news)(News::Done(reply));
    }

    fn ask(&self, call: u64, ask: Ask) {
        // A call that is over asks nothing: its process answers its code itself.
        if let Some(slot) = self.calls().running.get(&call) {
            (slot.news)(News::Ask(ask));
        }
    }

    fn say(&self, call: Option<u64>, kind: SayKind, text: String) {
        let mut calls = self.calls();
        let Some(slot) = call.and_then(|call| calls.running.get_mut(&call)) else {
            drop(calls);
            return self.printed(&format!("{text}\n"));
        };
        slot.said += text.len() + COST_OF_LINE;
        if slot.said > MAX_OUTPUT_BYTES {
            return;
        }
        let unheard = slot.listener.hear(kind, text);
        drop(calls);
        if let Err(text) = unheard {
            self.printed(&format!("{text}\n"));
        }
    }

    /// Reads what code prints past its call: subprocesses, C code, `os.write`.
    fn read_output(&self, mut output: PipeReader) {
        let mut buffer = vec![0; 64 * 1024];
        let mut pending = Vec::new();
        loop {
            let count = match output.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            pending.extend_from_slice(buffer.get(..count).unwrap_or_default());
            let whole = match pending.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if count == 0 || pending.len() >= buffer.len() => pending.len(),
                None => 0,
            };
            let text: Vec<u8> = pending.drain(..whole).collect();
            self.printed(&String::from_utf8_lossy(&text));
            if count == 0 {
                return self.printed(&String::from_utf8_lossy(&pending));
            }
        }
    }

    /// Tells lines that name no call that is running: to the oldest one that is, or to the run.
    fn printed(&self, text: &str) {
        self.keep(text);
        if !self.tell_oldest(text) {
            text.lines().for_each(|line| self.outside.tell(line));
        }
    }

    /// Tells lines to the oldest running call; returns whether there is one. The call cannot end meanwhile.
    fn tell_oldest(&self, text: &str) -> bool {
        let mut calls = self.calls();
        let oldest = calls.running.values_mut().find(|slot| slot.listener.call().is_some());
        let Some(slot) = oldest else { return false };
        for line in text.lines() {
            if slot.told > MAX_LOG_BYTES {
                break;
            }
            slot.told += line.len() + COST_OF_LINE;
            let line = match slot.told > MAX_LOG_BYTES {
                true => "what is printed from here on is left out: there is too much of it",
                false => line,
            };
            // A call hears everything.
            let _ = slot.listener.hear(SayKind::Stderr, line.to_owned());
        }
        true
    }

    fn keep(&self, text: &str) {
        self.kept.lock().add(text);
    }

    /// Enters a call; or says how the process has ended.
    pub(crate) fn enter(&self, id: u64, slot: Slot) -> Result<(), Arc<ProcessExit>> {
        if let Some(notices) = slot.listener.notices() {
            self.outside.send_to(notices);
        }
        let mut calls = self.calls();
        match &calls.ended {
            Some(ending) => Err(ending.clone()),
            None => {
                calls.running.insert(id, slot);
                Ok(())
            }
        }
    }

    /// Takes back a call that was not sent.
    pub(crate) fn take_back(&self, id: u64) {
        self.calls().running.remove(&id);
    }

    /// Gives up a call whose caller is gone: what its code still prints belongs to the run.
    pub(crate) fn give_up(&self, id: u64) {
        if let Some(slot) = self.calls().running.get_mut(&id) {
            slot.listener = Listener::Nobody;
        }
    }

    /// Returns the name of a call that still runs.
    pub(crate) fn name_of(&self, id: u64) -> Option<Arc<str>> {
        self.calls().running.get(&id).map(|slot| slot.name.clone())
    }

    /// Says that a call shall end.
    pub(crate) fn cancel(&self, id: u64) {
        if let Ok(line) = (ToHost::Cancel { id }).line() {
            self.outbox.send_now(line);
        }
    }

    /// Interrupts the code that the main thread of the process runs.
    pub(crate) fn interrupt(&self) {
        let life = self.life();
        if !life.has_exited {
            let _ = kill_process(self.id, Signal::USR1);
        }
    }

    /// Kills the process and its group, for a reason.
    pub(crate) fn kill(&self, reason: &str, on_purpose: bool) {
        let mut life = self.life();
        if !life.has_exited {
            life.killed_for.get_or_insert_with(|| reason.to_owned());
            life.on_purpose |= on_purpose;
            kill_group(self.id);
        }
    }

    /// Asks the process to leave, and ends it when it does not. Afterwards nothing of it is left.
    pub(crate) fn end(&self, time: Duration) {
        if let Ok(line) = ToHost::Exit.line() {
            self.outbox.send_now(line);
        }
        if !self.wait_for_exit(time) {
            self.kill("did not leave when it was asked to", true);
            self.wait_for_exit(TIME_TO_END);
        }
        // Its last lines are read until then.
        self.wait_for_end(TIME_TO_END);
    }

    /// Waits until the process and all that it started are gone; says whether they are.
    fn wait_for_exit(&self, time: Duration) -> bool {
        let mut life = self.life();
        self.changed.wait_while_for(&mut life, |life| !life.has_exited, time);
        life.has_exited
    }

    /// Waits until every call was told that the process has ended.
    fn wait_for_end(&self, time: Duration) {
        let start = Instant::now();
        while self.ending().is_none() && start.elapsed() < time {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Tells every running call how the process ended.
    fn finish(&self) -> Arc<ProcessExit> {
        let ending = self.ending_so_far();
        let mut calls = self.calls();
        calls.ended = Some(ending.clone());
        let running = std::mem::take(&mut calls.running);
        drop(calls);
        self.outbox.close();
        self.watch.wake();
        for slot in running.into_values() {
            (slot.news)(News::Ended(ending.clone()));
        }
        ending
    }

    /// Returns how the process ended, if it has.
    pub(crate) fn ending(&self) -> Option<Arc<ProcessExit>> {
        self.calls().ended.clone()
    }

    /// Returns whether a call has succeeded in this process.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.calls().succeeded
    }

    fn ending_so_far(&self) -> Arc<ProcessExit> {
        let life = self.life();
        let how = life.killed_for.clone().unwrap_or_else(|| describe_status(life.status));
        let on_purpose = life.on_purpose;
        drop(life);
        let last_lines = self.kept.lock().0.clone();
        let running = self.calls().running.values().map(|slot| slot.name.to_string()).collect();
        Arc::new(ProcessExit { how, running, last_lines, on_purpose })
    }

    fn calls(&self) -> MutexGuard<'_, RunningCalls> {
        self.calls.lock()
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock()
    }
}

/// Waits until the files are loaded, refused or given up, and reports now and then which file is being imported.
fn wait_for_load(
    news: &Receiver<LoadNews>,
    launch: &Launch,
    loading: &mut Option<String>,
) -> Option<LoadNews> {
    let start = Instant::now();
    // Before the first file the interpreter is starting, which may take long on a busy machine.
    let mut next_report = TIME_BETWEEN_REPORTS;
    loop {
        let wait = next_report.min(launch.load_limit).saturating_sub(start.elapsed());
        match news.recv_timeout(wait) {
            Ok(LoadNews::Loading(file)) => {
                *loading = file;
                next_report = start.elapsed() + TIME_BEFORE_REPORT;
            }
            Ok(other) => return Some(other),
            Err(RecvTimeoutError::Timeout) if start.elapsed() < launch.load_limit => {
                let doing = match loading.as_deref() {
                    Some(file) => format!("importing {}", short_name(file)),
                    None => "loading the Python files".to_owned(),
                };
                let (passed, limit) = (start.elapsed().as_secs(), launch.load_limit.as_secs_f64());
                let text = format!("still {doing} ({passed} s, at most {limit} s)");
                launch.outside.report_loading(text);
                next_report += TIME_BETWEEN_REPORTS;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// The name of a file without its directory.
pub(crate) fn short_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn spawn(what: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("python-{what}")).spawn(work).map(drop)
}

/// The beginning of what is not a message, for people.
fn beginning(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default()).into_owned();
    llm_do_core::visible_line(&text).chars().take(80).collect()
}
