//! Perfetto's own converter: a trace out of its protobuf text.

use std::process::Command;

use super::process::oracle_dir;

/// The Perfetto trace that `text` says, a `perfetto.protos.Trace` in protobuf's text format.
///
/// # Panics
/// If the text says none, or the converter is not to be had.
#[must_use]
#[track_caller]
pub fn encode(text: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("trace.textproto");
    std::fs::write(&path, text).expect("the text written to a temporary file");
    let output = Command::new("node")
        .arg(oracle_dir().join("traceconv.mjs"))
        .arg("binary")
        .arg(&path)
        .output()
        .expect("node (18 or newer) is needed on PATH");
    assert!(output.status.success(), "not converted: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn a_text_is_encoded_as_its_packets() {
        // packet (1): timestamp (8): 200
        assert_eq!(encode("packet { timestamp: 200 }"), [1 << 3 | 2, 3, 8 << 3, 200, 1]);
    }

    #[test]
    #[should_panic(expected = "not converted")]
    fn a_text_of_something_else_is_refused() {
        let _ = encode("packet { no_such_field: 1 }");
    }
}
