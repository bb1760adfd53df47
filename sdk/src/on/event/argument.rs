//! The types of values on the right of `key = value`.

use std::sync::Arc;

use hairline_formats::Value;

use crate::on::event::text::Text;
use crate::traceparent::Traceparent;

/// A value that an event can carry as an argument.
///
/// Integers, floats, bools, strings and pointers implement it; options, references and boxes of these; and
/// arrays, slices, vectors, sets and maps of anything that implements it (they cost more than scalars). For
/// other types there are `%value` (its `Display`) and `?value` (its `Debug`).
///
/// ```
/// # use hairline::trace_instant;
/// let (address, sizes) = (std::net::Ipv4Addr::LOCALHOST, vec![512_u64, 64]);
/// trace_instant!("net", "connected", sizes, retries = Some(2), host = "db1", address = %address);
/// ```
/// ```compile_fail
/// struct Peer;
/// hairline::trace_instant!("net", "connected", peer = Peer);
/// ```
///
/// # Types of your own
/// Implement the trait for a type that contains a value of another type. Its events then carry that value
/// itself, a number as a number, where `%value` would make text of it.
///
/// `Held` is the form of that value: the same type for integers, floats and bools; `&'a str` for text; an
/// option of a form. Each other argument has a form too: `<Vec<u64> as Argument>::Held<'a>`.
///
/// ```
/// use hairline::{Argument, trace_instant};
///
/// struct UserId(u64);
///
/// impl Argument for UserId {
///     type Held<'a> = u64;
///
///     fn hold(&self) -> u64 {
///         self.0
///     }
/// }
///
/// struct Readers(Vec<UserId>);
///
/// impl Argument for Readers {
///     type Held<'a> = <Vec<UserId> as Argument>::Held<'a>;
///
///     fn hold(&self) -> Self::Held<'_> {
///         self.0.hold()
///     }
/// }
///
/// trace_instant!("chat", "sent", from = UserId(7), to = Readers(vec![UserId(8), UserId(9)]));
/// ```
///
/// Only events that are recorded call `hold`, on their own thread, while no lock of Hairline is held. If it
/// panics, the panic goes to the caller and the event has no record.
///
/// The forms are those that a trace can show. A type of your own is none:
///
/// ```compile_fail,E0277
/// struct Peer;
///
/// impl hairline::Argument for Peer {
///     type Held<'a> = Peer;
///
///     fn hold(&self) -> Peer {
///         Peer
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trace argument",
    note = "write `key = %value` to record its `Display`, `key = ?value` for its `Debug`"
)]
pub trait Argument {
    /// The form of the value while the event is recorded. A number is its own form, that of a string is a
    /// `&str`.
    type Held<'a>: Held
    where
        Self: 'a;

    /// Returns the value in that form.
    fn hold(&self) -> Self::Held<'_>;

    /// Whether `hold` is known to be short, to allocate nothing and to record no event: so it may be called
    /// while the thread is busy. Never in a program's own implementation.
    #[doc(hidden)]
    const IS_OWN: bool = false;
}

/// A type that lends a [`Value`] to the encoders. Programs cannot implement it, since its module is private.
/// A new kind of value may need new methods here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form of a trace argument",
    note = "use a number, a `bool`, `&'a str`, or `<T as hairline::Argument>::Held<'a>` of another argument"
)]
pub trait Held {
    /// Whether the value cannot be written into the chunk in place, since it has nested values or is
    /// interned.
    const COLD_ONLY: bool = false;

    /// Whether the value is an array or a map that the hot path can write nevertheless: reading it runs no
    /// code of the program.
    #[doc(hidden)]
    const IS_FLAT: bool = false;

    /// Returns the value. An argument with the value [`Value::Null`] is omitted.
    fn value(&self) -> Value<'_>;

    /// Passes the value of argument number `at` to `visitor`.
    #[doc(hidden)]
    #[inline(always)]
    fn show<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        visitor.visit(at, self.value());
    }
}

/// An array or a map of scalars. Where [`Held::IS_FLAT`] is true, it may be read while the thread is busy.
pub trait Flat: Held {
    /// Whether its entries have names.
    const IS_MAP: bool;

    /// Returns the number of entries.
    fn entry_count(&self) -> usize;

