//! Ends of scopes with arguments.

use hairline_formats::Value;

use crate::on::base::few::Few;
use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::Callsite;
use crate::on::event::extras::Extras;
use crate::on::event::{Action, Event};
use crate::on::thread::end_arguments::{Collected, EndArguments, Number};
use crate::on::thread::hot::Taken;
use crate::on::thread::hot::encoded::Encoded;
use crate::on::thread::hot::late::Late;
use crate::on::thread::open_scope::{End, OpenScope};
use crate::on::thread::{cold, hot, slow};

/// The end of a scope with one number as argument. By reference, like [`End`].
pub(crate) struct EndWith {
    pub(crate) end: End,
    pub(crate) number: [Number; 1],
}

/// Ends a recorded scope with one argument. Most scopes with arguments at the end have one number.
#[inline(never)]
pub(crate) fn end_with_number(EndWith { end, number }: &EndWith) {
    end_late(end, number);
}

/// Ends a recorded scope with arguments, which it takes.
#[inline(never)]
pub(crate) fn end_with(end: &End, arguments: &mut Collected) {
    match arguments {
        Collected::None => end_late(end, &[]),
        Collected::One(number) => end_late(end, number),
        Collected::Two(numbers) => end_late(end, numbers),
        Collected::Text(text) => end_late(end, text),
        Collected::List(list) => {
            if let Some(list) = list.take() {
                end_with_list(end, list);
            }
        }
    }
}

#[inline(always)]
fn end_late<L: Late>(end: &End, arguments: &L) {
    let (fxt, packet) = (written::<L, true>, written::<L, false>);
    hot::late::end_or(this_thread::hot(), end, arguments, fxt, packet, end_left::<L>);
}

/// Writes the record in one of the formats: a function for each.
#[inline(never)]
fn written<L: Late, const IS_FXT: bool>(hot: &'static Hot, end: &End, arguments: &L, taken: Taken) {
    let is_written = if IS_FXT {
        hot::late::in_fxt(hot, end, arguments, taken)
    } else {
        hot::late::in_packet(hot, end, arguments, taken)
    };
    if !is_written {
        end_left(end, arguments);
    }
}

#[cold]
#[inline(never)]
fn end_left<L: Late>(end: &End, arguments: &L) {
    let open = end.open.untimed();
    let mut encoded = Encoded::new(open.epoch().format());
    arguments.each(|key, value| encoded.put_named(key, &value));
    if !hot::composed::end(end.callsite, open, &mut encoded) {
        let mut named = Few::<_, 2>::new(("", Value::Null));
        arguments.each(|key, value| named.push((key, value)));
        end_cold(end.callsite, open, named.as_slice());
    }
    slow::ended(end.callsite, end.open);
}

#[inline(never)]
fn end_with_list(end: &End, list: Box<EndArguments>) {
    let (callsite, open) = (end.callsite, end.open.untimed());
    let mut encoded = Encoded::new(open.epoch().format());
    list.each(|name, value| encoded.put_named(name, value));
    if !hot::composed::end(callsite, open, &mut encoded) {
        list.show(|named| end_cold(callsite, open, named));
    }
    EndArguments::keep(list);
    slow::ended(callsite, end.open);
}

#[cold]
#[inline(never)]
fn end_cold(callsite: &'static Callsite, open: OpenScope, named: &[(&str, Value<'_>)]) {
    let extras = Extras::new();
    let event = Event { action: Action::End, named, ..Event::new(callsite, &[], &extras) };
    cold::end_with(&event, open);
}
