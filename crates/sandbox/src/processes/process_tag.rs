//! A tag that child processes inherit, so that they are found after they left their process group.
//!
//! A process can leave its group, its session and its parent, but it keeps what it inherited. The tag is therefore in
//! two places: an environment variable, which a program may clear, and the limit on file locks (`RLIMIT_LOCKS`), which
//! every child inherits, which Linux no longer enforces, and which can be lowered but not raised. Descendants of tagged
//! processes are found too, even if they were tagged anew.
//!
//! A child must have the limit before its program runs, and it can only inherit it, so this process has it as its own
//! soft limit while the child is started. A child that another thread starts at that moment inherits the limit too; it
//! is told apart because it is a child of this process without the variable.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that holds the tag.
pub const TAG_VARIABLE: &str = "LLM_DO_CHILD";

/// How many tags of one process differ in their limit.
const TAGS_PER_PROCESS: u64 = 1 << 20;

/// How many tags this process has made.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A tag of child processes, or what all tags of this process have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTag {
    /// The prefix of the variable's value.
    prefix: String,
    limits: RangeInclusive<u64>,
}

impl ProcessTag {
    /// Makes a new tag, and starts the guardian process before the first one.
    #[expect(clippy::new_without_default, reason = "two tags are never equal")]
    pub fn new() -> Self {
        super::guardian::start();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let limit = process_number() * TAGS_PER_PROCESS + number % TAGS_PER_PROCESS;
        Self { prefix: format!("{:016x}-{number}\0", process_number()), limits: limit..=limit }
    }

    /// Returns whether this process has made any tag.
    pub(super) fn is_in_use() -> bool {
        COUNT.load(Ordering::Relaxed) > 0
    }

    /// Returns the tag that matches the processes of all tags of this process.
    pub(super) fn common() -> Self {
        let first = process_number() * TAGS_PER_PROCESS;
        Self { prefix: format!("{:016x}-", process_number()), limits: first..=first + TAGS_PER_PROCESS - 1 }
    }

    /// Returns the values of the limit on file locks that belong to this tag.
    pub(super) fn limits(&self) -> RangeInclusive<u64> {
        self.limits.clone()
    }

    /// Returns the value of [`TAG_VARIABLE`].
    pub fn value(&self) -> &str {
        self.prefix.trim_end_matches('\0')
    }
}

/// Returns a random number that tells the tags of this process from those of others on the machine, whatever their
/// PID namespace.
fn process_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // The limit has room for 63 bits.
    *NUMBER.get_or_init(|| (RandomState::new().hash_one(std::process::id()) >> 22) | (1 << 41))
}

#[cfg(not(target_os = "linux"))]
impl ProcessTag {
    pub fn while_inherited<T>(&self, start: impl FnOnce() -> T) -> T {
        start()
    }

    pub fn fix_on(&self, _process: rustix::process::Pid) {}

    pub fn find(&self) -> TaggedProcesses {
        TaggedProcesses
    }

    pub fn kill_all(&self) {}
}

/// Without `/proc` there is no list of processes, so only groups are killed.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct TaggedProcesses;

