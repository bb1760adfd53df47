//! Where a trace comes from, and where its rows go.

use std::io;

use hairline_convert::{Item, Report, TraceReader};

use crate::batch::Batch;

/// A trace that is read.
pub trait Source {
    /// Opens the trace from its first byte. Called a second time only if
    /// [`is_repeatable`](Self::is_repeatable).
    ///
    /// # Errors
    /// Fails if the trace cannot be opened.
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, hairline_convert::Error>;

    /// Whether the trace can be opened a second time. If not, slices have no `running` and `waiting`, events
    /// far from the order of time are not sorted, and rows lack names that come after them. All three are
    /// counted in [`Summary::left_out`](crate::Summary::left_out).
    fn is_repeatable(&self) -> bool {
        true
    }

    /// The part that is read; `None`, as by default, for the whole trace. Called before each
    /// [`open`](Self::open).
    fn choice(&self) -> Option<Box<dyn Choice>> {
        None
    }
}

/// Chooses what of a trace is read.
pub trait Choice {
    /// Passes on what is chosen of an item: the item, a part of it, or others.
    fn item(&mut self, item: &Item<'_>, pass: &mut dyn FnMut(&Item<'_>));

    /// Passes on what follows the last item.
    fn finish(&mut self, pass: &mut dyn FnMut(&Item<'_>));

    /// Counts what the part has not, though it belongs to it.
    fn left_out(&self) -> Report;
}

/// Receives the rows of a trace.
pub trait Sink {
    /// Takes a batch. Batches of different tables come in any order. The memory of columns that the sink does
    /// not take out of it is used again for the next batch.
    ///
    /// # Errors
    /// An error ends the reading, and is returned from [`read`](crate::read).
    fn batch(&mut self, batch: &mut Batch) -> io::Result<()>;
}

/// Keeps all batches: for traces whose tables fit in memory.
impl Sink for Vec<Batch> {
    fn batch(&mut self, batch: &mut Batch) -> io::Result<()> {
        let columns = std::mem::take(&mut batch.columns);
        self.push(Batch { columns, ..*batch });
        Ok(())
    }
}

/// Why a trace was not read, or only partly. Batches that a sink has are then of no use.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read, or is damaged. The end of the file in the middle of a record is no error:
    /// see [`Summary::stopped`](crate::Summary::stopped).
    Read(hairline_convert::Error),
    /// The temporary file for a trace that is not in order of time failed.
    Scratch(io::Error),
    /// The sink refused a batch.
    Sink(io::Error),
    /// The trace has more than 4,294,967,295 events, which ids cannot number.
    TooManyEvents,
    /// [`read_at_once`](crate::read_at_once) would show other rows than two readings.
    NotAtOnce,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(e) => e.fmt(f),
            Self::Scratch(e) => write!(f, "a temporary file for events that are not in order of time: {e}"),
            Self::Sink(e) => e.fmt(f),
            Self::TooManyEvents => f.write_str("more than 4,294,967,295 events: cut the trace into parts"),
            Self::NotAtOnce => f.write_str("the trace has to be read twice"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(e) => Some(e),
            Self::Scratch(e) | Self::Sink(e) => Some(e),
            Self::TooManyEvents | Self::NotAtOnce => None,
        }
    }
}
