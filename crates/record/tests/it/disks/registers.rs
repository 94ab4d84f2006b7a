//! The registers of a traced thread at a system call.

use nix::sys::ptrace;
use nix::unistd::Pid;

/// Number, arguments and result of a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers(nix::libc::user_regs_struct);

impl Registers {
    pub(crate) fn read(thread: Pid) -> nix::Result<Self> {
        ptrace::getregs(thread).map(Self)
    }

    pub(crate) fn write(&self, thread: Pid) {
        ptrace::setregs(thread, self.0).unwrap();
    }

    /// Takes over the arguments of other registers, as the program expects them to be kept.
    pub(crate) fn with_arguments_of(mut self, other: &Self) -> Self {
        (0..3).for_each(|index| self.set_argument(index, other.argument(index)));
        self
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(crate) fn number(&self) -> i64 {
        self.0.orig_rax.cast_signed()
    }

    pub(crate) fn argument(&self, index: usize) -> u64 {
        [self.0.rdi, self.0.rsi, self.0.rdx, self.0.r10][index]
    }

    pub(crate) fn set_argument(&mut self, index: usize, value: u64) {
        let registers = &mut self.0;
        *[&mut registers.rdi, &mut registers.rsi, &mut registers.rdx, &mut registers.r10][index] = value;
    }

    pub(crate) fn result(&self) -> i64 {
        self.0.rax.cast_signed()
    }

    pub(crate) fn set_result(&mut self, result: i64) {
        self.0.rax = result.cast_unsigned();
    }
}

/// The first argument and the result share a register.
#[cfg(target_arch = "aarch64")]
impl Registers {
    pub(crate) fn number(&self) -> i64 {
        self.0.regs[8].cast_signed()
    }

    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.0.regs[index]
    }

    pub(crate) fn set_argument(&mut self, index: usize, value: u64) {
        self.0.regs[index] = value;
    }

    pub(crate) fn result(&self) -> i64 {
        self.0.regs[0].cast_signed()
    }

    pub(crate) fn set_result(&mut self, result: i64) {
        self.0.regs[0] = result.cast_unsigned();
    }
}
