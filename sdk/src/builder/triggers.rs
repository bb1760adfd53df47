//! When a flight recorder writes snapshots, and what panics and signals do.

use std::time::Duration;

use crate::builder::SessionBuilder;

impl SessionBuilder {
    /// Sets the shortest time between two snapshots that [`trigger!`](crate::trigger) writes (default: 10 s).
    /// A trigger within that time of the last one is ignored.
    pub fn trigger_interval(mut self, shortest: Duration) -> Self {
        self.config.trigger_interval = shortest;
        self
    }

    /// Records an instant at each panic (default: `false`), on the thread that panics: category `panic`, name
    /// `panic`, arguments `message` and `location`. [`categories`](Self::categories) does not apply to it.
    ///
    /// The instant is recorded before the program's own panic hook runs. After the hook, the thread waits
    /// until the output has the instant, at most 1 s, also if the panic aborts the process. While an output
    /// is stuck, only one panic waits. In a session with [`Overflow::Overwrite`](crate::Overflow::Overwrite)
    /// the instant is in the ring, and [`trigger_on_panic`](Self::trigger_on_panic) writes a snapshot that
    /// has it.
    ///
    /// A hook that the program sets after the session's start replaces the one of this crate. Then panics are
    /// recorded only if the program's hook calls the one that [`std::panic::take_hook`] has returned. A panic
    /// in the code of an argument of an event with options (`correlation: 7`) comes while the event is being
    /// written: it is counted in [`Lost::reentrant`](crate::Lost::reentrant) instead.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// let session = Session::builder().output_memory(&MemoryOutput::new()).record_panics(true).start()?;
    /// let _ = std::panic::catch_unwind(|| panic!("no such row"));
    /// let summary = session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert_eq!(summary.records, 1);
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn record_panics(mut self, on: bool) -> Self {
        self.config.record_panics = on;
        self
    }

    /// Writes a snapshot at a panic (default: `false`), after the panic hooks that were installed before have
    /// run. The snapshot is complete when the panic continues, also if the panic aborts the process. A second
    /// panic within [`trigger_interval`](Self::trigger_interval) writes none. The panicking thread waits for
    /// the snapshot, at most 5 s. For sessions with [`Overflow::Overwrite`](crate::Overflow::Overwrite).
    ///
    /// ```
    /// # use hairline::{Overflow, Session, trace_instant};
    /// # let path = std::env::temp_dir().join(format!("hairline-panic-{}.pftrace", std::process::id()));
    /// let recorder = Session::builder().overflow(Overflow::Overwrite).output(&path);
    /// let session = recorder.trigger_on_panic(true).start()?;
    /// trace_instant!("db", "query");
    /// let _ = std::panic::catch_unwind(|| panic!("no such row"));
    /// # if cfg!(feature = "enable") {
    /// assert!(path.exists()); // the snapshot is complete
    /// # }
    /// # drop(session);
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn trigger_on_panic(mut self, on: bool) -> Self {
        self.config.trigger_on_panic = on;
        self
    }

    /// Writes a snapshot within 0.2 s after a signal, for instance `SIGUSR2` (`12` on Linux). The program's
    /// own handler of the signal is called too. From then on the signal does not end the process, also after
    /// the session's end. For sessions with [`Overflow::Overwrite`](crate::Overflow::Overwrite).
    /// [`start`](Self::start) fails if the signal cannot be handled.
    pub fn trigger_on_signal(mut self, signal: i32) -> Self {
        self.config.trigger_on_signal = Some(signal);
        self
    }

    /// Writes a snapshot within 0.2 s after a slice that took `limit` or longer: a scope, a guard of a slice
    /// on a track, an interval of [`trace_async!`](crate::trace_async), a span of `tracing`, the life of a
    /// recorded future, or a poll of one of these. For sessions with
    /// [`Overflow::Overwrite`](crate::Overflow::Overwrite).
    ///
    /// `pattern` is `CATEGORY/NAME`, where `*` matches any run of characters; `*/*` is every slice. The name
    /// is the constant one. Of several rules that match, the last one decides. The option `slow:` of a macro
    /// counts where no rule matches.
    ///
    /// The file is named after the slice: beside `trace.pftrace`, the first one is
    /// `trace.net-request.1.pftrace`. A snapshot comes at most once in
    /// [`trigger_interval`](Self::trigger_interval), and the newest [`keep_snapshots`](Self::keep_snapshots)
    /// stay. [`start`](Self::start) fails if the pattern has no `/`, or the limit is 0.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use hairline::{Overflow, Session, trace_scope};
    /// # let folder = std::env::temp_dir().join(format!("hairline-slow-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let recorder = Session::builder().overflow(Overflow::Overwrite).output(folder.join("trace.pftrace"));
    /// let session = recorder.trigger_on_slow("net/*", Duration::from_millis(5)).start()?;
    /// {
    ///     trace_scope!("net", "request");
    ///     std::thread::sleep(Duration::from_millis(10));
    /// }
    /// session.stop()?; // a snapshot that is due is written
    /// # if cfg!(feature = "enable") {
    /// assert!(folder.join("trace.net-request.1.pftrace").exists());
    /// # }
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trigger_on_slow(mut self, pattern: impl Into<String>, limit: Duration) -> Self {
        self.slow.push((pattern.into(), limit));
        self
    }

    /// Records two call stacks of each slow slice (default: `false`): one at its end, and one when it reaches its
    /// limit, while it is still running, of what it does then. The limits are those of
    /// [`trigger_on_slow`](Self::trigger_on_slow) and of the option `slow:`. It works in each session, also in
    /// one that writes no snapshots.
    ///
    /// At the limit, the thread gets a signal (`SIGPROF`), whose handler copies its registers and 32 KiB of its
    /// stack. So a system call in which it waits may return early, if the kernel cannot resume it
    /// (`SA_RESTART`). No thread gets a signal while its slices are not slow. There is no stack at the limit of
    /// slices of a program that handles the signal itself, of a thread that blocks it, and of intervals and
    /// slices on tracks, which are no thread's. It needs what [`stacks`](Self::stacks) needs.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use hairline::{MemoryOutput, Session, trace_scope};
    /// # let memory = MemoryOutput::new();
    /// let builder = Session::builder().output_memory(&memory);
    /// let session = builder.trigger_on_slow("net/*", Duration::from_millis(5)).slow_stacks(true).start()?;
    /// {
    ///     trace_scope!("net", "request");
    ///     std::thread::sleep(Duration::from_millis(10)); // both stacks have this function
    /// }
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn slow_stacks(mut self, on: bool) -> Self {
        self.config.slow_stacks = on;
        self
    }

    /// Sets how many snapshots of slow slices are kept (default: 10). When there is one more, the oldest one
    /// of this session is removed. 0 keeps all.
    pub fn keep_snapshots(mut self, newest: u32) -> Self {
        self.config.keep_snapshots = newest;
        self
    }

    /// Completes the trace when SIGTERM, SIGINT or SIGHUP ends the process (default: `false`). Without this
    /// setting the trace has to be recovered by the command `hairline recover`. The process then dies of the
    /// same signal, so its parent sees the same status as without tracing. A signal that the program handles
    /// is left to the program. The process ends at once at a second signal, and if the output accepts no
    /// bytes for 3 s.
    pub fn finish_on_signals(mut self, on: bool) -> Self {
        self.config.finish_on_signals = on;
        self
    }
}
