//! Refuses system calls with a seccomp filter.
//!
//! The filter closes the network and local sockets, protects modes and attributes of files, which Landlock does not
//! cover, and refuses what would get around the sandbox: tracing, namespaces, mounts, other ways to submit calls, calls
//! of a foreign architecture. A refused call returns an error; only a program of a foreign architecture is killed.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use super::{Reads, Sandbox, Writes};

/// System calls that are refused in every sandbox.
const ALWAYS: &[c_long] = &[
    // Other processes, their memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    PROCESS_MRELEASE,
    // Keys, programs in the kernel, and what looks into it.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    // Another view of the file system, and files without a path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// System calls that report `ENOSYS`, so that libraries fall back to older ones: a filter cannot see the arguments of
/// these.
const ABSENT: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// System calls that report `EOPNOTSUPP` if writes are confined, as on many file systems: attributes cannot be confined
/// by path.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// System calls that are refused if nothing may be written: owners, modes, times, and shared memory.
const OWNERS_MODES_AND_TIMES: &[c_long] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// System calls that are refused without the network. Pairs of connected sockets are still allowed.
const NETWORK: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

// Newer calls, which have the same number on all architectures.
const QUOTACTL_FD: c_long = 443;
const PROCESS_MRELEASE: c_long = 448;
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

/// The resource `RLIMIT_LOCKS`.
const LOCKS_LIMIT: u64 = libc::RLIMIT_LOCKS as u64;

/// `ioctl` requests that insert input into a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// `ioctl` requests that set attributes of files, through a descriptor that need not be writable.
const FILE_FLAGS: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// The flags of `clone` that make namespaces.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// The first Landlock ABI that covers truncation.
const TRUNCATION_ABI: u32 = 3;

/// A filter, ready to be installed.
#[derive(Debug)]
pub(super) struct Filter(BpfProgram);

impl Filter {
    /// Makes the filter for a sandbox, on a kernel with this Landlock ABI.
    pub(super) fn new(sandbox: &Sandbox, level: u32) -> io::Result<Self> {
        let [mut refused, mut absent, mut unsupported]: [SyscallRules; 3] = Default::default();
        refused.all(ALWAYS);
        absent.all(ABSENT);
        refused.sandbox_escapes()?;
        refused.sockets(sandbox)?;
        if sandbox.writes != Writes::Anywhere {
            unsupported.all(ATTRIBUTES);
            refused.any_of(libc::SYS_ioctl, 1, FILE_FLAGS)?;
        }
        if sandbox.writes == Writes::Nowhere {
            refused.all(OWNERS_MODES_AND_TIMES);
        }
        if sandbox.writes != Writes::Anywhere && level < TRUNCATION_ABI {
            refused.truncation()?;
            absent.all(&[libc::SYS_openat2]);
        }
        joined([(absent, libc::ENOSYS), (unsupported, libc::EOPNOTSUPP), (refused, libc::EPERM)]).map(Self)
    }

    /// Restricts the calling thread and everything that it starts.
    pub(super) fn install(&self) -> io::Result<()> {
        apply_filter(&self.0).map_err(io::Error::other)
    }
}

/// Restricts the calling thread so that it has no network, and checks that it has none.
pub(super) fn try_filter() -> Result<(), String> {
    let strictest = Sandbox { reads: Reads::Anywhere, writes: Writes::Nowhere, network: false };
    let filter = Filter::new(&strictest, 0).map_err(|error| error.to_string())?;
    filter.install().map_err(|error| error.to_string())?;
    match std::net::UdpSocket::bind("127.0.0.1:0") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        _ => Err("the filter was installed and has no effect".to_owned()),
    }
}

/// System calls, each with conditions on its arguments. A call without conditions always matches.
#[derive(Default)]
struct SyscallRules(BTreeMap<c_long, Vec<SeccompRule>>);

impl SyscallRules {
    fn all(&mut self, calls: &[c_long]) {
        self.0.extend(calls.iter().map(|call| (*call, Vec::new())));
    }

    fn add(&mut self, call: c_long, conditions: Vec<SeccompCondition>) -> io::Result<()> {
        let rule = SeccompRule::new(conditions).map_err(io::Error::other)?;
        self.0.entry(call).or_default().push(rule);
        Ok(())
    }

    /// Adds a call for each of some values of one argument.
    fn any_of(
        &mut self,
        call: c_long,
        argument: u8,
        values: impl IntoIterator<Item = u64>,
    ) -> io::Result<()> {
        values
            .into_iter()
            .try_for_each(|value| self.add(call, vec![condition(argument, SeccompCmpOp::Eq, value)?]))
    }

