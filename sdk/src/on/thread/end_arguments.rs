//! Arguments that a guard collects for the record of its end.

use std::cell::RefCell;

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::event::argument::{Argument, Held};
use crate::on::event::owned_arguments::OwnedArguments;

/// The end arguments of one guard. A thread's later guards reuse its lists.
#[derive(Debug, Default)]
pub(crate) struct EndArguments(OwnedArguments);

/// The most lists that a thread keeps for later guards.
const KEPT: usize = 8;

thread_local! {
    #[allow(clippy::vec_box)] // the boxes themselves are reused
    static FREE: RefCell<Vec<Box<EndArguments>>> = const { RefCell::new(Vec::new()) };
}

impl EndArguments {
    /// Adds an argument. Makes the list if there is none.
    pub(crate) fn add(list: &mut Option<Box<Self>>, key: &'static str, value: &impl Argument) {
        let held = value.hold();
        let _busy = this_thread::busy();
        Self::of(list).0.add(key, &held.value());
    }

    /// Adds an argument whose name is not static.
    #[cfg(feature = "subscriber")]
    pub(crate) fn add_named(list: &mut Option<Box<Self>>, name: &str, value: &Value<'_>) {
        let _busy = this_thread::busy();
        Self::of(list).0.add_named(name, value);
    }

    fn of(list: &mut Option<Box<Self>>) -> &mut Self {
        let free = || FREE.try_with(|free| free.try_borrow_mut().ok()?.pop()).ok().flatten();
        list.get_or_insert_with(|| free().unwrap_or_default())
    }

    /// Keeps the list for a later guard of this thread.
    pub(crate) fn keep(mut list: Box<Self>) {
        let _busy = this_thread::busy();
        list.0.clear();
        let _ = FREE.try_with(|free| {
            if let Ok(mut free) = free.try_borrow_mut()
                && free.len() < KEPT
            {
                free.push(list);
            }
        });
    }

    /// Calls `show` with each argument.
    #[inline]
    pub(crate) fn each(&self, mut show: impl FnMut(&str, &Value<'_>)) {
        self.0.iter().for_each(|(name, value)| show(name, &value));
    }

    /// Calls `with` with all arguments.
    pub(crate) fn show<R>(&self, with: impl FnOnce(&[(&str, Value<'_>)]) -> R) -> R {
        self.0.with_list(with)
    }
}
