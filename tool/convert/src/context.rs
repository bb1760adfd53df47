//! The state that all readers of one conversion share.

use crate::{Strings, TrackId};

/// The state that all readers of one conversion share: the numbers of strings and tracks.
///
/// ```
/// use hairline_convert::{Context, Item, open};
///
/// let input = br#"[{"name":"read","ph":"i","ts":1,"pid":1,"tid":1}]"#;
/// let (mut context, mut ids) = (Context::new(), Vec::new());
/// for _ in 0..2 {
///     let mut reader = open(&input[..], None)?;
///     while let Some(item) = reader.next(&mut context)? {
///         if let Item::Event(event) = item {
///             ids.extend(event.name.id);
///         }
///     }
///     context.next_input(); // the second input becomes a part of the same trace
/// }
/// assert_eq!(ids[0], ids[1]); // equal names have one number
/// assert_eq!(context.strings.get(ids[0]), "read");
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Context {
    /// The strings so far.
    pub strings: Strings,
    tracks: u32,
    /// The number of inputs that were read completely.
    inputs: u32,
    /// The number of processes and threads without an id in their input.
    unnumbered: u32,
}

/// The first id for a process or thread that has only a name. It is larger than any kernel's id, and has 32
/// bits for every format.
const FIRST_MADE: u64 = 1 << 30;

const SMALL: u64 = u32::MAX as u64;
/// One of 65,536 random ids is smaller.
const COUNTED: u64 = 1 << 48;

impl Context {
    /// Creates an empty context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number for a new track.
    pub fn new_track(&mut self) -> TrackId {
        let id = TrackId(self.tracks);
        self.tracks += 1;
        id
    }

    /// Starts the next input. All inputs become one trace.
    pub fn next_input(&mut self) {
        self.inputs += 1;
    }

    /// The id of an input's flow in the conversion. A random 64-bit id means the same flow in each input. A
    /// small id comes from a counter, so it gets the number of its input in the upper 32 bits; one of up to
    /// 48 bits does too, like those of PyTorch's ranks, and is mixed with that number.
    #[inline]
    pub(crate) fn flow(&self, id: u64) -> u64 {
        match id {
            ..=SMALL => id | u64::from(self.inputs) << 32,
            COUNTED.. => id,
            _ if self.inputs == 0 => id,
            _ => (id ^ u64::from(self.inputs) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63,
        }
    }

    /// Returns an id for a process or thread that has only a name.
    pub(crate) fn new_owner(&mut self) -> u64 {
        let number = FIRST_MADE + u64::from(self.unnumbered);
        self.unnumbered += 1;
        number
    }
}
