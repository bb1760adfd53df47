//! Damage to bytes of any format.

use hairline_formats::proto::put_varint;

use super::random::Random;

/// The most bytes of an input. Longer inputs cost time and find nothing more.
pub(crate) const MAX_INPUT: usize = 256 * 1024;

/// Changes `bytes` at one place, in one of many ways. `other` is a valid trace from which pieces are taken.
pub(crate) fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let len = bytes.len();
    let at = random.below(len);
    match random.below(12) {
        0 if len > 0 => bytes[at] ^= 1 << random.below(8),
        1 if len > 0 => bytes[at] = *random.pick(&[0, 1, 7, 8, 0x0a, 0x7f, 0x80, 0xfe, 0xff]),
        2 if len > 0 => bytes[at] = bytes[at].wrapping_add(random.below(9) as u8).wrapping_sub(4),
        3 => put_number(bytes, at, random),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(random.range(len))),
        6 => {
            let block = bytes[random.range(len)].to_vec();
            splice(bytes, at..at, &block);
        }
        7 => {
            let len = random.below(20);
            splice(bytes, at..at, &random.bytes(len));
        }
        8 => splice(bytes, random.range(len), &other[random.range(other.len())]),
        9 => splice(bytes, at..len, &other[random.below(other.len())..]),
        10 => {
            let byte = *random.pick(&[0, 0x80, 0xff]);
            bytes[random.range(len)].fill(byte);
        }
        _ => splice(bytes, at..(at + random.below(4)).min(len), &varint(random)),
    }
    bytes.truncate(MAX_INPUT);
}

/// A varint that is huge, too long, or does not end.
pub(crate) fn varint(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, random.number());
    let more = random.below(12);
    match random.below(4) {
        0 => {
            // Padding bytes without a value.
            let last = out.len() - 1;
            out[last] |= 0x80;
            out.extend(std::iter::repeat_n(0x80, more));
            out.push(0);
        }
        1 => out = vec![0xff; more],
        _ => {}
    }
    out
}

/// Overwrites 1, 2, 4 or 8 bytes, of either endianness.
fn put_number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let mut number = random.number().to_le_bytes();
    let width = 1 << random.below(4);
    if random.one_in(4) {
        number[..width].reverse();
    }
    bytes[at..].iter_mut().zip(&number[..width]).for_each(|(to, from)| *to = *from);
}

fn splice(bytes: &mut Vec<u8>, range: std::ops::Range<usize>, with: &[u8]) {
    bytes.splice(range, with.iter().copied());
}
