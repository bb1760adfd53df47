//! Stack samples: which function a thread was in at a moment.

use hairline_formats::track_event::{CpuMode, UnwindError};

use crate::scheduling::Copied;

/// The call stack of a thread at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The time in nanoseconds, on the trace's clock.
    pub time: i64,
    /// The process id; 0 if unknown.
    pub pid: u64,
    /// The thread id.
    pub tid: u64,
    /// The processor, if known.
    pub cpu: Option<u32>,
    /// What the sample was taken for.
    pub kind: SampleKind,
    /// The CPU time that the sample stands for, in nanoseconds; 0 if unknown.
    pub period: u64,
    /// What the processor was doing.
    pub mode: CpuMode,
    /// Why the call stack ends before its root; [`UnwindError::Unknown`] if it does not.
    pub unwind_error: UnwindError,
    /// The call stack.
    pub stack: &'a dyn Stack,
    /// The record in its own format, if it is valid by itself.
    pub copy: Option<Copied<'a>>,
}

/// What a call stack has allocated and freed from the begin of a heap profile until a dump of it. A dump may
/// leave out the call stacks without a change.
#[derive(Clone, Copy, Debug)]
pub struct HeapSums<'a> {
    /// The time of the dump in nanoseconds, on the trace's clock.
    pub time: i64,
    /// The process id.
    pub pid: u64,
    /// Tells the call stacks of the trace apart: the numbers of its sequence, and of the stack on it.
    pub key: (u64, u64),
    /// Bytes that were allocated.
    pub allocated: u64,
    /// Bytes of these that were freed.
    pub freed: u64,
    /// The call stack.
    pub stack: &'a dyn Stack,
}

/// What a sample was taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleKind {
    /// The thread ran at this moment.
    #[default]
    OnCpu,
    /// The thread left its processor at this moment.
    OffCpu,
    /// The thread recorded an event at this moment, or was in a slow slice.
    Event,
    /// A certain time had passed since the sample before, whether the thread ran or slept.
    Wall,
}

/// A call stack, decoded on demand.
pub trait Stack {
    /// Calls `show` for each frame, the outermost first.
    fn each(&self, show: &mut dyn FnMut(StackFrame<'_>));
}

impl std::fmt::Debug for dyn Stack + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        self.each(&mut |frame| {
            list.entry(&frame);
        });
        list.finish()
    }
}

impl Stack for &[StackFrame<'_>] {
    fn each(&self, show: &mut dyn FnMut(StackFrame<'_>)) {
        self.iter().for_each(|frame| show(*frame));
    }
}

/// A frame of a call stack. Unknown properties are "" or 0. Its text is the function, or the module and the
/// address, and the line in the source.
///
/// ```
/// use hairline_convert::StackFrame;
///
/// let send = StackFrame { function: "send", file: "net.rs", line: 7, ..StackFrame::default() };
/// let other = StackFrame { module: "/bin/server", address: 0x10, ..StackFrame::default() };
/// assert_eq!((send.to_string(), other.to_string()), ("send (net.rs:7)".into(), "/bin/server+0x10".into()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame<'a> {
    /// The name of the function. [`Symbols`] that follow in the trace may have it instead.
    pub function: &'a str,
    /// The path of the program or library.
    pub module: &'a str,
    /// The module's build id.
    pub build_id: &'a [u8],
    /// The address relative to the module.
    pub address: u64,
    /// The path of the source file.
    pub file: &'a str,
    /// The line in the file.
    pub line: u32,
}

impl std::fmt::Display for StackFrame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.function, self.module) {
            ("", "") => write!(f, "{:#x}", self.address)?,
            ("", module) => write!(f, "{module}+{:#x}", self.address)?,
            (function, _) => f.write_str(function)?,
        }
        match (self.file, self.line) {
            ("", _) => Ok(()),
            (file, 0) => write!(f, " ({file})"),
            (file, line) => write!(f, " ({file}:{line})"),
        }
    }
}

/// The source of an address, found after it was sampled.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    /// The path of the program or library.
    pub module: &'a str,
    /// The module's build id.
    pub build_id: &'a [u8],
    /// The address relative to the module.
    pub address: u64,
    /// The function, after the functions that are inlined in it, the innermost first.
    pub lines: &'a [SymbolLine],
}

/// A function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolLine {
    /// The function's name.
    pub function: String,
    /// The path of the source file, or "".
    pub file: String,
    /// The line in the file, or 0.
    pub line: u32,
}
