//! Counts the scopes in a file: those whose end is in it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use hairline_convert::{Context, EventKind, Item};

/// Counts the ends of scopes in a trace of any format, up to the first byte that cannot be read.
pub fn in_trace(file: File) -> u64 {
    let mut context = Context::new();
    let Ok(mut reader) = hairline_convert::open(file, None) else { return 0 };
    let mut ends = 0;
    while let Ok(Some(item)) = reader.next(&mut context) {
        ends += u64::from(matches!(item, Item::Event(event) if event.kind == EventKind::End));
    }
    ends
}

/// Counts the ends in a file of Chrome's JSON with one event a line. The files have gigabytes, for which a
/// parser would be slow.
pub fn in_lines_of_json(file: File) -> u64 {
    let lines = BufReader::new(file).split(b'\n').map_while(io::Result::ok);
    lines.filter(|line| line.windows(8).any(|part| part == b"\"ph\":\"E\"")).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ends: fn(File) -> u64, bytes: &[u8], name: &str) -> u64 {
        let path = std::env::temp_dir().join(format!("hairline-peers-ends-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let count = ends(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        count
    }

    #[test]
    fn scopes_whose_end_is_in_the_file_are_counted_also_in_a_file_that_is_cut_off() {
        let memory = hairline::MemoryOutput::new();
        let session = hairline::Session::builder().output_memory(&memory).compress(true).start().unwrap();
        for _ in 0..1000 {
            hairline::trace_scope!("test", "scope");
        }
        session.stop().unwrap();
        assert_eq!(count(in_trace, &memory.to_vec(), "whole"), 1000);
        assert_eq!(count(in_trace, b"", "empty"), 0);

        let json = b"[\n{\"ph\":\"B\",\"pid\":1},\n{\"ph\":\"E\",\"pid\":1},\n{\"ph\":\"E";
        assert_eq!(count(in_lines_of_json, json, "cut"), 1);
    }
}
