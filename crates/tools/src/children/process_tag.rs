//! The mark of a family of processes, by which they are found wherever they went.
//!
//! A process can leave its group, its session and its parent. What it inherited it keeps: the mark is written
//! into its environment, which a program may clear, and into its limit on file locks, which Linux hands down
//! to every child but no longer looks at, and which can be lowered but not raised. From processes that are
//! marked all their descendants are found too, so that a family within the family does not get away.
//!
//! The limit must be there before the program runs, and a child can only inherit it: for the moment of the
//! start it is the soft limit of this process too. What others start at that moment has it as well, and is
//! told apart by being a child of this process without the variable.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that holds the mark.
pub(crate) const VARIABLE: &str = "LLM_DO_CHILD";

/// How many families of one process are told apart by their limit.
const FAMILIES: u64 = 1 << 20;

/// How many families there were.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// What the processes of one family, or of all families of this process, have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessTag {
    /// What the variable begins with.
    text: String,
    limits: RangeInclusive<u64>,
}

impl ProcessTag {
    /// The mark of a new family.
    pub(crate) fn next() -> Self {
        super::guardian::start();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let limit = chance() * FAMILIES + number % FAMILIES;
        Self { text: format!("{:016x}-{number}\0", chance()), limits: limit..=limit }
    }

    /// Returns whether this process has started any family.
    pub(crate) fn is_in_use() -> bool {
        COUNT.load(Ordering::Relaxed) > 0
    }

    /// What the marks of all families of this process have in common.
    pub(crate) fn of_this_process() -> Self {
        let first = chance() * FAMILIES;
        Self { text: format!("{:016x}-", chance()), limits: first..=first + FAMILIES - 1 }
    }

    /// Returns the limits on file locks that are the mark.
    pub(super) fn limits(&self) -> RangeInclusive<u64> {
        self.limits.clone()
    }

    /// Returns the value of the variable.
    pub(crate) fn value(&self) -> &str {
        self.text.trim_end_matches('\0')
    }
}

/// A number that keeps apart the families of several programs on one machine, in whatever namespaces.
fn chance() -> u64 {
    static CHANCE: OnceLock<u64> = OnceLock::new();
    // The limit has room for 63 bits.
    *CHANCE.get_or_init(|| (RandomState::new().hash_one(std::process::id()) >> 22) | (1 << 41))
}

#[cfg(not(target_os = "linux"))]
impl ProcessTag {
    pub(crate) fn while_inherited<T>(&self, start: impl FnOnce() -> T) -> T {
        start()
    }

    pub(crate) fn put_on(&self, _process: rustix::process::Pid) {}

    pub(crate) fn find(&self) -> Found {
        Found
    }

    pub(crate) fn kill_all(&self) {}
}

/// Where there is no list of processes, only groups are killed.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Found;

