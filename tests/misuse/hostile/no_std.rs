//! Functions of a crate without the standard library.
#![no_std]
#![deny(warnings)]

extern crate alloc;

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;

#[hairline::trace("app", args)]
pub fn called(n: u32) -> u32 {
    hairline::trace_scope!("app", "inside", n = 1);
    n
}

#[hairline::trace("app")]
pub fn boxed(text: &str) -> Pin<Box<dyn Future<Output = usize> + '_>> {
    let future = async move { text.len() };
    Box::pin(future)
}

#[hairline::trace("app")]
pub fn block(text: &str) -> Pin<Box<dyn Future<Output = usize> + '_>> {
    Box::pin(async move { text.len() })
}
