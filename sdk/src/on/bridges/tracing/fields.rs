//! Copies of the values of fields. The originals exist only while they are visited.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use hairline_formats::Value;
use tracing_core::field::{Field, Visit};

use crate::on::base::few::Few;
use crate::on::bridges::tracing::kept::Kept;
use crate::on::callsite::Callsite;
use crate::on::event::owned_arguments::OwnedArguments;

/// Fields with their values, and an event's message.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) kept: OwnedArguments,
    pub(crate) message: String,
    text: String,
}

/// Number of values that need no allocation.
const FEW: usize = 8;

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.message.clear();
    }

    /// Calls `f` with the values in the order of the callsite's keys: null for a key without a value.
    pub(crate) fn with_values<R>(&self, callsite: &'static Callsite, f: impl FnOnce(&[Value<'_>]) -> R) -> R {
        let mut values = Few::<_, FEW>::new(Value::Null);
        let mut next = self.kept.iter().peekable(); // nearly always in the keys' order
        for key in callsite.keys() {
            let is_own = |name: &str| std::ptr::eq(name, key.name()) || name == key.name();
            let value = next.next_if(|(name, _)| is_own(name));
            let value = value.or_else(|| self.kept.iter().find(|(name, _)| is_own(name)));
            values.push(value.map_or(Value::Null, |(_, value)| value));
        }
        f(values.as_slice())
    }
}

thread_local! {
    static SCRATCH: RefCell<Fields> = RefCell::default();
}

/// Calls `f` with empty fields. Uses the memory of earlier ones unless this thread is using it.
pub(crate) fn with_scratch<R>(f: impl FnOnce(&mut Fields) -> R) -> R {
    let taken =
        SCRATCH.try_with(|scratch| scratch.try_borrow_mut().map(|mut scratch| std::mem::take(&mut *scratch)));
    let mut fields = taken.ok().and_then(Result::ok).unwrap_or_default();
    fields.clear();
    let result = f(&mut fields);
    let _ = SCRATCH.try_with(|scratch| scratch.try_borrow_mut().map(|mut scratch| *scratch = fields));
    result
}

/// The values that one call recorded of a span. They do not change any more, so threads read them outside of
/// the span's lock.
#[derive(Debug, Default)]
pub(crate) struct Visited {
    kept: Kept,
    /// The values that the call before recorded.
    before: Option<Arc<Visited>>,
}

/// The most [`Visited`] whose memory a thread keeps for later ones.
const SPARES: usize = 4;

thread_local! {
    static SPARE: RefCell<[Option<Arc<Visited>>; SPARES]> = const { RefCell::new([const { None }; SPARES]) };
}

impl Visited {
    /// Copies the values that `visit`, code of the program, records. Call it without a lock.
    pub(crate) fn of(visit: impl FnOnce(&mut Kept)) -> Arc<Self> {
        let spare = SPARE.try_with(|spare| spare.try_borrow_mut().ok()?.iter_mut().find_map(Option::take));
        if let Some(mut spare) = spare.ok().flatten()
            && let Some(own) = Arc::get_mut(&mut spare)
        {
            own.kept.clear();
            visit(&mut own.kept);
            return spare;
        }
        let mut own = Self::default();
        visit(&mut own.kept);
        Arc::new(own)
    }

    /// Iterates over the values, with their names.
    pub(crate) fn iter(&self, callsite: &'static Callsite) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.kept.iter().filter_map(|(key, value)| Some((callsite.keys().get(key)?.name(), value)))
    }

