//! Bytes as text.

/// Appends `bytes` as text. Reserves exactly its length, which can be three times that of the bytes.
pub(super) fn repair(bytes: &[u8], into: &mut String) {
    let replacement =
        |chunk: &std::str::Utf8Chunk<'_>| if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
    into.reserve_exact(
        bytes.utf8_chunks().map(|chunk| chunk.valid().len() + replacement(&chunk).len()).sum(),
    );
    for chunk in bytes.utf8_chunks() {
        into.push_str(chunk.valid());
        into.push_str(replacement(&chunk));
    }
}
