//! The entries of the registry's list: the facts about each callsite that the registry needs, in memory of
//! its own.
//!
//! A callsite is a static of the program or of a plugin, and a plugin can be unloaded while a session runs.
//! The registry then must not touch the static any more, nor the texts that it refers to. So an entry has
//! copies of them, and exists for the rest of the process; its pointer to the callsite is cleared when the
//! registry finds the code unloaded.

#![allow(unsafe_code)] // callsites behind raw pointers

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::on::base::forever;
use crate::on::base::platform::Modules;
use crate::on::callsite::{Callsite, Link, categories_in};
use crate::site::CallsiteKind;
use crate::vocabulary::Level;

/// An entry of the registry's list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) next: Link<Listed>,
    /// The callsite; null if its code was unloaded.
    callsite: AtomicPtr<Callsite>,
    /// Whether the callsite is on the heap, and so exists for the rest of the process.
    is_permanent: bool,
    pub(crate) serial: u32,
    pub(crate) kind: CallsiteKind,
    pub(crate) level: Level,
    pub(crate) is_filtered: bool,
    pub(crate) is_gate: bool,
    pub(crate) category: &'static str,
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) module: &'static str,
    pub(crate) line: u32,
    /// `slow:`, in ns; 0 without the option.
    pub(crate) slow_after: u64,
    /// `stack:`.
    pub(crate) stack: bool,
}

impl Listed {
    /// Creates the entry of a callsite. `keep` copies a text into memory that is never freed.
    pub(crate) fn new(callsite: &'static Callsite, keep: impl Fn(&'static str) -> &'static str) -> Self {
        let site = callsite.site();
        Self {
            next: Link::end(),
            callsite: AtomicPtr::new(std::ptr::from_ref(callsite).cast_mut()),
            is_permanent: callsite.is_permanent(),
            serial: 0,
            kind: callsite.kind(),
            level: callsite.level(),
            is_filtered: callsite.is_filtered(),
            is_gate: callsite.is_gate(),
            category: keep(callsite.category()),
            name: keep(callsite.name()),
            file: keep(site.file),
            module: keep(site.module),
            line: site.line,
            slow_after: site.slow_after,
            stack: site.stack,
        }
    }

    /// Returns the entry of a callsite; `None` before it is registered.
    pub(crate) fn of(callsite: &Callsite) -> Option<&'static Self> {
        // Acquire pairs with the Release in `push`.
        forever::get(callsite.listed().load(Ordering::Acquire).cast())
    }

    /// Makes this entry of `callsite` the first of the list at `head`. The caller holds the registry's lock.
    pub(crate) fn push(&'static self, callsite: &Callsite, head: &Link<Self>) {
        let entry = std::ptr::from_ref(self).cast_mut();
        callsite.listed().store(entry.cast(), Ordering::Release);
        head.publish(entry, &self.next);
    }

    /// Returns the callsite, unless it is known to be unloaded.
    ///
    /// # Safety
    /// No code was unloaded since [`forget_if_unloaded`](Self::forget_if_unloaded), and none is during the
    /// use of the callsite.
    pub(crate) unsafe fn callsite(&self) -> Option<&Callsite> {
        // SAFETY: null, or from a `&'static`; the code that has it is loaded, by the contract.
        unsafe { self.callsite.load(Ordering::Relaxed).as_ref() }
    }

    /// Forgets the callsite if its code was unloaded.
    pub(crate) fn forget_if_unloaded(&self, modules: &Modules) {
        let Some(callsite) = NonNull::new(self.callsite.load(Ordering::Relaxed)) else { return };
        if self.is_permanent || modules.contain(callsite.addr().get(), size_of::<Callsite>()) {
            // Other code may be loaded at the address. Then it has no callsite there that knows this entry.
            // SAFETY: memory of a module that is loaded, as long as `modules` exist.
            if unsafe { Callsite::listed_at(callsite) } == std::ptr::from_ref(self).cast() {
                return;
            }
        }
        self.callsite.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Returns its categories: `"net,slow"` has two.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> + Clone {
        categories_in(self.category)
    }
}
