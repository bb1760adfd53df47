//! Tags and varints: the parts that writing and reading share.

/// The encoding of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// A varint: an integer, boolean or enum.
    Varint = 0,
    /// 8 bytes, little-endian: `fixed64`, `double`.
    Fixed64 = 1,
    /// A length as a varint, and that many bytes: `string`, `bytes`, a message.
    Bytes = 2,
    /// 4 bytes, little-endian: `fixed32`, `float`.
    Fixed32 = 5,
}

/// The largest field number.
pub const MAX_FIELD: u32 = (1 << 29) - 1;

/// The largest size of a varint, in bytes.
pub const MAX_VARINT: usize = 10;

pub(super) const WIRE_TYPE_BITS: u32 = 3;

/// Returns the tag of a field. It is written as a varint.
///
/// ```
/// use hairline_formats::proto::{WireType, tag};
///
/// assert_eq!(tag(8, WireType::Varint), 0x40);
/// assert_eq!(tag(11, WireType::Bytes), 0x5a);
/// ```
#[must_use]
pub const fn tag(field: u32, wire: WireType) -> u32 {
    field << WIRE_TYPE_BITS | wire as u32
}

/// Returns the size of a varint in bytes: one for every seven bits begun, and one for 0.
///
/// ```
/// use hairline_formats::proto::varint_len;
///
/// assert_eq!([0, 127, 128, u64::MAX].map(varint_len), [1, 1, 2, 10]);
/// ```
#[inline]
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    // ceil(bits / 7) for 1 to 64 bits without a division: 9/64 is slightly more than 1/7.
    let bits = 64 - (value | 1).leading_zeros();
    ((bits * 9 + 64) / 64) as usize
}
