//! The code to which a signal's handler returns: it asks the kernel to go on where the signal came.
//!
//! Its caller is what the signal has interrupted, and its frame is the kernel's. The unwinder does not know
//! that frame, and takes it for one of a function. The section `.eh_frame` marks such code: its entry refers
//! to a CIE with an `S` in its augmentation (Linux Standard Base, 10.6.1.1.1).

use std::ops::Range;

/// The encoding of an address in glibc and elsewhere: the distance from itself, in 4 bytes (`DW_EH_PE_pcrel`
/// and `DW_EH_PE_sdata4`).
const NEAR: u8 = 0x1b;

/// The most of it that a file can have: a C library has one or two.
const MOST: usize = 16;

/// Returns the addresses of such code in a file, of which the section has this address: at most 16.
pub(crate) fn signal_frames(eh_frame: &[u8], address: u64) -> Vec<Range<u64>> {
    let (mut marked, mut found) = (Vec::new(), Vec::new());
    let mut at = 0_usize;
    while found.len() < MOST
        && let Some(length) = word(eh_frame, at).filter(|length| (1..u32::MAX).contains(length))
    {
        let id_at = at + 4;
        let Some(id) = word(eh_frame, id_at) else { break };
        if id == 0 {
            if is_marked(eh_frame.get(id_at + 4..).unwrap_or_default()) {
                marked.push(at);
            }
        } else if !marked.is_empty()
            // They are in the order of their places.
            && id_at.checked_sub(id as usize).is_some_and(|cie| marked.binary_search(&cie).is_ok())
        {
            let [distance, size] = [id_at + 4, id_at + 8].map(|field| word(eh_frame, field));
            let (Some(distance), Some(size)) = (distance, size) else { break };
            let field = address.wrapping_add(id_at as u64 + 4);
            let start = field.wrapping_add_signed(distance.cast_signed().into());
            found.push(start..start.saturating_add(size.into()));
        }
        let Some(next) = id_at.checked_add(length as usize) else { break };
        at = next;
    }
    found
}

/// Whether a CIE from its version on marks such code, and has addresses of the usual encoding.
fn is_marked(cie: &[u8]) -> bool {
    let Some((version, rest)) = cie.split_first() else { return false };
    // Version, augmentation, alignments of code and data, the register of the return address, the length of the
    // augmentation's data, and the data: a byte for `R`.
    *version == 1 && rest.starts_with(b"zRS\0") && rest.get(8) == Some(&NEAR)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CIE with this augmentation, and two entries of it.
    fn section(augmentation: &[u8; 4]) -> Vec<u8> {
        let mut section = Vec::new();
        let mut put = |content: &[u8]| {
            section.extend_from_slice(&(content.len() as u32).to_ne_bytes());
            section.extend_from_slice(content);
        };
        put(&[&[0, 0, 0, 0, 1], &augmentation[..], &[1, 0x78, 16, 1, NEAR, 0, 0]].concat());
        for (id, distance) in [(24_u32, -0x100_i32), (44, 0x100)] {
            put(&[id.to_ne_bytes(), distance.to_ne_bytes(), 16_u32.to_ne_bytes(), [0; 4]].concat());
        }
        section
    }

    #[test]
    fn marked_code_is_found_where_its_entries_say() {
        assert_eq!(signal_frames(&section(b"zRS\0"), 0x1000), [0xf1c..0xf2c, 0x1130..0x1140]);
        assert_eq!(signal_frames(&section(b"zRP\0"), 0x1000), []);
    }

    #[test]
    fn a_file_with_many_marks_is_read_in_bounded_time() {
        let mut many = Vec::new();
        for _ in 0..100_000 {
            many.extend_from_slice(&section(b"zRS\0"));
        }
        assert_eq!(signal_frames(&many, 0x1000).len(), MOST);
        // A mark, and entries that refer to nothing.
        let (mark, entry) = (&section(b"zRS\0")[..24], &section(b"zRP\0")[24..44]);
        let many = [mark.repeat(1 << 17), entry.repeat(1 << 17)].concat();
        assert_eq!(signal_frames(&many, 0x1000), []);
    }

    #[test]
    fn whatever_the_bytes_are_nothing_panics() {
        let whole = section(b"zRS\0");
        for at in 0..whole.len() {
            for wrong in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = wrong;
                signal_frames(&bytes, u64::MAX);
                signal_frames(&bytes[..at], 0);
            }
        }
    }
}
