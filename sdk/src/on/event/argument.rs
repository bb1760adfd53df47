//! What may stand on the right of `key = value`.

use std::sync::Arc;

use hairline_formats::Value;

use crate::on::event::text::Text;

/// A value that an event can carry.
///
/// Integers, floats, bools, strings, pointers, and options, references and boxes of these; arrays, slices, vectors, sets
/// and maps of anything that is one (they cost more than scalars do). For anything else there are
/// `%value` (its `Display`), `?value` (its `Debug`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trace argument",
    note = "write `key = %value` to record its `Display`, `key = ?value` for its `Debug`"
)]
pub trait Argument {
    /// The value while the event is recorded: nearly always the plain [`Value`].
    type Held<'a>: Held
    where
        Self: 'a;

    /// The value.
    fn hold(&self) -> Self::Held<'_>;
}

/// A [`Value`], or what lends one.
pub trait Held {
    /// Whether the value may have values inside, which only the cold path can write.
    const NESTED: bool = false;

    /// The value; [`Value::Null`] leaves the argument out.
    fn value(&self) -> Value<'_>;
}

/// The values of one event: nested pairs, so that there may be any number of any types, each known to the compiler.
pub trait Values {
    /// Whether one of them is [`Held::NESTED`].
    const NESTED: bool;

    /// How many.
    fn count(&self) -> usize;

    /// Shows each and its place, which begins with `at`.
    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>);
}

/// What is done with each value. A trait and not a closure, so that it can be inlined for certain.
pub trait Visitor<'v> {
    /// The value of argument number `at`.
    fn visit(&mut self, at: usize, value: Value<'v>);
}

impl Values for () {
    const NESTED: bool = false;

    #[inline(always)]
    fn count(&self) -> usize {
        0
    }

    #[inline(always)]
    fn each<'v>(&'v self, _: usize, _: &mut impl Visitor<'v>) {}
}

impl<H: Held, T: Values> Values for (H, T) {
    const NESTED: bool = H::NESTED || T::NESTED;

    #[inline(always)]
    fn count(&self) -> usize {
        1 + self.1.count()
    }

    #[inline(always)]
    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        visitor.visit(at, self.0.value());
        self.1.each(at + 1, visitor);
    }
}

impl Held for Text {
    #[inline]
    fn value(&self) -> Value<'_> {
        Text::value(self)
    }
}

/// Types that hold themselves.
macro_rules! plain {
    ($($type:ty => |$v:ident| $value:expr;)*) => {$(
        impl Argument for $type {
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
            type Held<'a> = &'a str where Self: 'a;
            #[inline(always)]
            fn hold(&self) -> &str {
                self
            }
        }
    )*};
}

strings!(str, String, std::borrow::Cow<'_, str>);

/// Wider than any format's integers: as text.
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

/// A pointer, as the number it is.
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

/// None leaves the argument out.
impl<T: Argument> Argument for Option<T> {
    type Held<'a>
        = Option<T::Held<'a>>
    where
        Self: 'a;
    #[inline(always)]
    fn hold(&self) -> Self::Held<'_> {
        self.as_ref().map(Argument::hold)
    }
}

impl<H: Held> Held for Option<H> {
    const NESTED: bool = H::NESTED;

    #[inline(always)]
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Held::value)
    }
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Argument + ?Sized> Argument for $type {
            type Held<'a> = T::Held<'a> where Self: 'a;
            #[inline(always)]
            fn hold(&self) -> Self::Held<'_> {
                (**self).hold()
            }
        }
    )*};
}

transparent!(&T, &mut T, Box<T>, std::rc::Rc<T>, Arc<T>);

/// What a counter can show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a counter's value",
    note = "use an integer, a float or a bool"
)]
pub trait Number {
    /// The number.
    fn number(&self) -> Value<'static>;
}

impl<T: Number + ?Sized> Number for &T {
    #[inline(always)]
    fn number(&self) -> Value<'static> {
        (**self).number()
    }
}

/// A number that a counter shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<T>(T);

impl<T: Number> Held for Shown<T> {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        match self.0.number() {
            Value::Bool(v) => Value::U64(u64::from(v)), // neither format's counters know booleans
            number => number,
        }
    }
}

/// Takes anything that is a number.
#[inline(always)]
pub fn number<T: Number>(value: T) -> (Shown<T>, ()) {
    (Shown(value), ())
}
