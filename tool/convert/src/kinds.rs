//! Files of other tools: what they are, and which tool reads them.

/// What a file is that is no trace, by its first bytes.
pub(crate) fn other(beginning: &[u8]) -> Option<&'static str> {
    let text = beginning.trim_ascii_start();
    let begins = |with: &str| beginning.starts_with(with.as_bytes());
    let has = |word: &str| contains(beginning, word);
    Some(match () {
        () if begins("PERFILE2") => PERF,
        () if begins("\x17\x08\x44tracing") => TRACE_CMD,
        () if begins("FLR\0") => FLIGHT_RECORDER,
        () if begins("SQLite format 3\0") => SQLITE,
        () if beginning.get(257..262) == Some(b"ustar") => TAR,
        () if text.starts_with(b"# tracer:") || text.starts_with(b"TRACE:") => FTRACE,
        () if is_html(text) && (has("systrace") || has("trace-viewer")) => SYSTRACE,
        () if is_html(text) => HTML,
        () => return protobuf(beginning),
    })
}

/// What a JSON file without an event is, by its first bytes.
pub(crate) fn other_json(beginning: &[u8]) -> Option<&'static str> {
    let has = |word: &str| contains(beginning, word);
    Some(match () {
        () if has("\"resourceSpans\"") || has("\"resourceLogs\"") || has("\"resourceMetrics\"") => OTLP,
        () if has("speedscope.app/file-format-schema") => SPEEDSCOPE,
        () if has("\"callFrame\"") => CPU_PROFILE,
        () if has("\"meta\"") && (has("\"libs\"") || has("\"threads\"") || has("\"interval\"")) => FIREFOX,
        () => return None,
    })
}

const PERF: &str =
    "data of `perf record`: `perf script`, https://profiler.firefox.com and https://ui.perfetto.dev read it";
const TRACE_CMD: &str = "data of trace-cmd: `trace-cmd report` and KernelShark read it";
const FLIGHT_RECORDER: &str = "a recording of Java Flight Recorder: JDK Mission Control reads it";
const SQLITE: &str = "a database of SQLite: `sqlite3` reads it";
const TAR: &str = "a tar archive: unpack it with `tar -xf`, and give the trace in it";
const FTRACE: &str = "text of ftrace: https://ui.perfetto.dev reads it";
const SYSTRACE: &str = "a page of systrace: a browser and https://ui.perfetto.dev read it";
const HTML: &str = "a page of HTML: a browser reads it";
const OTLP: &str = "data of OpenTelemetry (OTLP): a collector takes it, and backends such as Jaeger show it";
const SPEEDSCOPE: &str = "a profile of speedscope: https://www.speedscope.app reads it";
const CPU_PROFILE: &str = "a CPU profile of V8: Chrome's DevTools and https://www.speedscope.app read it";
const FIREFOX: &str = "a profile of Firefox or samply: https://profiler.firefox.com reads it";
const PPROF: &str = "a profile of pprof: `go tool pprof` and https://www.speedscope.app read it";
const XSPACE: &str = "a profile of JAX or TensorFlow (XSpace): XProf reads it; the tracer writes a \
     .trace.json.gz beside it";

fn is_html(text: &[u8]) -> bool {
    let begins = |with: &[u8]| text.get(..with.len()).is_some_and(|text| text.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html")
}

fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

/// What a protobuf is whose first field looks like a packet of Perfetto's. Its fields have types that a
/// packet's cannot have.
fn protobuf(beginning: &[u8]) -> Option<&'static str> {
    let mut fields = Fields(beginning);
    let Some((1, Field::Bytes(first))) = fields.next() else { return None };
    if is_otlp(first) {
        Some(OTLP)
    } else if is_plane(first) {
        Some(XSPACE)
    } else if is_sample_type(first) && matches!(fields.next(), Some((1 | 2, Field::Bytes(_)))) {
        Some(PPROF)
    } else {
        None
    }
}