    /// Calls `f` with the values in the order of the callsite's keys: null for a key without a value.
    pub(crate) fn with_values<R>(&self, callsite: &'static Callsite, f: impl FnOnce(&[Value<'_>]) -> R) -> R {
        let keys = callsite.keys().len();
        let (mut few, mut many) = ([Value::Null; FEW], Vec::new());
        let values = match few.get_mut(..keys) {
            Some(few) => few,
            None => {
                many.resize(keys, Value::Null);
                many.as_mut_slice()
            }
        };
        for (key, value) in self.kept.iter() {
            if let Some(place) = values.get_mut(key) {
                *place = value;
            }
        }
        f(values)
    }

    /// As [`with_values`](Self::with_values). Does nothing and returns `None` if that would allocate.
    pub(crate) fn with_few_values<R>(
        &self,
        callsite: &'static Callsite,
        f: impl FnOnce(&[Value<'_>]) -> R,
    ) -> Option<R> {
        (callsite.keys().len() <= FEW).then(|| self.with_values(callsite, f))
    }

    /// Keeps the memory for later values of this thread, if there is a free place. Call it without a lock: it
    /// frees the rest.
    pub(crate) fn keep_memory(this: Option<Arc<Self>>) {
        let mut next = this;
        while let Some(mut visited) = next {
            // If another thread still reads these values, the earlier ones stay with them.
            next = match visited.before {
                Some(_) => Arc::get_mut(&mut visited).and_then(|own| own.before.take()),
                None => None,
            };
            let unkept = SPARE.try_with(|spare| {
                let mut visited = Some(visited);
                if let Ok(mut spare) = spare.try_borrow_mut()
                    && let Some(place) = spare.iter_mut().find(|place| place.is_none())
                {
                    *place = visited.take();
                }
                visited
            });
            drop(unkept);
        }
    }

    /// Adds these values, which no other thread has, after those of `list`. Neither allocates nor frees.
    pub(crate) fn link(mut self: Arc<Self>, list: &mut Option<Arc<Self>>) {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.before = list.take();
            *list = Some(self);
        }
    }

    /// Calls `with` with the values of all calls, those of the last call first. Of the values of one field
    /// only the last one counts: a program may record a field at each step of a loop.
    pub(crate) fn show_all(&self, callsite: &'static Callsite, with: impl FnOnce(&[(&str, Value<'_>)])) {
        let mut all = Few::<_>::new(("", Value::Null));
        let mut next = Some(self);
        while let Some(visited) = next {
            let later = all.as_slice().len();
            for (name, value) in visited.iter(callsite) {
                if all.as_slice()[..later].iter().all(|(of_later, _)| *of_later != name) {
                    all.push((name, value));
                }
            }
            next = visited.before.as_deref();
        }
        with(all.as_slice());
    }
}

impl Drop for Visited {
    /// Drops the list in a loop: a recursion could overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(visited) = next {
            next = Arc::into_inner(visited).and_then(|mut own| own.before.take());
        }
    }
}

/// The field with the message of an event of tracing's macros.
pub(crate) const MESSAGE: &str = "message";

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.kept.add(field.name(), &Value::F64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.kept.add(field.name(), &Value::I64(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.kept.add(field.name(), &Value::U64(value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match u64::try_from(value) {
            Ok(value) => self.record_u64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.kept.add(field.name(), &Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            self.message.push_str(value);
        } else {
            self.kept.add(field.name(), &Value::Str(value));
        }
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.kept.add(field.name(), &Value::Blob(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == MESSAGE {
            let _ = write!(self.message, "{value:?}"); // if a Debug fails, the text that it wrote stays
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let _ = write!(text, "{value:?}");
        self.kept.add(field.name(), &Value::Str(&text));
        self.text = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on::callsite::Key;
    use crate::site::{CallsiteKind, Site};

    static KEYS: [Key; 10] = [
        Key::new("a"),
        Key::new("b"),
        Key::new("c"),
        Key::new("d"),
        Key::new("e"),
        Key::new("f"),
        Key::new("g"),
        Key::new("h"),
        Key::new("i"),
        Key::new("j"),
    ];
    static SITE: Site = Site::NOWHERE;
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "t", &KEYS, &SITE);

    fn visited(n: u64) -> Arc<Visited> {
        Visited::of(|kept| kept.add_text(n as usize % KEYS.len(), &n.to_string()))
    }

    fn values(list: &Visited) -> Vec<u64> {
        let mut all = Vec::new();
        list.show_all(&CALLSITE, |values| {
            all.extend(values.iter().map(|(_, value)| match value {
                Value::Str(text) => text.parse().unwrap_or(u64::MAX),
                _ => u64::MAX,
            }));
        });
        all
    }

    #[test]
    fn a_list_shows_the_last_value_of_each_field() {
        for calls in [1, 2, 8, 9, 10, 11, 100] {
            let mut list = None;
            (0..calls).for_each(|n| visited(n).link(&mut list));
            let list = list.expect("a list");
            let last_first: Vec<_> = (0..calls).rev().take(KEYS.len()).collect();
            assert_eq!(values(&list), last_first);
            Visited::keep_memory(Some(list));
            assert_eq!(values(&visited(7)), [7], "from the memory of the list");
        }
    }

    #[test]
    fn a_list_that_another_owner_still_reads_keeps_its_values() {
        let mut list = None;
        (0..3).for_each(|n| visited(n).link(&mut list));
        let reader = list.clone().expect("a list");
        Visited::keep_memory(list);
        (10..20).for_each(|n| drop(visited(n)));
        assert_eq!(values(&reader), [2, 1, 0]);
    }

    // A recursion would take some 100 bytes of the stack for each value.
    #[test]
    fn a_long_list_is_freed_on_a_small_stack() {
        let free = |keep: bool| {
            let mut list = None;
            (0..100_000).for_each(|n| visited(n).link(&mut list));
            if keep { Visited::keep_memory(list) } else { drop(list) }
        };
        for keep in [false, true] {
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn(move || free(keep))
                .expect("a thread")
                .join()
                .expect("no panic");
        }
    }
}
