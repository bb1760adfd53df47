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

type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

// As async-trait writes it.
#[trace("t", args(id))]
fn method<'life0, 'async_trait>(
    text: &'life0 str,
    id: u64,
) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<u64, Error>> + ::core::marker::Send + 'async_trait>>
where
    'life0: 'async_trait,
{
    Box::pin(async move {
        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<u64, Error>> {
            return __ret;
        }
        let id = id;
        let __ret: Result<u64, Error> = { Ok(text.parse::<u64>()? + id) };
        __ret
    })
}

type Error = Box<dyn std::error::Error + Send + Sync>;

#[trace("t")]
fn opaque(text: &str) -> impl Future<Output = Result<u64, Error>> + Send + '_ {
    async move { Ok(text.parse::<u64>()?) }
}

#[trace("t")]
fn passes_on(text: &str) -> impl Future<Output = Result<u64, Error>> + Send {
    opaque(text)
}

#[trace("t")]
fn boxes_another(text: &str) -> std::pin::Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
    if text.is_empty() { Box::pin(std::future::ready(Ok(0))) } else { Box::pin(opaque(text)) }
}

#[trace("t")]
fn returns_early(text: &str) -> Boxed<'_, u64> {
    if text.is_empty() {
        return Box::pin(std::future::ready(0));
    }
    Box::pin(async { 1 })
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
    is_send((method("1", 1), opaque("1"), passes_on("1"), boxes_another("1"), returns_early("")));
    S.all(1, 2);
    let _ = visible(str::len, "x")();
}
