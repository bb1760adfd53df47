//! Arguments that a guard collects for the record of its end.
//!
//! The guard itself has two numbers, or one short text: nearly all arguments are these. Others are in a list
//! beside it.

#![allow(unsafe_code)] // a part of a text, without a check

use std::cell::Cell;

use hairline_formats::Value;

use crate::on::base::buffer::SpillingText;
use crate::on::base::few::Few;
use crate::on::base::this_thread;
use crate::on::event::argument::{Argument, Held};
use crate::on::event::owned_arguments::{OwnedArguments, Plain, Scalar};

/// A number and its key.
pub(crate) type Number = (&'static str, Plain);

/// A short text and its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortText {
    pub(crate) key: &'static str,
    len: u8,
    bytes: [u8; Self::LONGEST],
}

impl ShortText {
    /// The most bytes of the text. The guard has room for two numbers.
    pub(crate) const LONGEST: usize = 40;

    /// Copies a text. Returns `None` if it is too long.
    #[inline]
    fn of(key: &'static str, text: &str) -> Option<Self> {
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { key, len: text.len() as u8, bytes })
    }

    /// Returns the text.
    #[inline(always)]
    pub(crate) fn text(&self) -> &str {
        // SAFETY: `of` copied a whole text, of at most LONGEST bytes.
        unsafe { std::str::from_utf8_unchecked(self.bytes.get_unchecked(..usize::from(self.len))) }
    }
}

/// The end arguments of one scope.
#[derive(Debug)]
pub(crate) enum Collected {
    None,
    One([Number; 1]),
    Two([Number; 2]),
    Text(ShortText),
    /// `None` once the end has taken the list.
    List(Option<Box<EndArguments>>),
}

impl Collected {
    /// Adds an argument.
    #[cfg_attr(not(debug_assertions), inline(always))] // the compiler then knows the kind of the value
    #[cfg_attr(debug_assertions, inline(never))]
    pub(crate) fn add(&mut self, key: &'static str, value: &Value<'_>) {
        match (Plain::of(value), &*self) {
            (Some(plain), Self::None) => *self = Self::One([(key, plain)]),
            _ => self.add_another(key, value),
        }
    }

    #[inline(never)]
    fn add_another(&mut self, key: &'static str, value: &Value<'_>) {
        match (value, Plain::of(value), &*self) {
            (_, Some(plain), Self::One([first])) => *self = Self::Two([*first, (key, plain)]),
            (Value::Str(text), _, Self::None) => match ShortText::of(key, text) {
                Some(text) => *self = Self::Text(text),
                None => self.add_to_list(key, value),
            },
            (Value::Null, ..) => {}
            _ => self.add_to_list(key, value),
        }
    }

    fn add_to_list(&mut self, key: &'static str, value: &Value<'_>) {
        if let Self::List(Some(list)) = self {
            return list.add_value(key, value);
        }
        let mut list = EndArguments::take_free();
        match self {
            Self::One(numbers) => list.add_numbers(numbers),
            Self::Two(numbers) => list.add_numbers(numbers),
            Self::Text(text) => list.add_value(text.key, &Value::Str(text.text())),
            Self::None | Self::List(_) => {}
        }
        list.add_value(key, value); // may run code of the program, which may panic
        *self = Self::List(Some(list));
    }
}

