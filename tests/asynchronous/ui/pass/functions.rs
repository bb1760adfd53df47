//! Functions of all kinds, with lints that a strict user has on.
#![deny(warnings, clippy::all)]
#![allow(dead_code)]

use hairline::trace;

#[trace]
pub(crate) fn visible<'a, F>(f: F, text: &'a str) -> impl Fn() -> usize + 'a
where
    F: Fn(&str) -> usize + 'a,
{
    move || f(text)
}

#[trace("t", args(a, b = a + 1,))]
async fn awaited(a: u32) -> u32 {
    std::future::ready(a).await
}

#[trace("t")]
async fn never() -> ! {
    std::future::pending().await
}

#[trace("t")]
async fn boxed(items: Vec<Box<dyn Fn(i32) -> i32 + Send + Sync>>) -> Option<Result<(), Box<dyn std::error::Error>>> {
    if items.is_empty() {
        return None;
    }
    Some(Ok(()))
}

struct S;

impl S {
    #[trace(name = "by value", crate = hairline)]
    async fn consume(self: Box<Self>, r#type: u8) -> Box<Self> {
        let _ = r#type;
        self
    }

    #[trace("t", args, skip(self_made))]
    fn all(&self, r#type: u8, self_made: u8) {
        let _ = (r#type, self_made);
    }
}

fn is_send<T: Send>(_: T) {}

fn main() {
    is_send(awaited(1));
    is_send(boxed(Vec::new()));
    S.all(1, 2);
    let _ = visible(str::len, "x")();
}