    /// Passes each entry to `visitor`. The name is "" in an array.
    fn each_entry(&self, visitor: &mut impl EntryVisitor);
}

/// Receives the entries of a [`Flat`]. A trait like [`Visitor`].
pub trait EntryVisitor {
    /// Receives an entry.
    fn entry(&mut self, name: &str, value: Value<'_>);
}

/// The values of one event: pairs of a value and the pair of the rest, `(a, (b, ()))`. So there may be any
/// number of values, and the compiler knows the type of each.
pub trait Values {
    /// Whether one of the values is [`Held::COLD_ONLY`].
    const COLD_ONLY: bool;

    /// Whether the hot path can write all values: [`Held::IS_FLAT`].
    const ARE_HOT: bool = !Self::COLD_ONLY;

    /// Returns the number of values.
    fn count(&self) -> usize;

    /// Passes each value and its position to `visitor`. The first position is `at`.
    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>);
}

/// Receives each value. A trait and not a closure, so that it is always inlined.
pub trait Visitor<'v> {
    /// Receives the value of argument number `at`.
    fn visit(&mut self, at: usize, value: Value<'v>);

    /// Receives the value of argument number `at`, which is [`Held::IS_FLAT`].
    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, at: usize, flat: &'v F) {
        self.visit(at, flat.value());
    }
}

impl Values for () {
    const COLD_ONLY: bool = false;

    #[inline(always)]
    fn count(&self) -> usize {
        0
    }

    #[inline(always)]
    fn each<'v>(&'v self, _: usize, _: &mut impl Visitor<'v>) {}
}

impl<H: Held, T: Values> Values for (H, T) {
    const COLD_ONLY: bool = H::COLD_ONLY || T::COLD_ONLY;
    const ARE_HOT: bool = (!H::COLD_ONLY || H::IS_FLAT) && T::ARE_HOT;

    #[inline(always)]
    fn count(&self) -> usize {
        1 + self.1.count()
    }

    #[inline(always)]
    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        self.0.show(at, visitor);
        self.1.each(at + 1, visitor);
    }
}

impl Held for Text {
    #[inline]
    fn value(&self) -> Value<'_> {
        Text::value(self)
    }
}

/// Scalar types: each is its own form.
macro_rules! plain {
    ($($type:ty => |$v:ident| $value:expr;)*) => {$(
        impl Argument for $type {
            const IS_OWN: bool = true;
            type Held<'a> = $type;
            #[inline(always)]
            fn hold(&self) -> $type {
                *self
            }
        }

        impl Held for $type {
            #[inline(always)]
            fn value(&self) -> Value<'_> {
                self.number()
            }
        }

        impl Number for $type {
            #[inline(always)]
            fn number(&self) -> Value<'static> {
                let $v = *self;
                $value
            }
        }
    )*};
}

plain! {
    i8 => |v| Value::I64(i64::from(v));
    i16 => |v| Value::I64(i64::from(v));
    i32 => |v| Value::I64(i64::from(v));
    i64 => |v| Value::I64(v);
    isize => |v| Value::I64(v as i64);
    u8 => |v| Value::U64(u64::from(v));
    u16 => |v| Value::U64(u64::from(v));
    u32 => |v| Value::U64(u64::from(v));
    u64 => |v| Value::U64(v);
    usize => |v| Value::U64(v as u64);
    f32 => |v| Value::F64(f64::from(v));
    f64 => |v| Value::F64(v);
    bool => |v| Value::Bool(v);
}

impl Held for &str {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        Value::Str(self)
    }
}

macro_rules! strings {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            const IS_OWN: bool = true;
            type Held<'a> = &'a str where Self: 'a;
            #[inline(always)]
            fn hold(&self) -> &str {
                self
            }
        }
    )*};
}

strings!(str, String, std::borrow::Cow<'_, str>);

impl Argument for Traceparent {
    type Held<'a> = &'a str;

    fn hold(&self) -> &str {
        self.as_str()
    }
}

/// Types that no format has a number for: recorded as text.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            type Held<'a> = Text;
            fn hold(&self) -> Text {
                Text::display(self)
            }
        }
    )*};
}

as_text!(i128, u128, char);

