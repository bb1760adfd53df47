//! Filters of system calls, as sandboxes have them.

#![allow(unsafe_code)] // prctl

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes these system calls of the command fail with `errno`, in all of its processes.
///
/// # Panics
/// When there are more than a filter of this kind has.
pub fn refuse(command: &mut Command, calls: &[libc::c_long], errno: libc::c_int) {
    let filter = filter(calls, errno);
    // SAFETY: the closure calls `prctl` alone.
    unsafe { command.pre_exec(move || install(&filter)) };
}

/// Makes these system calls fail with `errno` from now on, in this thread and those that it starts.
///
/// # Panics
/// When there are more than a filter of this kind has, or the system has no such filters.
pub fn refuse_here(calls: &[libc::c_long], errno: libc::c_int) {
    install(&filter(calls, errno)).expect("a filter");
}

/// From now on, a system call of this thread kills the process, unless it waits, wakes a thread or ends the
/// process.
///
/// # Panics
/// When the system has no such filters.
pub fn only_wakes_here() {
    let code = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let filter = [
        code(LOAD, 0, 0),
        code(EQUAL, 2, u32::try_from(libc::SYS_exit_group).expect("a number")),
        code(EQUAL, 1, u32::try_from(libc::SYS_futex).expect("a number")),
        code(RETURN, 0, libc::SECCOMP_RET_KILL_PROCESS),
        code(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    install(&filter).expect("a filter");
}

/// The number of the call.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn filter(calls: &[libc::c_long], errno: libc::c_int) -> Vec<libc::sock_filter> {
    let code = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = vec![code(LOAD, 0, 0)];
    for (n, call) in calls.iter().enumerate() {
        let to_refusal = u8::try_from(calls.len() - n).expect("few calls");
        filter.push(code(EQUAL, to_refusal, u32::try_from(*call).expect("a number")));
    }
    filter.push(code(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(code(RETURN, 0, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()));
    filter
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: takes numbers, and a program that lives for the call. Both calls are safe after a fork.
    unsafe {
        let all = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0;
        if all { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
