//! A program without the feature `sampling`: no allocation is sampled.

use std::convert::Infallible;

pub(crate) type Taken = Infallible;

/// A countdown that never ends.
pub(crate) struct Countdown;

impl Countdown {
    pub(crate) const fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn subtract(&self, _: usize) -> bool {
        true
    }

    pub(crate) fn is_turn_of(&self, _: usize, _: u32, _: bool) -> bool {
        false
    }
}

#[inline(always)]
pub(crate) fn from_here(take: impl FnOnce([u64; 3])) {
    take([0; 3]);
}

pub(crate) fn sample(_: *mut u8, _: usize, _: u32, _: [u64; 3]) {}

#[inline(always)]
pub(crate) fn may_have(_: *mut u8) -> bool {
    false
}

pub(crate) fn take(_: *mut u8) -> Option<Taken> {
    None
}

pub(crate) fn freed(taken: Taken) {
    match taken {}
}

#[inline(always)]
pub(crate) fn put_back(taken: Taken, _: *mut u8) {
    match taken {}
}

pub(crate) fn leave_in_child() {}
