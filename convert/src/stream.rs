//! What all readers, and all writers, have in common.

use std::io;

use crate::context::Context;
use crate::error::Error;
use crate::model::Item;
use crate::report::Report;

/// Reads a trace, item by item.
pub trait TraceReader {
    /// The next item; None after the last.
    ///
    /// # Errors
    /// Where the bytes are no trace of this format, with the place; after that there is nothing more. An input that ends early is one
    /// too ([`Error::is_truncated`]): what was given out before is good.
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, Error>;

    /// What was not understood, and was passed over.
    fn report(&self) -> &Report;

    /// Bytes of the input that have been read.
    fn position(&self) -> u64;
}

/// Writes a trace, item by item.
pub trait TraceWriter {
    /// Writes an item, in the nearest form that the format has; what is not said as it was is counted. A text's number may be
    /// the index of a table: each text of one [`Context`] has its own.
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, item: &Item<'_>) -> io::Result<()>;

    /// Writes what stands at a trace's end, and flushes the output.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self) -> io::Result<()>;

    /// What could not be said, or not as it was.
    fn report(&self) -> &Report;
}