/// `ResourceSpans` and its like: a resource with attributes, or a span with its two ids.
fn is_otlp(message: &[u8]) -> bool {
    let is_attribute = |attribute: &[u8]| {
        let mut fields = Fields(attribute);
        let key = fields.next();
        matches!(key, Some((1, Field::Bytes(key))) if is_text(key))
            && matches!(fields.next(), Some((2, Field::Bytes(_))))
    };
    let is_span = |span: &[u8]| {
        let mut fields = Fields(span);
        matches!(fields.next(), Some((1, Field::Bytes(id))) if id.len() == 16)
            && matches!(fields.next(), Some((2, Field::Bytes(id))) if id.len() == 8)
    };
    Fields(message).any(|field| match field {
        (1, Field::Bytes(resource)) => inner(resource, 1).is_some_and(is_attribute),
        (2, Field::Bytes(scope)) => inner(scope, 2).is_some_and(is_span),
        _ => false,
    })
}

/// `XPlane`: an id, and a name such as `/host:CPU`.
fn is_plane(message: &[u8]) -> bool {
    let mut fields = Fields(message).skip_while(|field| matches!(field, (1, Field::Number)));
    let Some((2, Field::Bytes(name))) = fields.next() else { return false };
    is_text(name) && (name.starts_with(b"/") || name.starts_with(b"Task "))
}

/// `ValueType` of pprof: the numbers of two strings.
fn is_sample_type(message: &[u8]) -> bool {
    let mut count = 0;
    let are_numbers = Fields(message).all(|field| {
        count += 1;
        matches!(field, (1 | 2, Field::Number))
    });
    are_numbers && (1..=2).contains(&count) && message.len() <= 12
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The content of the first field with a number.
fn inner(message: &[u8], number: u64) -> Option<&[u8]> {
    Fields(message).find_map(|field| match field {
        (this, Field::Bytes(bytes)) if this == number => Some(bytes),
        _ => None,
    })
}

/// The value of a field.
enum Field<'b> {
    Number,
    /// Those that are there: the message may be cut.
    Bytes(&'b [u8]),
}

/// The fields of a message, as far as its bytes are there.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (u64, Field<'b>);

    fn next(&mut self) -> Option<(u64, Field<'b>)> {
        let tag = self.number()?;
        let fixed = match tag & 7 {
            0 => {
                self.number()?;
                return Some((tag >> 3, Field::Number));
            }
            1 => 8,
            5 => 4,
            2 => {
                let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
                self.0 = rest;
                return Some((tag >> 3, Field::Bytes(bytes)));
            }
            _ => return None,
        };
        self.0 = self.0.get(fixed..)?;
        Some((tag >> 3, Field::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let len = u8::try_from(bytes.len()).expect("short");
        [&[number << 3 | 2, len], bytes].concat()
    }

    #[test]
    fn protobufs_of_other_tools_are_known() {
        let span = [field(1, &[7; 16]), field(2, &[8; 8])].concat();
        let spans = field(1, &field(2, &field(2, &span)));
        let attribute = [field(1, b"service.name"), field(2, &field(1, b"shop"))].concat();
        let resource = field(1, &field(1, &field(1, &attribute)));
        let plane = field(1, &[&[8, 1][..], &field(2, b"/host:CPU"), &field(3, b"\x08\x01")].concat());
        let profile = [field(1, &[8, 1, 16, 2]), field(2, &[10, 1, 1])].concat();
        assert_eq!(other(&spans), Some(OTLP));
        assert_eq!(other(&resource), Some(OTLP));
        assert_eq!(other(&plane), Some(XSPACE));
        assert_eq!(other(&profile), Some(PPROF));
        for cut in 0..plane.len() {
            assert!(matches!(other(&plane[..cut]), None | Some(XSPACE)), "{cut}");
        }
    }

    #[test]
    fn packets_are_none_of_them() {
        let process = field(1, &[8, 7, 16, 1]);
        let packets = [
            field(1, &field(2, &process)), // a process tree
            field(1, &field(1, &[&[8, 0][..], &field(2, &[8, 1])].concat())), // events of ftrace
            field(1, &[0x40, 5, 0x50, 1]), // a time and a sequence
            field(1, &[]),
        ];
        for packet in packets {
            assert_eq!(other(&packet), None, "{}", packet.escape_ascii());
        }
    }
}
