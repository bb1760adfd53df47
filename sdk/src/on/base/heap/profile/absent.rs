//! A program without the feature `sampling`: no allocation is sampled.

use std::convert::Infallible;

pub(crate) type Taken = Infallible;

#[inline(always)]
pub(crate) fn allocated(_: *mut u8, _: usize, _: u32) {}

#[inline(always)]
pub(crate) fn take(_: *mut u8) -> Option<Taken> {
    None
}

#[inline(always)]
pub(crate) fn freed(taken: Taken) {
    match taken {}
}

#[inline(always)]
pub(crate) fn put_back(taken: Taken, _: *mut u8) {
    match taken {}
}

pub(crate) fn leave_in_child() {}