/// A pointer, recorded as a number.
#[derive(Clone, Copy, Debug)]
pub struct Address(u64);

impl Held for Address {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        Value::Pointer(self.0)
    }
}

macro_rules! pointers {
    ($($type:ty),*) => {$(
        impl<T> Argument for $type {
            type Held<'a> = Address where Self: 'a;
            #[inline(always)]
            fn hold(&self) -> Address {
                Address(self.addr() as u64)
            }
        }
    )*};
}

pointers!(*const T, *mut T);

/// `None` omits the argument.
impl<T: Argument> Argument for Option<T> {
    const IS_OWN: bool = T::IS_OWN;
    type Held<'a>
        = Option<T::Held<'a>>
    where
        Self: 'a;
    #[inline(always)]
    fn hold(&self) -> Self::Held<'_> {
        // With the path `Argument::hold`, Rust 1.88 says that `T` does not live long enough.
        self.as_ref().map(|value| value.hold())
    }
}

impl<H: Held> Held for Option<H> {
    const COLD_ONLY: bool = H::COLD_ONLY;
    const IS_FLAT: bool = H::IS_FLAT;

    #[inline(always)]
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Held::value)
    }

    #[inline(always)]
    fn show<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        match self {
            Some(held) => held.show(at, visitor),
            None => visitor.visit(at, Value::Null),
        }
    }
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Argument + ?Sized> Argument for $type {
            const IS_OWN: bool = T::IS_OWN;
            type Held<'a> = T::Held<'a> where Self: 'a;
            #[inline(always)]
            fn hold(&self) -> Self::Held<'_> {
                (**self).hold()
            }
        }
    )*};
}

transparent!(&T, &mut T, Box<T>, std::rc::Rc<T>, Arc<T>);

/// A value that a counter can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a counter's value",
    note = "use an integer, a float or a bool"
)]
pub trait Number {
    /// Returns the number.
    fn number(&self) -> Value<'static>;
}

impl<T: Number + ?Sized> Number for &T {
    #[inline(always)]
    fn number(&self) -> Value<'static> {
        (**self).number()
    }
}

/// The value of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Shown<T>(T);

impl<T: Number> Held for Shown<T> {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        match self.0.number() {
            Value::Bool(v) => Value::U64(u64::from(v)), // counters of both formats have no booleans
            number => number,
        }
    }
}

/// Returns the value of a counter.
#[inline(always)]
pub fn counter_value<T: Number>(value: T) -> Shown<T> {
    Shown(value)
}

/// Returns the value of a counter, as the only value of its event.
#[cfg(any(feature = "metrics", feature = "sync"))]
#[inline(always)]
pub(crate) fn number<T: Number>(value: T) -> (Shown<T>, ()) {
    (Shown(value), ())
}

/// Returns whether the hot path can write all values.
#[cfg(any(debug_assertions, feature = "subscriber"))]
pub(crate) fn are_plain(values: &[Value<'_>]) -> bool {
    // Loops, since iterators are expensive in a build that is not optimised.
    for value in values {
        if let Value::Dict(_) | Value::Array(_) | Value::Blob(_) | Value::Interned { .. } = value {
            return false;
        }
    }
    true
}

/// The values of an event in a build that is not optimised.
#[cfg(debug_assertions)]
#[derive(Debug)]
pub struct List<'v>(pub &'v [Value<'v>]);

#[cfg(debug_assertions)]
impl<'v> List<'v> {
    /// Returns the values as [`Values`]: `Ok` if the hot path can write all of them.
    pub(crate) fn plain(&self) -> Result<Listed<'v, false>, Listed<'v, true>> {
        if are_plain(self.0) { Ok(Listed(self.0)) } else { Err(Listed(self.0)) }
    }
}

/// The values of a [`List`].
#[cfg(debug_assertions)]
pub(crate) struct Listed<'l, const COLD_ONLY: bool>(&'l [Value<'l>]);

#[cfg(debug_assertions)]
impl<const COLD_ONLY: bool> Values for Listed<'_, COLD_ONLY> {
    const COLD_ONLY: bool = COLD_ONLY;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        let mut n = 0;
        while n < self.0.len() {
            visitor.visit(at + n, self.0[n]);
            n += 1;
        }
    }
}