    fn sandbox_escapes(&mut self) -> io::Result<()> {
        for flag in NAMESPACES {
            self.add(libc::SYS_clone, vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)?])?;
        }
        self.any_of(libc::SYS_ioctl, 1, TYPING)?;
        // Limits, priorities and processors of other processes.
        for (call, process) in [
            (libc::SYS_prlimit64, 0),
            (libc::SYS_setpriority, 1),
            (libc::SYS_ioprio_set, 1),
            (libc::SYS_sched_setaffinity, 0),
            (libc::SYS_sched_setattr, 0),
            (libc::SYS_sched_setparam, 0),
            (libc::SYS_sched_setscheduler, 0),
        ] {
            self.add(call, vec![condition(process, SeccompCmpOp::Ne, 0)?])?;
        }
        // The limit on file locks is the tag of a process (`ProcessTag`), which must not be removed.
        let locks = LOCKS_LIMIT;
        self.add(libc::SYS_prlimit64, vec![condition(1, SeccompCmpOp::Eq, locks)?, given(2)?])?;
        self.any_of(libc::SYS_setrlimit, 0, [locks])
    }

    /// Sockets of local services can be used to escape, so they need more than the network.
    fn sockets(&mut self, sandbox: &Sandbox) -> io::Result<()> {
        let local = family(libc::AF_UNIX);
        let mut families = vec![family(libc::AF_INET), family(libc::AF_INET6), family(libc::AF_NETLINK)];
        let is_free = sandbox.network && sandbox.writes == Writes::Anywhere;
        if is_free {
            families.push(local);
        }
        if sandbox.network {
            let others = families.into_iter().map(|family| condition(0, SeccompCmpOp::Ne, family));
            self.add(libc::SYS_socket, others.collect::<io::Result<_>>()?)?;
        } else {
            self.all(NETWORK);
        }
        self.add(libc::SYS_socketpair, vec![condition(0, SeccompCmpOp::Ne, local)?])?;
        if !is_free {
            // A datagram socket can be connected to another address later.
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
                let unconnected = condition(1, SeccompCmpOp::MaskedEq(0xf), family(kind))?;
                self.add(libc::SYS_socketpair, vec![unconnected])?;
            }
        }
        Ok(())
    }

    /// Refuses to truncate a file that was not opened for writing.
    fn truncation(&mut self) -> io::Result<()> {
        self.all(&[libc::SYS_truncate]);
        let (mask, value) = ((libc::O_TRUNC | libc::O_ACCMODE) as u64, libc::O_TRUNC as u64);
        let opens = [
            (libc::SYS_openat, 2),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, 1),
        ];
        for (call, argument) in opens {
            self.add(call, vec![condition(argument, SeccompCmpOp::MaskedEq(mask), value)?])?;
        }
        Ok(())
    }

    fn program(self, error: i32) -> io::Result<BpfProgram> {
        let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let refusal = SeccompAction::Errno(error.unsigned_abs());
        let filter = SeccompFilter::new(self.0, SeccompAction::Allow, refusal, architecture);
        let program: BpfProgram =
            filter.and_then(TryInto::try_into).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(program)
    }
}

/// Joins several filters into one program, because installing each takes its time. No call may be in two of them: the
/// first filter that has a call decides about it.
fn joined<const N: usize>(parts: [(SyscallRules, i32); N]) -> io::Result<BpfProgram> {
    let mut joined = x32_calls();
    for (index, (calls, error)) in parts.into_iter().enumerate() {
        let mut program = calls.program(error)?;
        if index + 1 < N {
            // The last instruction allows what no part knows, so only the last part keeps it.
            program.pop();
        }
        joined.extend(program);
    }
    Ok(joined)
}

fn condition(argument: u8, operation: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value).map_err(io::Error::other)
}

/// An argument that points to something.
fn given(argument: u8) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).map_err(io::Error::other)
}

fn family(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

/// On x86-64 every call has a second number, with a bit set, for the rarely used x32 ABI, which is reported as missing.
/// The check comes first and needs no check of the architecture: no other one has such numbers.
fn x32_calls() -> Vec<sock_filter> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const REFUSE: u32 = 0x0005_0000;
    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    match cfg!(target_arch = "x86_64") {
        true => vec![
            instruction(LOAD_WORD, 0, 0),
            instruction(JUMP_IF_NOT_LESS, 1, 0x4000_0000),
            instruction(RETURN, 0, REFUSE | libc::ENOSYS.unsigned_abs()),
        ],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_in_two_parts() {
        let refused = [ALWAYS, OWNERS_MODES_AND_TIMES, NETWORK].concat();
        let conditional = [
            libc::SYS_clone,
            libc::SYS_ioctl,
            libc::SYS_prlimit64,
            libc::SYS_socketpair,
            libc::SYS_openat,
            libc::SYS_truncate,
        ];
        let others = [ABSENT, ATTRIBUTES, &[libc::SYS_openat2]].concat();
        let mut all = [refused, conditional.to_vec(), others].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
