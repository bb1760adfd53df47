//! The command that `hairline record` runs: its signals and its exit code.
//!
//! A terminal sends Ctrl-C to the command too, because it is in the same process group. Signals that another
//! process sent are passed on, because they may have reached this process alone. Signals are handled, not
//! ignored: the command would inherit an ignored signal. A signal that is already ignored stays ignored.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};

use crate::platform::facts::NotStarted;
use crate::platform::posix::senders::Senders;
use crate::platform::posix::signals::heeded;
use crate::platform::posix::start;

/// Two Ctrl-C within this time kill a command that does not react to one.
const TWICE: Duration = Duration::from_secs(1);
/// Two SIGINT within this time are one: the sender sent it to this process and to its process group.
const SAME: Duration = Duration::from_millis(20);

/// The receiver of signals.
#[derive(Debug, Default)]
struct Target {
    /// The command. After its end its pid may belong to another process.
    state: Mutex<State>,
    /// Whether a signal came after the end.
    interrupted: AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Starting,
    Running {
        pid: Pid,
        /// Whether a signal came while it ran.
        heard: bool,
    },
    Ended {
        at: Instant,
        /// Whether a signal came while it ran, or with its end.
        heard: bool,
    },
}

/// A running command.
#[derive(Debug)]
pub(crate) struct Command {
    child: Child,
    target: Arc<Target>,
    signals: Handle,
}

/// A command that has ended. Signals are still handled.
#[derive(Debug)]
pub(crate) struct Ended {
    status: Option<ExitStatus>,
    target: Arc<Target>,
    signals: Handle,
}

impl Command {
    /// Starts the command. `before_exec` is called with its pid before it executes its program.
    pub(crate) fn start(
        mut command: process::Command,
        before_exec: Option<&mut dyn FnMut(u32)>,
    ) -> Result<Self, NotStarted> {
        let program = command.get_program().to_owned();
        let failed = |e: io::Error| NotStarted::new(&program, &e);
        let target = Arc::new(Target::default());
        let all = heeded(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]);
        // Before the iterator: the sender must be known when the iterator returns the signal.
        let senders = Senders::watch(&all).map_err(failed)?;
        let mut signals = Signals::new(all).map_err(failed)?;
        let handle = signals.handle();
        let heeding = Arc::clone(&target);
        let child = match before_exec {
            Some(before_exec) => start::spawn(command, before_exec),
            None => command.spawn(),
        };
        let child = child.map_err(failed)?;
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            *lock(&target.state) = State::Running { pid, heard: false };
        }
        let heed = move || {
            let mut last = None;
            signals.forever().for_each(|signal| {
                heeding.heed(signal, senders.take(signal), &mut last);
            });
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(heed).map_err(failed)?;
        Ok(Self { child, target, signals: handle })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the command.
    pub(crate) fn wait(mut self) -> Ended {
        // A zombie keeps its pid, so the command is not reaped before the state is set.
        let pid = if let State::Running { pid, .. } = *lock(&self.target.state) { Some(pid) } else { None };
        if let Some(pid) = pid {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), ended), Err(rustix::io::Errno::INTR)) {}
        }
        let mut state = lock(&self.target.state);
        let heard = matches!(*state, State::Running { heard: true, .. });
        *state = State::Ended { at: Instant::now(), heard };
        drop(state);
        Ended { status: self.child.wait().ok(), target: self.target, signals: self.signals }
    }
}

impl Target {
    /// Handles a signal. `is_sent` is whether a process sent it, not the terminal.
    fn heed(&self, signal: i32, is_sent: bool, last: &mut Option<Instant>) {
        let is_for_command = matches!(signal, SIGUSR1 | SIGUSR2);
        let mut state = lock(&self.state);
        let pid = match &mut *state {
            State::Running { pid, heard } => {
                *heard |= !is_for_command;
                *pid
            }
            _ if is_for_command => return,
            // The signal that ended the command also reaches this thread, maybe later.
            State::Ended { at, heard } if !*heard && at.elapsed() < TWICE => {
                *heard = true;
                return;
            }
            State::Starting | State::Ended { .. } => return self.interrupted.store(true, Ordering::Relaxed),
        };
        if signal == SIGINT {
            let since = last.map(|last| last.elapsed());
            if since.is_some_and(|since| since < SAME) {
                return;
            }
            *last = Some(Instant::now());
            if since.is_some_and(|since| since < TWICE) {
                let _ = kill_process(pid, Signal::KILL);
                return;
            }
        }
        // A terminal that hangs up sends SIGHUP to the session's leader only.
        let passed_on = match signal {
            SIGTERM => Some(Signal::TERM),
            SIGHUP => Some(Signal::HUP),
            SIGUSR1 => Some(Signal::USR1),
            SIGUSR2 => Some(Signal::USR2),
            SIGINT if is_sent => Some(Signal::INT),
            SIGQUIT if is_sent => Some(Signal::QUIT),
            _ => None,
        };
        if let Some(signal) = passed_on {
            // If the command has ended, nobody needs the signal.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Ended {
    /// The exit code, in the form that shells use.
    pub(crate) fn code(&self) -> u8 {
        let code =
            self.status.map_or(1, |s| s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or_default()));
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// Whether a signal came after the end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.target.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.signals.close();
    }
}

fn lock(mutex: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