#[cfg(not(target_os = "linux"))]
impl Found {
    pub(crate) fn kill(&self) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, pidfd_open, pidfd_send_signal, prlimit,
        setrlimit,
    };

    use super::{ProcessTag, VARIABLE};

    /// How long processes are looked for that multiply faster than they are killed.
    const MAX_DURATION: Duration = Duration::from_millis(500);

    impl ProcessTag {
        /// Starts a program that inherits the mark.
        pub(crate) fn while_inherited<T>(&self, start: impl FnOnce() -> T) -> T {
            static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
            if is_marked_itself() {
                return start();
            }
            let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            let before = getrlimit(Resource::Locks);
            let marked = Rlimit { current: Some(*self.limits.start()), ..before };
            // Without it the variable remains.
            let _ = setrlimit(Resource::Locks, marked);
            let started = start();
            let _ = setrlimit(Resource::Locks, before);
            started
        }

        /// Makes the mark of a process that was just started one that it cannot take off.
        pub(crate) fn put_on(&self, process: Pid) {
            if !is_marked_itself() {
                let limit = Some(*self.limits.start());
                // One that is gone, or has become another user's, keeps what it inherited.
                let _ = prlimit(Some(process), Resource::Locks, Rlimit { current: limit, maximum: limit });
            }
        }

        /// Kills every process with this mark, until none was seen for a while: one that starts itself anew
        /// again and again may hide from a single look.
        pub(crate) fn kill_all(&self) {
            const CLEAN_LOOKS: u32 = 2;
            let start = Instant::now();
            let mut clean = 0;
            // What is not marked stays so: later looks are only for those who are new.
            let mut strangers = HashSet::new();
            while clean < CLEAN_LOOKS && start.elapsed() < MAX_DURATION {
                // Not `any`: all are killed, and at once, as they may be others in a moment.
                let new = processes().filter(|process| !strangers.contains(process));
                let (marked, others): (Vec<Pid>, Vec<Pid>) =
                    new.partition(|process| self.kill_if_marked(*process));
                strangers.extend(others);
                clean = if marked.is_empty() { clean + 1 } else { 0 };
                std::thread::sleep(Duration::from_millis(1));
            }
        }

        /// Kills a process through a handle, and says whether it was marked when it was seen first.
        fn kill_if_marked(&self, process: Pid) -> bool {
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

        /// Finds all processes with this mark, and their descendants.
        pub(crate) fn find(&self) -> Found {
            let marked: Vec<Pid> = processes().filter(|process| self.is_on(*process)).collect();
            if marked.is_empty() {
                return Found { handles: Vec::new(), seen: false };
            }
            // A handle, and then a second look: by then the number cannot belong to another process.
            let hold = |process: &Pid| pidfd_open(*process, PidfdFlags::empty()).ok();
            let children = children();
            let mut members: Vec<(Pid, OwnedFd)> =
                marked.iter().filter_map(|process| Some((*process, hold(process)?))).collect();
            members.retain(|(process, _)| self.is_on(*process));
            let mut next = 0;
            while let Some((parent, _)) = members.get(next) {
                let parent = *parent;
                let new = children.get(&parent).into_iter().flatten();
                let new: Vec<(Pid, OwnedFd)> = new
                    .filter(|child| members.iter().all(|(known, _)| known != *child))
                    .filter_map(|child| Some((*child, hold(child)?)))
                    .filter(|(child, _)| parent_of(*child) == Some(parent))
                    .collect();
                members.extend(new);
                next += 1;
            }
            Found { handles: members.into_iter().map(|(_, handle)| handle).collect(), seen: true }
        }

        fn is_on(&self, process: Pid) -> bool {
            let by_limit = limits_of(process).iter().any(|limit| self.limits.contains(limit));
            (by_limit && is_alive(process) && self.is_no_stranger(process)) || self.is_in_environment(process)
        }

        /// Returns whether the ancestors of a process lead to one that carries the variable, or are gone.
        fn is_no_stranger(&self, process: Pid) -> bool {
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
            let needle = format!("{VARIABLE}={}", self.text);
            // Also the last variable ends with a zero.
            environment
                .split_inclusive(|byte| *byte == 0)
                .any(|variable| variable.starts_with(needle.as_bytes()))
        }
    }

    /// Processes, held so that their numbers cannot mean others.
    pub(crate) struct Found {
        handles: Vec<OwnedFd>,
        seen: bool,
    }

    impl Found {
        /// Kills them, and says whether there was any, even if it has ended by now.
        pub(crate) fn kill(&self) -> bool {
            for handle in &self.handles {
                // One that has ended is what was wanted.
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
            self.seen
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
        Pid::from_raw(state_of(process)?.1)
    }

    /// Returns whether a process is more than an exit code that nobody asked for yet.
    fn is_alive(process: Pid) -> bool {
        state_of(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
    }

    /// What a process is doing, and its parent.
    fn state_of(process: Pid) -> Option<(char, i32)> {
        let stat = read(process, "stat");
        // The name of the program stands in parentheses, and may hold anything.
        let text = String::from_utf8_lossy(&stat);
        let (_, behind_name) = text.rsplit_once(')')?;
        let mut words = behind_name.split_whitespace();
        Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
    }

    /// Returns whether this process belongs to a family of another one: its children keep that mark, and whoever
    /// put it there finds them.
    fn is_marked_itself() -> bool {
        getrlimit(Resource::Locks).maximum.is_some()
    }

    /// The limits on file locks, soft and hard, where they are set.
    fn limits_of(process: Pid) -> Vec<u64> {
        let limits = read(process, "limits");
        let text = String::from_utf8_lossy(&limits);
        let line = text.lines().find_map(|line| line.strip_prefix("Max file locks"));
        line.into_iter().flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect()
    }

    fn read(process: Pid, file: &str) -> Vec<u8> {
        fs::read(format!("/proc/{}/{file}", process.as_raw_nonzero())).unwrap_or_default()
    }
}
