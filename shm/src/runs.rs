//! The chunks of a sequence that follow each other without a gap.

/// The sequence of a chunk, and its index in the sequence.
pub(crate) type Place = (u32, u32);

/// Keeps of each sequence the chunks after its last gap, and drops those before. `chunks` is sorted by place,
/// and no two chunks have the same one.
///
/// Threads overwrite the oldest chunks of a ring while a reader copies it, so a chunk in the middle can be
/// missing. With the chunks before it, the trace would have a hole.
pub(crate) fn keep_whole_runs<T>(chunks: &mut Vec<T>, place: impl Fn(&T) -> Place) {
    let mut later: Option<Place> = None;
    let mut broken = None;
    chunks.reverse();
    chunks.retain(|chunk| {
        let (sequence, index) = place(chunk);
        let is_followed =
            later.is_none_or(|(other, next)| other != sequence || next == index.wrapping_add(1));
        if !is_followed {
            broken = Some(sequence);
        }
        later = Some((sequence, index));
        broken != Some(sequence)
    });
    chunks.reverse();
}
