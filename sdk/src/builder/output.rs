//! Where the trace goes, in which format, and how large it gets.

use std::io::Write;
use std::path::Path;

use crate::builder::SessionBuilder;
use crate::builder::config::{OutputConfig, Rotate};
use crate::options::Format;
use crate::output::MemoryOutput;

impl SessionBuilder {
    /// Writes the trace to a file. The extension names the format. A path without a known extension needs
    /// [`format`](Self::format). In the path, `%p` becomes the id of the process, `%e` the name of its
    /// executable, `%h` that of the host, `%t` the time of the start, and `%u` a random number
    /// ([`expand_path`](crate::expand_path) has all of them).
    ///
    /// A file that is empty, or a trace whose session has ended, is replaced. Other files stay as they are: the
    /// trace of a killed process, a recovered one, and what is no trace. The session then takes the next free
    /// name: `trace-2.pftrace` beside `trace.pftrace`. [`Summary::path`](crate::Summary::path) has it. If
    /// another process writes a trace to the file, the session does not start. A FIFO is written as long as a
    /// process reads it. A FIFO without a reader is an error.
    ///
    /// With [`Overflow::Overwrite`](crate::Overflow::Overwrite) the file is written at each triggered
    /// snapshot and at the session's end. `%n` becomes the first number from 1 that no file has. Without `%n`, a
    /// triggered snapshot is not replaced at the session's end.
    ///
    /// With `%p` or `%u` a forked child has a trace of its own, from its first event on. A session with the same
    /// settings records it. The trace is completed when the child exits, or by this session's handle in the
    /// child. Without either, a forked child records nothing.
    ///
    /// ```
    /// # use hairline::{Session, trace_instant};
    /// # let path = std::env::temp_dir().join(format!("hairline-output-{}.fxt", std::process::id()));
    /// let session = Session::builder().output(&path).start()?; // `.fxt` or `.pftrace`
    /// trace_instant!("net", "retry");
    /// let summary = session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert_eq!((summary.path, summary.records), (Some(path.clone()), 1));
    /// # }
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn output(mut self, path: impl AsRef<Path>) -> Self {
        self.config.output = OutputConfig::Path(path.as_ref().to_owned());
        self
    }

    /// Keeps the trace in memory. The format is `TrackEvent`, unless [`format`](Self::format) sets another
    /// one.
    pub fn output_memory(mut self, memory: &MemoryOutput) -> Self {
        self.config.output = OutputConfig::Memory(memory.clone());
        self
    }

    /// Writes the trace to any writer, on the drain thread. The format is `TrackEvent`, unless
    /// [`format`](Self::format) sets another one. The writer should not record events itself.
    ///
    /// ```
    /// # use hairline::{Format, Session};
    /// let session = Session::builder().output_writer(std::io::sink()).format(Format::Fxt).start()?;
    /// # session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn output_writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.config.output = OutputConfig::Writer(Box::new(writer));
        self
    }

    /// Sets the format of the trace. [`start`](Self::start) fails if the extension of the output's path names
    /// the other format.
    ///
    /// ```
    /// # use hairline::{Format, MemoryOutput, Session};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).format(Format::Fxt).start()?;
    /// session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert!(memory.to_vec().starts_with(&[0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0])); // FXT's magic number
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn format(mut self, format: Format) -> Self {
        self.config.format = Some(format);
        self
    }

    /// Limits the output to `bytes` (default: no limit; at least 64 KiB). When the next batch would exceed
    /// the limit, the session finishes the trace and stops recording. The file is complete, and this is no
    /// error. Records that are in the ring then are counted in [`Lost::output`](crate::Lost::output), and
    /// [`Summary::notes`](crate::Summary::notes) has a note.
    ///
    /// The trace may end before the limit: by one chunk for each recording thread, and with `compress` by 1
    /// MiB of records before their compression. Without effect with
    /// [`Overflow::Overwrite`](crate::Overflow::Overwrite), whose snapshots are as large as the ring.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).max_file_size(64 << 10).start()?;
    /// for attempt in 0..100_000 {
    ///     trace_instant!("net", "retry", attempt);
    /// }
    /// let summary = session.stop()?;
    /// assert!(memory.len() <= 64 << 10);
    /// # if cfg!(feature = "enable") {
    /// assert!(summary.records < 100_000 && !summary.notes.is_empty());
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.config.max_file_size = Some(bytes);
        self
    }

    /// Continues in a new file when the output has grown to `size` bytes (at least 64 KiB), and keeps the
    /// newest `keep` files, the current one included (0: all files). The newest file is at the
    /// [path](Self::output) itself. Older files are numbered in the order of their ends: `trace.pftrace`, and
    /// `trace.1.pftrace`, `trace.2.pftrace`, ... The numbers go on where those of an earlier run end, and
    /// `keep` counts its files too.
    ///
    /// Each file is a complete trace. It starts with all strings and tracks that its records refer to, and
    /// with the begins of open slices, at their own time. In the file before, these slices have no end. Every
    /// record is in one file only. A file may exceed `size` by one chunk, or more if its start takes more
    /// than half of `size`. While threads end slices that other threads have begun, a file ends between two
    /// looks at the ring: then it may exceed `size` by [`buffer_size`](Self::buffer_size). If two threads
    /// record the begin and the first step of a flow at nearly the same time, and an FXT file ends between
    /// the two, that arrow is not shown.
    ///
    /// If the next file cannot be created, the output continues in the old one, and
    /// [`Summary::notes`](crate::Summary::notes) has a note. [`max_file_size`](Self::max_file_size) limits
    /// all files together. The drain thread looks at each record, which takes CPU time. Without effect if the
    /// output is no regular file, and with [`Overflow::Overwrite`](crate::Overflow::Overwrite).
    ///
    /// ```no_run
    /// # use hairline::{Session, parse_size};
    /// // Eight files of at most 64 MiB each.
    /// let session = Session::builder().output("trace.pftrace").rotate(parse_size("64M")?, 8).start()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn rotate(mut self, size: u64, keep: u32) -> Self {
        self.config.rotate = Some(Rotate { size, keep });
        self
    }

    /// Compresses a `TrackEvent` trace while it is written (default: `false`), to about a fifth. The drain
    /// thread compresses some 100 MB/s. An FXT trace is not compressed, nor are the snapshots of a flight
    /// recorder: [`Summary::notes`](crate::Summary::notes) has a note then.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).compress(true).start()?;
    /// for attempt in 0..10_000 {
    ///     trace_instant!("net", "retry", attempt);
    /// }
    /// session.stop()?;
    /// assert!(memory.len() < 100_000); // less than 10 bytes an event
    /// # Ok::<(), hairline::Error>(())
    /// ```
    #[cfg(feature = "compress")]
    #[cfg_attr(docsrs, doc(cfg(feature = "compress")))]
    pub fn compress(mut self, on: bool) -> Self {
        self.config.compress = on;
        self
    }
}
