//! The protobuf wire format, as far as traces use it.
//!
//! A message is a row of fields, each a tag and a value; a message inside a message is a value of bytes:
//!
//! ```text
//! 40          96 01       |  5a        02      48 02
//! tag:        value, a    |  tag:      length  the nested message
//! field 8,    varint      |  field 11,
//! varint      (150)       |  bytes
//! ```
//!
//! * **Tag**: a varint, `field << 3 | wire type`. Field numbers are 1 to 2^29 - 1.
//! * **Varint**: seven bits a byte, the lowest first; the top bit says that more follow. 1 to 10 bytes. The
//!   writers here use the fewest; readers take any.
//! * A signed integer (`int32`, `int64`) is its two's complement in 64 bits, so a negative one takes 10 bytes.
//! * Fields come in any order, may be missing or repeated, and unknown ones are passed over.

mod read;
mod write;

pub use read::{Field, FieldValue, Fields};
pub(crate) use read::{Varint, split_tag, varint};
pub use write::{
    Put, put_bytes, put_double, put_field, put_fixed64, put_message, put_sint64, put_str, put_uint,
    put_varint, varint_of_8, varint_up_to_8,
};

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// A varint: integers, booleans, enums.
    Varint = 0,
    /// 8 bytes, little-endian: `fixed64`, `double`.
    Fixed64 = 1,
    /// A length, a varint, and that many bytes: `string`, `bytes`, messages.
    Bytes = 2,
    /// 4 bytes, little-endian: `fixed32`, `float`.
    Fixed32 = 5,
}

/// The largest number of a field.
pub const MAX_FIELD: u32 = (1 << 29) - 1;

/// The most bytes of a varint.
pub const MAX_VARINT: usize = 10;

const WIRE_TYPE_BITS: u32 = 3;

/// The tag of a field; written as a varint.
#[must_use]
pub const fn tag(field: u32, wire: WireType) -> u32 {
    field << WIRE_TYPE_BITS | wire as u32
}

/// Bytes of a varint: one for every seven bits begun, one for 0.
#[inline]
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    // ceil(bits / 7) for 1..=64 bits, without a division: 9/64 is a little more than 1/7.
    let bits = 64 - (value | 1).leading_zeros();
    ((bits * 9 + 64) / 64) as usize
}
