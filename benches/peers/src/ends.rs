//! How many scopes a file holds: those whose end is in it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use hairline_convert::{Context, EventKind, Item};

/// Ends of scopes in a trace of any format, up to the first byte that cannot be read.
pub fn in_trace(file: File) -> u64 {
    let mut context = Context::new();
    let Ok(mut reader) = hairline_convert::open(file, None) else { return 0 };
    let mut ends = 0;
    while let Ok(Some(item)) = reader.next(&mut context) {
        ends += u64::from(matches!(item, Item::Event(event) if event.kind == EventKind::End));
    }
    ends
}

/// Ends in a file of Chrome's JSON with an event a line: gigabytes of it, which are not worth a parser.
pub fn in_lines_of_json(file: File) -> u64 {
    let lines = BufReader::new(file).split(b'\n').map_while(io::Result::ok);
    lines.filter(|line| line.windows(8).any(|part| part == b"\"ph\":\"E\"")).count() as u64
}
