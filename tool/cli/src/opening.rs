//! How a command opens its inputs, and on how many threads it works.

use std::io::{self, Write};
use std::num::NonZero;
use std::thread;

use hairline_convert::{TraceFormat, write_behind};

use crate::format::FormatArgument;

/// How a command opens its inputs.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Opening {
    /// The format of the input. Default: by its first bytes.
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<FormatArgument>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

impl Opening {
    /// The format of the input, if it is given.
    pub(crate) fn format(self) -> Option<TraceFormat> {
        self.from.map(TraceFormat::from)
    }
}

impl From<Threads> for Opening {
    fn from(threads: Threads) -> Self {
        Self { from: None, threads }
    }
}

/// The threads of a command.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Threads {
    /// The number of threads. With more than one, a thread reads and unpacks the input ahead, and another
    /// packs and writes the output. The output is the same. Default: the processors that the command may use.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

impl Threads {
    /// Whether inputs and outputs have threads of their own.
    pub(crate) fn are_several(self) -> bool {
        self.threads.or_else(|| thread::available_parallelism().ok()).is_some_and(|n| n.get() > 1)
    }

    /// Calls `work` with a stream to `output`, which a thread of its own writes if there are several. All is
    /// written when this returns.
    ///
    /// # Errors
    /// Fails if the output does after `work` wrote to it.
    pub(crate) fn written<T>(
        self,
        output: &mut (dyn Write + Send),
        work: impl FnOnce(&mut dyn Write) -> T,
    ) -> io::Result<T> {
        if self.are_several() { write_behind(output, work) } else { Ok(work(output)) }
    }
}
