//! The protobuf wire format, as far as traces use it.
//!
//! A message is a row of fields, each a tag and a value. A nested message is a value of bytes:
//!
//! ```text
//! 40          96 01       |  5a        02      48 02
//! tag:        value, a    |  tag:      length  the nested message
//! field 8,    varint      |  field 11,
//! varint      (150)       |  bytes
//! ```
//!
//! * **Tag**: a varint, `field << 3 | wire type`. Field numbers are 1 to 2^29 - 1.
//! * **Varint**: seven bits in each byte, the lowest first. The top bit says that another byte follows. 1 to
//!   10 bytes; the writers here use the fewest, the readers accept any number.
//! * **Signed integer** (`int32`, `int64`): two's complement in 64 bits, so a negative one takes 10 bytes.
//! * Fields come in any order and can be missing or repeated. Readers pass over unknown ones.

mod read;
mod wire;
mod write;

pub use read::{Field, FieldValue, Fields};
#[cfg(feature = "read")]
pub(crate) use read::{Varint, split_tag, varint};
pub use wire::{MAX_FIELD, MAX_VARINT, WireType, tag, varint_len};
pub use write::{
    Growing, PutBytes, PutMessages, put_bytes, put_double, put_field, put_fixed64, put_message, put_sint64,
    put_str, put_uint, put_varint, varint_in_8, varint_of_8, varint_up_to_8,
};
pub(crate) use write::{put_nonempty, put_nonzero, put_some};
