//! The keys of maps that are arguments.

use std::fmt::{self, Write};

/// A type that can be the name of an entry of a map: strings, integers, bools, chars.
///
/// ```
/// # use std::collections::BTreeMap;
/// let sizes = BTreeMap::from([(80_u16, "http"), (443, "https")]);
/// hairline::trace_instant!("net", "ports", sizes);
/// ```
///
/// Implement it for a key of your own by calling `f` with its text. An entry whose key does not call `f` is
/// omitted.
///
/// ```
/// use std::collections::BTreeMap;
///
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// enum Queue {
///     Urgent,
///     Normal,
/// }
///
/// impl hairline::MapKey for Queue {
///     fn with_key(&self, f: impl FnOnce(&str)) {
///         f(match self {
///             Self::Urgent => "urgent",
///             Self::Normal => "normal",
///         });
///     }
/// }
///
/// let waiting = BTreeMap::from([(Queue::Urgent, 2), (Queue::Normal, 40)]);
/// hairline::trace_instant!("jobs", "waiting", waiting);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key that a trace can show",
    note = "implement `hairline::MapKey` for it"
)]
pub trait MapKey {
    /// Calls `f` with the key as text.
    fn with_key(&self, f: impl FnOnce(&str));

    /// Whether `with_key` does nothing but that: so it may be called while the thread is busy. Never in a
    /// program's own implementation.
    #[doc(hidden)]
    const IS_OWN: bool = false;
}

macro_rules! text_keys {
    ($($type:ty),*) => {$(
        impl MapKey for $type {
            const IS_OWN: bool = true;
            #[inline(always)]
            fn with_key(&self, f: impl FnOnce(&str)) {
                f(self);
            }
        }
    )*};
}

text_keys!(str, String, std::borrow::Cow<'_, str>);

impl<T: MapKey + ?Sized> MapKey for &T {
    const IS_OWN: bool = T::IS_OWN;
    #[inline(always)]
    fn with_key(&self, f: impl FnOnce(&str)) {
        (**self).with_key(f);
    }
}

macro_rules! shown_keys {
    ($($type:ty),*) => {$(
        impl MapKey for $type {
            fn with_key(&self, f: impl FnOnce(&str)) {
                // On the stack: all these keys are short.
                let mut text = ShortText::default();
                if write!(text, "{self}").is_ok() {
                    f(text.as_str());
                }
            }
        }
    )*};
}

shown_keys!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, bool, char);

/// The text of a key that is no string: of at most 40 bytes, an `i128`.
struct ShortText {
    bytes: [u8; 40],
    len: usize,
}

impl Default for ShortText {
    fn default() -> Self {
        Self { bytes: [0; 40], len: 0 }
    }
}

impl ShortText {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
