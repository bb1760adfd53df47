//! Values that are recorded in a special way, the same with and without the feature `enable`.

/// Makes an argument of bytes, recorded as a blob and not as an array of numbers.
///
/// ```
/// # use hairline::{bytes, trace_instant};
/// trace_instant!("net", "packet", head = bytes(&[0xde, 0xad]));
/// ```
#[must_use]
pub fn bytes(bytes: &[u8]) -> Bytes<'_> {
    Bytes(bytes)
}

/// See [`bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))] // nothing is recorded
pub struct Bytes<'b>(pub(crate) &'b [u8]);

/// Makes an argument of a kernel object's id: a process's or a thread's id.
///
/// ```
/// # use hairline::{koid, trace_instant};
/// trace_instant!("os", "spawned", process = koid(u64::from(std::process::id())));
/// ```
#[must_use]
pub fn koid(number: u64) -> Koid {
    Koid(number)
}

/// See [`koid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))] // nothing is recorded
pub struct Koid(pub(crate) u64);

/// Makes an argument of a string that many events carry. Each thread writes the string once, and refers to it
/// by its id from then on. That saves bytes of the trace but takes time, so it is for long strings.
///
/// ```
/// # use hairline::{interned, trace_instant};
/// trace_instant!("db", "query", sql = interned("select name, age from people where id = ?"));
/// ```
#[must_use]
pub fn interned(text: &'static str) -> Interned {
    Interned(text)
}

/// See [`interned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))] // nothing is recorded
pub struct Interned(pub(crate) &'static str);

/// Makes an argument of any value that serde can serialize. Structs and maps become dictionaries, sequences
/// become arrays.
///
/// ```
/// # use hairline::trace_instant;
/// #[derive(serde::Serialize)]
/// struct Request { path: &'static str, tries: u32 }
///
/// let request = Request { path: "/", tries: 2 };
/// trace_instant!("net", "request", request = hairline::serialize(&request));
/// ```
#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
pub fn serialize<T: serde::Serialize + ?Sized>(value: &T) -> Serialized<'_, T> {
    Serialized(value)
}

/// See [`serialize`].
#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub struct Serialized<'s, T: ?Sized>(pub(crate) &'s T);
