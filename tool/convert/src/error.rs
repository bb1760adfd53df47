//! Why a trace cannot be read, or cannot be written.

use std::io;

use hairline_formats::{DecodeError, DecodeErrorKind};

/// Why a trace cannot be read, or cannot be written.
///
/// ```
/// use hairline_convert::{Context, Error, TraceFormat, open};
///
/// assert!(matches!(open(&b""[..], None), Err(Error::Empty)));
/// let cut = &[0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0, 0x21, 0]; // a whole record, and a part of one
/// let (mut reader, mut context) = (open(&cut[..], Some(TraceFormat::Fxt))?, Context::new());
/// let error = loop {
///     match reader.next(&mut context) {
///         Ok(item) => assert!(item.is_some()),
///         Err(e) => break e,
///     }
/// };
/// assert!(error.is_truncated());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input has no bytes.
    #[error("byte 0: it is empty")]
    Empty,
    /// The first bytes of the input belong to none of the formats.
    #[error("byte 0: neither a Perfetto trace, nor FXT, nor Trace Event JSON")]
    UnknownFormat,
    /// The input is a file of another tool. The text says what it is, and which tool reads it.
    #[error("it is no trace, but {0}")]
    Other(&'static str),
    /// The input is JSON, but has no event.
    #[error("it is JSON without a trace event")]
    NoEvents,
    /// The first bytes of the input cannot be read, or cannot be inflated.
    #[error("reading it failed: {0}")]
    Input(#[source] io::Error),
    /// The input is no trace of its format from a certain byte on. All items before that byte are valid.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// The output cannot be written.
    #[error("{0}")]
    Output(#[source] io::Error),
}

impl Error {
    /// Whether the input ends early and is valid up to its end, like the trace of a killed process or a gzip
    /// stream that was cut.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        let Self::Decode(e) = self else { return false };
        let cut = |e: &io::Error| e.kind() == io::ErrorKind::UnexpectedEof;
        e.is_truncated() || matches!(&e.kind, DecodeErrorKind::Io(e) if cut(e))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_keeps_its_source() {
        let input = Error::Input(io::ErrorKind::PermissionDenied.into());
        assert!(input.source().is_some_and(|source| source.is::<io::Error>()));
        let kind = DecodeErrorKind::Truncated { what: "a packet" };
        let decode = Error::from(DecodeError { offset: 7, kind });
        assert!(decode.source().is_some_and(|source| source.is::<DecodeError>()) && decode.is_truncated());
    }
}