/// The end arguments of one guard. A thread's later guards reuse its memory.
#[derive(Debug)]
pub(crate) struct EndArguments {
    /// The first `few_len` are arguments. Unused if `is_many`.
    few: [(&'static str, Scalar); FEW],
    few_len: usize,
    /// The text of strings in `few`.
    text: SpillingText<128>,
    /// All arguments, if there are more than [`FEW`], or others than scalars with static names.
    many: OwnedArguments,
    is_many: bool,
    /// The next free one of this thread, and the number of all from here on.
    next: Option<Box<EndArguments>>,
    free_count: usize,
}

/// The most scalars that take the short way.
const FEW: usize = 4;

/// The most lists that a thread keeps for later guards.
const KEPT: usize = 8;

thread_local! {
    static FREE: Cell<Option<Box<EndArguments>>> = const { Cell::new(None) };
}

impl EndArguments {
    fn new() -> Self {
        Self {
            few: [const { ("", Scalar::Plain(Plain::Bool(false))) }; FEW],
            few_len: 0,
            text: SpillingText::new(),
            many: OwnedArguments::default(),
            is_many: false,
            next: None,
            free_count: 0,
        }
    }

    /// Adds an argument. Makes the list if there is none.
    #[inline]
    pub(crate) fn add(list: &mut Option<Box<Self>>, key: &'static str, value: &impl Argument) {
        let held = value.hold();
        Self::add_to(list, key, &held.value());
    }

    /// Adds an argument that is held already.
    #[inline(never)]
    pub(crate) fn add_to(list: &mut Option<Box<Self>>, key: &'static str, value: &Value<'_>) {
        if !matches!(value, Value::Null) {
            list.get_or_insert_with(Self::take_free).add_value(key, value);
        }
    }

    fn add_numbers(&mut self, numbers: &[Number]) {
        numbers.iter().for_each(|(key, number)| self.add_value(key, &number.value()));
    }

    /// Adds an argument. Null is omitted.
    fn add_value(&mut self, key: &'static str, value: &Value<'_>) {
        let is_short = !self.is_many && self.few_len < FEW;
        let scalar = match *value {
            Value::Null => return,
            _ if !is_short => None,
            Value::Str(text) => {
                let start = self.text.as_str().len();
                self.text.push(text);
                Some(Scalar::Str(start..start + text.len()))
            }
            ref value => Scalar::of_plain(value),
        };
        let Some(scalar) = scalar else { return self.add_to_many(key, value) };
        if let Some(place) = self.few.get_mut(self.few_len) {
            *place = (key, scalar);
            self.few_len += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn add_to_many(&mut self, key: &'static str, value: &Value<'_>) {
        self.make_many();
        self.many.add(key, value);
    }

    /// Adds an argument whose name is not static.
    #[cfg(feature = "subscriber")]
    pub(crate) fn add_named(list: &mut Option<Box<Self>>, name: &str, value: &Value<'_>) {
        let own = list.get_or_insert_with(Self::take_free);
        own.make_many();
        own.many.add_named(name, value);
    }

    /// Moves all arguments to `many`.
    fn make_many(&mut self) {
        if self.is_many {
            return;
        }
        let Self { few, few_len, text, many, .. } = self;
        for (key, scalar) in &few[..*few_len] {
            many.add(key, &scalar.value(text.as_str()));
        }
        self.is_many = true;
    }

    /// Returns an empty list, if possible with the memory of an earlier one of this thread.
    #[inline]
    fn take_free() -> Box<Self> {
        // A signal handler that interrupts the next lines, and an allocator, find the thread busy.
        let lease = this_thread::hot().lease();
        if !lease.is_busy() {
            lease.set_busy(true);
            let free = FREE.try_with(|free| {
                let mut first = free.take()?;
                free.set(first.next.take());
                Some(first)
            });
            lease.set_busy(false);
            if let Ok(Some(free)) = free {
                return free;
            }
        }
        Self::make()
    }

    #[cold]
    #[inline(never)]
    fn make() -> Box<Self> {
        let _busy = this_thread::busy();
        Box::new(Self::new())
    }

    /// Keeps the list for a later guard of this thread.
    #[inline]
    pub(crate) fn keep(mut list: Box<Self>) {
        list.clear();
        let lease = this_thread::hot().lease();
        if lease.is_busy() {
            return list.free();
        }
        lease.set_busy(true);
        let mut unkept = Some(list);
        let _ = FREE.try_with(|free| {
            let next = free.take();
            let count = next.as_ref().map_or(0, |next| next.free_count);
            let first = if count < KEPT { unkept.take() } else { None };
            free.set(match first {
                Some(mut first) => {
                    (first.next, first.free_count) = (next, count + 1);
                    Some(first)
                }
                None => next,
            });
        });
        lease.set_busy(false);
        if let Some(unkept) = unkept {
            unkept.free();
        }
    }

    #[cold]
    #[inline(never)]
    fn free(self: Box<Self>) {
        let _busy = this_thread::busy();
        drop(self);
    }

    #[inline]
    fn clear(&mut self) {
        self.few_len = 0;
        self.text.clear();
        if self.is_many {
            self.many.clear();
            self.is_many = false;
        }
    }

    /// Calls `show` with each argument.
    #[inline]
    pub(crate) fn each(&self, mut show: impl FnMut(&str, &Value<'_>)) {
        if self.is_many {
            self.many.iter().for_each(|(name, value)| show(name, &value));
        } else {
            let few = self.few.iter().take(self.few_len);
            few.for_each(|(name, scalar)| show(name, &scalar.value(self.text.as_str())));
        }
    }

    /// Calls `with` with all arguments.
    pub(crate) fn show<R>(&self, with: impl FnOnce(&[(&str, Value<'_>)]) -> R) -> R {
        if self.is_many {
            return self.many.with_list(with);
        }
        let mut all = Few::<_, FEW>::new(("", Value::Null));
        for (name, scalar) in &self.few[..self.few_len] {
            all.push((*name, scalar.value(self.text.as_str())));
        }
        with(all.as_slice())
    }
}
