//! The format of a trace, detected from its first bytes or from its file name.

use std::path::Path;

use hairline_formats::{fxt, proto, track_event::fields::trace};

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// FXT, the Fuchsia trace format.
    Fxt,
    /// Perfetto's TracePackets.
    TrackEvent,
    /// Trace Event JSON.
    Json,
}

impl TraceFormat {
    /// The name of the format in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fxt => "FXT",
            Self::TrackEvent => "a Perfetto trace",
            Self::Json => "Trace Event JSON",
        }
    }
}

/// The number of bytes that [`detect`] needs at most. JSON may begin with white space.
pub(crate) const DETECTED_BY: usize = 4096;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const PACKET: u8 = {
    let tag = proto::tag(trace::PACKET, proto::WireType::Bytes);
    assert!(tag < 0x80);
    tag as u8
};

/// Whether these first bytes begin a gzip stream.
#[must_use]
pub fn is_gzip(beginning: &[u8]) -> bool {
    beginning.starts_with(&GZIP)
}

/// Detects the format from the first bytes of a trace. Returns `None` for an unknown format.
///
/// ```
/// use hairline_convert::{TraceFormat, detect, is_gzip};
///
/// assert_eq!(detect(br#"[{"name":"read"}]"#), Some(TraceFormat::Json));
/// assert_eq!(detect(b"\x10\x00\x04FxT\x16\x00"), Some(TraceFormat::Fxt));
/// assert_eq!(detect(b"hello"), None);
/// assert!(is_gzip(&[0x1f, 0x8b, 8, 0])); // inflate it first: `open` does
/// ```
#[must_use]
pub fn detect(beginning: &[u8]) -> Option<TraceFormat> {
    if beginning.starts_with(&fxt::MAGIC.to_le_bytes()) {
        Some(TraceFormat::Fxt)
    } else if is_json(beginning) {
        Some(TraceFormat::Json)
    } else if beginning.first() == Some(&PACKET) {
        Some(TraceFormat::TrackEvent)
    } else {
        None
    }
}

/// A packet begins with a line feed (its tag), and its length may look like a bracket. Only JSON has one of
/// these characters after the bracket.
fn is_json(beginning: &[u8]) -> bool {
    let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning).trim_ascii_start();
    let (Some(bracket), then) = (text.first(), text.get(1..).unwrap_or_default().trim_ascii_start().first())
    else {
        return false;
    };
    match bracket {
        b'[' => matches!(then, None | Some(b'{' | b']')),
        b'{' => matches!(then, None | Some(b'"' | b'}')),
        _ => false,
    }
}

/// The format of a file, as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// The trace format.
    pub format: TraceFormat,
    /// Whether the file is compressed with gzip.
    pub gzip: bool,
}

impl FileFormat {
    /// By the name's extension; None if it has none that is known.
    ///
    /// ```
    /// use hairline_convert::{FileFormat, TraceFormat};
    ///
    /// let kind = FileFormat::by_name("run.json.gz".as_ref());
    /// assert_eq!(kind, Some(FileFormat { format: TraceFormat::Json, gzip: true }));
    /// assert_eq!(FileFormat::by_name("run.txt".as_ref()), None);
    /// ```
    #[must_use]
    pub fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |name| (name, true));
        let format = match name.rsplit_once('.')?.1 {
            "pftrace" | "perfetto-trace" | "perfetto" => TraceFormat::TrackEvent,
            "fxt" => TraceFormat::Fxt,
            "json" => TraceFormat::Json,
            _ => return None,
        };
        Some(Self { format, gzip })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        let of = |bytes: &[u8]| detect(bytes);
        assert_eq!(of(b"\x10\x00\x04FxT\x16\x00\x00"), Some(TraceFormat::Fxt));
        for json in [&b"[{"[..], b"{\"traceEvents\":", b"\n[\n{\"", b"\xef\xbb\xbf {}", b"[", b"[]"] {
            assert_eq!(of(json), Some(TraceFormat::Json), "{}", json.escape_ascii());
        }
        for nothing in [&b""[..], b" \n", b"[1,2]", b"\x7fELF", b"hello", b"\x10\x00\x04Fx"] {
            assert_eq!(of(nothing), None, "{}", nothing.escape_ascii());
        }
    }

    #[test]
    fn a_packet_as_long_as_a_bracket_is_a_packet() {
        assert_eq!(detect(b"\x0a\x5b\x50\x01"), Some(TraceFormat::TrackEvent));
        assert_eq!(detect(b"\x0a\x7b\x40\x01"), Some(TraceFormat::TrackEvent));
    }
}
