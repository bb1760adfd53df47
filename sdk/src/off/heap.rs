//! Calls of the allocator, which are not counted.

use std::convert::Infallible;

#[inline(always)]
pub(crate) fn is_counting() -> bool {
    false
}

#[inline(always)]
pub(crate) fn allocated(_: *mut u8, _: usize, _: usize, _: bool) {}

#[inline(always)]
pub(crate) fn freed(_: *mut u8, _: usize, _: bool) {}

#[inline(always)]
pub(crate) fn take(_: *mut u8) -> Option<Infallible> {
    None
}

#[inline(always)]
pub(crate) fn put_back(taken: Infallible, _: *mut u8) {
    match taken {}
}

#[inline(always)]
pub(crate) fn moved(_: Option<Infallible>, _: *mut u8, _: usize, _: usize, _: usize, _: bool) {}
