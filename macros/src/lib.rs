//! Procedural macros of [Hairline](https://docs.rs/hairline).
//!
//! The only macro is [`macro@trace`], exported as `hairline::trace`. It works on tokens: it finds the
//! function's name, the names of its parameters and its body, and leaves the other tokens unchanged. So it
//! has no dependency for each user to compile, and every kind of function is accepted.

mod error;
mod function;
mod future;
mod options;
mod tokens;

use proc_macro::TokenStream;

use crate::error::Error;
use crate::function::Function;
use crate::future::{FutureType, around_async_block, may_return_early};
use crate::options::Options;
use crate::tokens::{fill_in, words};

/// Records each call of a function as a slice; of an `async` function, its life and its polls.
///
/// ```ignore
/// #[trace]                                         // category: the module's path; name: the function's
/// fn parse(text: &str) -> Ast { .. }
///
/// #[trace("db", name = "lookup", args(id, table = %self.table))]
/// async fn find(&self, id: u64) -> Result<Row, Error> { .. }
///
/// #[trace("auth", args, skip(password))]           // all parameters but one
/// fn log_in(user: &str, password: &str) -> bool { .. }
/// ```
///
/// * The first value without a name is the category, by default the path of the module.
/// * `name = ..`: a constant string, by default the name of the function.
/// * `args(..)`: arguments as in `trace_scope!`, evaluated at the start of the body.
/// * `args`: all parameters with a plain name, but `self`.
/// * `skip(..)`: parameters that `args` omits.
/// * `crate = path`: the path of the crate `hairline`, by default `::hairline`.
///
/// The function must have a body and must not be `const`. It may have `self`, generics, `where`, lifetimes
/// and `impl Trait`. Early returns, `?` and panics end the slice. An `async` function is recorded from its
/// first poll, as `TraceFuture::traced` records a future.
///
/// So is a function that is not `async` and ends with `async move { .. }` or `Box::pin(async move { .. })`:
/// the methods that `async-trait` makes. Another function with `-> impl Future` or `-> Pin<Box<dyn Future>>`
/// is recorded from the call to the end of its future, if its body has neither `return` nor `?`; else the
/// slice is that of the call, which makes the future. A future in a box is then in a second box.
#[proc_macro_attribute]
pub fn trace(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match expand(attribute, item.clone()) {
        Ok(traced) => traced,
        Err(e) => {
            // The function is kept, so the compiler reports one error only, and editors still know the
            // function.
            let mut out = e.compile_error();
            out.extend(item);
            out
        }
    }
}

fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let options = Options::parse(attribute)?;
    let function = Function::parse(item)?;
    let krate = options.krate();
    let parts = [
        ("__crate", krate.clone()),
        ("__category", options.category(&krate)),
        ("__name", options.name(&function)),
        ("__arguments", options.arguments(&function)?),
        ("__output", function.output_hint(&krate)),
        ("__body", function.body.stream()),
        ("__type", function.output.iter().cloned().collect()),
    ];
    // The life of an async function begins with its first poll, as its body does.
    let body = if function.is_async {
        "{ __crate::__hairline_life!(__category, __name __arguments)\
           .wrap(async move { __output __body }).await }"
    } else if let Some(body) = around_async_block(&function.body.stream(), &parts) {
        return Ok(with_body(function, &words("{ __body }"), &[("__body", body)]));
    } else {
        match FutureType::of(&function.output).filter(|_| !may_return_early(function.body.stream())) {
            Some(FutureType::Opaque) => {
                "{ let __hairline_life = __crate::__hairline_life!(__category, __name __arguments);\
                   __hairline_life.wrap({ __body }) }"
            }
            Some(FutureType::Boxed) => {
                "{ let __hairline_life = __crate::__hairline_life!(__category, __name __arguments);\
                   let __hairline_future: __type = { __body };\
                   __crate::__private::Box::pin(__hairline_life.wrap(__hairline_future)) }"
            }
            None => "{ let __hairline_scope = __crate::scope!(__category, __name __arguments); __body }",
        }
    };
    Ok(with_body(function, &words(body), &parts))
}

fn with_body(function: Function, body: &TokenStream, parts: &[(&str, TokenStream)]) -> TokenStream {
    let mut out: TokenStream = function.head.into_iter().collect();
    out.extend(fill_in(body.clone(), parts));
    out
}
