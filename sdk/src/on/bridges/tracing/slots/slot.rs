//! A place for a span.

use std::sync::atomic::AtomicU64;

use crate::on::bridges::tracing::slots::count::Count;
use crate::on::bridges::tracing::span::Span;

/// A place for a span.
#[derive(Debug)]
#[repr(align(64))] // no two spans share a cache line
pub(crate) struct Slot {
    pub(super) count: Count,
    pub(crate) parent: AtomicU64,
    pub(crate) span: Span,
}

// Two cache lines. On other platforms mutexes are larger.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<Slot>() == 128);

impl Slot {
    pub(super) const fn new() -> Self {
        Self { count: Count::new(), parent: AtomicU64::new(0), span: Span::new() }
    }
}