#[cfg(not(target_os = "linux"))]
impl TaggedProcesses {
    pub fn kill(&self) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
pub use linux::TaggedProcesses;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;
    use rustix::process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, pidfd_open, pidfd_send_signal, prlimit,
        setrlimit,
    };

    use super::{ProcessTag, TAG_VARIABLE};

    /// How long to look for processes that start others faster than they are killed.
    const MAX_DURATION: Duration = Duration::from_millis(500);

    impl ProcessTag {
        /// Runs a closure that starts one program, which inherits the tag.
        pub fn while_inherited<T>(&self, start: impl FnOnce() -> T) -> T {
            static STARTING: Mutex<()> = Mutex::new(());
            if is_this_process_tagged() {
                return start();
            }
            let _guard = STARTING.lock();
            let before = getrlimit(Resource::Locks);
            let tagged = Rlimit { current: Some(*self.limits.start()), ..before };
            // If this fails, the processes are still found by the variable.
            let _ = setrlimit(Resource::Locks, tagged);
            let started = start();
            let _ = setrlimit(Resource::Locks, before);
            started
        }

        /// Lowers the hard limit of a process that was just started, so that it cannot remove the tag.
        pub fn fix_on(&self, process: Pid) {
            if !is_this_process_tagged() {
                let limit = Some(*self.limits.start());
                // A process that has ended or changed its user cannot be changed; it keeps what it inherited.
                let _ = prlimit(Some(process), Resource::Locks, Rlimit { current: limit, maximum: limit });
            }
        }

        /// Kills every process with this tag, until two scans in a row find none: a process that forks all the time
        /// can be missed by a single scan.
        pub fn kill_all(&self) {
            const CLEAN_SCANS: u32 = 2;
            let start = Instant::now();
            let mut clean = 0;
            // A process without the tag never gets it, so later scans look only at new processes.
            let mut untagged = HashSet::new();
            while clean < CLEAN_SCANS && start.elapsed() < MAX_DURATION {
                // Not `any`: every match must be killed, and before its number belongs to another process.
                let new = processes().filter(|process| !untagged.contains(process));
                let (tagged, others): (Vec<Pid>, Vec<Pid>) =
                    new.partition(|process| self.kill_if_tagged(*process));
                untagged.extend(others);
                clean = if tagged.is_empty() { clean + 1 } else { 0 };
                std::thread::sleep(Duration::from_millis(1));
            }
        }

        /// Kills a process if it carries the tag, and returns whether it did.
        fn kill_if_tagged(&self, process: Pid) -> bool {
            if !self.is_on(process) {
                return false;
            }
            if let Ok(handle) = pidfd_open(process, PidfdFlags::empty())
                && self.is_on(process)
            {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
            true
        }

        /// Finds all processes with this tag, and their descendants.
        pub fn find(&self) -> TaggedProcesses {
            let tagged: Vec<Pid> = processes().filter(|process| self.is_on(*process)).collect();
            if tagged.is_empty() {
                return TaggedProcesses { handles: Vec::new(), found_any: false };
            }
            // The tag is checked again once the handle is open: from then on the number cannot belong to another
            // process.
            let open = |process: &Pid| pidfd_open(*process, PidfdFlags::empty()).ok();
            let children = children();
            let mut members: Vec<(Pid, OwnedFd)> =
                tagged.iter().filter_map(|process| Some((*process, open(process)?))).collect();
            members.retain(|(process, _)| self.is_on(*process));
            let mut next = 0;
            while let Some((parent, _)) = members.get(next) {
                let parent = *parent;
                let new = children.get(&parent).into_iter().flatten();
                let new: Vec<(Pid, OwnedFd)> = new
                    .filter(|child| members.iter().all(|(known, _)| known != *child))
                    .filter_map(|child| Some((*child, open(child)?)))
                    .filter(|(child, _)| parent_of(*child) == Some(parent))
                    .collect();
                members.extend(new);
                next += 1;
            }
            TaggedProcesses {
                handles: members.into_iter().map(|(_, handle)| handle).collect(),
                found_any: true,
            }
        }

        fn is_on(&self, process: Pid) -> bool {
            let by_limit = limits_of(process).iter().any(|limit| self.limits.contains(limit));
            (by_limit && is_alive(process) && self.was_started_with_tag(process))
                || self.is_in_environment(process)
        }

        /// Returns whether the oldest ancestor below this process carries the variable, or this process is not an
        /// ancestor any more.
        fn was_started_with_tag(&self, process: Pid) -> bool {
            let mut ancestor = process;
            while let Some(parent) = parent_of(ancestor) {
                if parent == getpid() {
                    return self.is_in_environment(ancestor);
                }
                ancestor = parent;
            }
            true
        }

        fn is_in_environment(&self, process: Pid) -> bool {
            let environment = read(process, "environ");
            let needle = format!("{TAG_VARIABLE}={}", self.prefix);
            // The last variable ends with a zero byte too.
            environment
                .split_inclusive(|byte| *byte == 0)
                .any(|variable| variable.starts_with(needle.as_bytes()))
        }
    }

    /// Processes with a tag, by handles, so that none of them can be mistaken for another process.
    #[derive(Debug)]
    pub struct TaggedProcesses {
        handles: Vec<OwnedFd>,
        found_any: bool,
    }

    impl TaggedProcesses {
        /// Kills them, and returns whether there were any, even if they have ended since.
        pub fn kill(&self) -> bool {
            for handle in &self.handles {
                // An error means that the process has already ended.
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
            self.found_any
        }
    }

    fn processes() -> impl Iterator<Item = Pid> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.filter_map(number).filter_map(Pid::from_raw)
    }

    fn children() -> HashMap<Pid, Vec<Pid>> {
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        for process in processes() {
            if let Some(parent) = parent_of(process) {
                children.entry(parent).or_default().push(process);
            }
        }
        children
    }

    fn parent_of(process: Pid) -> Option<Pid> {
        Pid::from_raw(stat_of(process)?.1)
    }

    /// Returns whether a process is running, and not a zombie.
    fn is_alive(process: Pid) -> bool {
        stat_of(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
    }

    /// Returns the state of a process, as in `/proc/PID/stat`, and its parent.
    fn stat_of(process: Pid) -> Option<(char, i32)> {
        let stat = read(process, "stat");
        // The name of the program is in parentheses and can contain any character.
        let text = String::from_utf8_lossy(&stat);
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
    }

    /// Returns whether another process has tagged this one: the children keep that tag, and the other process finds
    /// them.
    fn is_this_process_tagged() -> bool {
        getrlimit(Resource::Locks).maximum.is_some()
    }

    /// Returns the soft and hard limits on file locks, if they are set.
    fn limits_of(process: Pid) -> Vec<u64> {
        let limits = read(process, "limits");
        let text = String::from_utf8_lossy(&limits);
        let line = text.lines().find_map(|line| line.strip_prefix("Max file locks"));
        line.into_iter().flat_map(str::split_whitespace).filter_map(|limit| limit.parse().ok()).collect()
    }

    fn read(process: Pid, file: &str) -> Vec<u8> {
        fs::read(format!("/proc/{}/{file}", process.as_raw_nonzero())).unwrap_or_default()
    }
}
