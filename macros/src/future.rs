//! Functions that return a future without being `async`: the methods that `async-trait` makes, and those with
//! `-> impl Future`.
//!
//! | body | traced |
//! |---|---|
//! | `..; async move { .. }` | the async block, from its first poll |
//! | `..; Box::pin(async move { .. })` | the same, in the box |
//! | any other without `return` and `?` | the future that it returns, from the call |

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

use crate::tokens::{fill_in, is, is_punct, words};

/// A life around an async block, in place of that block.
const LIFE: &str = "__async { __crate::__hairline_life!(__category, __name __arguments)\
                    .wrap(__async { __output __block }).await }";

/// Returns the body with a life around the async block at its end. `None` if the body ends with something
/// else.
pub(crate) fn around_async_block(body: &TokenStream, parts: &[(&str, TokenStream)]) -> Option<TokenStream> {
    let mut tokens: Vec<TokenTree> = body.clone().into_iter().collect();
    let last = match tokens.pop() {
        Some(TokenTree::Group(group)) => group,
        _ => return None,
    };
    match last.delimiter() {
        Delimiter::Brace => {
            let asynchronous = take_async(&mut tokens)?;
            tokens.extend(life(asynchronous, &last, parts));
        }
        Delimiter::Parenthesis if ends_with_box_pin(&tokens) => {
            let mut inside: Vec<TokenTree> = last.stream().into_iter().collect();
            inside.pop_if(|token| is_punct(token, ','));
            let Some(TokenTree::Group(block)) = inside.pop() else { return None };
            let asynchronous = take_async(&mut inside).filter(|_| block.delimiter() == Delimiter::Brace)?;
            if !inside.is_empty() {
                return None;
            }
            let mut boxed = Group::new(Delimiter::Parenthesis, life(asynchronous, &block, parts));
            boxed.set_span(last.span());
            tokens.push(TokenTree::Group(boxed));
        }
        _ => return None,
    }
    Some(tokens.into_iter().collect())
}

fn life(asynchronous: TokenStream, block: &Group, parts: &[(&str, TokenStream)]) -> TokenStream {
    let mut parts = parts.to_vec();
    parts.extend([("__async", asynchronous), ("__block", block.stream())]);
    fill_in(words(LIFE), &parts)
}

/// Removes `async` or `async move` from the end.
fn take_async(tokens: &mut Vec<TokenTree>) -> Option<TokenStream> {
    let moves = tokens.pop_if(|token| is(token, "move"));
    let asynchronous = tokens.pop_if(|token| is(token, "async"))?;
    Some([asynchronous].into_iter().chain(moves).collect())
}

/// Whether the tokens end with `Box::pin`.
fn ends_with_box_pin(tokens: &[TokenTree]) -> bool {
    let [.., boxed, colon, second, pin] = tokens else { return false };
    is(boxed, "Box") && is_punct(colon, ':') && is_punct(second, ':') && is(pin, "pin")
}

/// A type that is a future.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FutureType {
    /// `Pin<Box<dyn Future ..>>`
    Boxed,
    /// `impl Future ..`, with no bound that a wrapped future might not have.
    Opaque,
}

impl FutureType {
    /// Recognises the type of a function's output.
    pub(crate) fn of(output: &[TokenTree]) -> Option<Self> {
        let mut generic = output.splitn(2, |token| is_punct(token, '<'));
        let (first, rest) = (generic.next()?, generic.next()?);
        if first.first().is_some_and(|token| is(token, "impl")) {
            return is_bound_of_wrapped(output).then_some(Self::Opaque);
        }
        let mut boxed = rest.splitn(2, |token| is_punct(token, '<'));
        let is_boxed = first.last().is_some_and(|token| is(token, "Pin"))
            && boxed.next()?.last().is_some_and(|token| is(token, "Box"));
        let inner = boxed.next()?;
        let mut path = inner.iter().take_while(|token| !is_punct(token, '<'));
        (is_boxed && is(inner.first()?, "dyn") && path.any(|token| is(token, "Future")))
            .then_some(Self::Boxed)
    }
}

/// Whether a wrapped future has all bounds of `impl A + B ..`, one of which is `Future`.
fn is_bound_of_wrapped(output: &[TokenTree]) -> bool {
    const BOUNDS: [&str; 9] = ["impl", "std", "core", "future", "Future", "Send", "Sync", "Unpin", "use"];
    let (mut depth, mut is_future, mut is_lifetime) = (0_usize, false, false);
    for token in output {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' => depth = depth.saturating_sub(1),
            TokenTree::Ident(_) if depth == 0 && !is_lifetime => {
                if !BOUNDS.iter().any(|bound| is(token, bound)) {
                    return false;
                }
                is_future |= is(token, "Future");
            }
            _ => {}
        }
        is_lifetime = is_punct(token, '\'');
    }
    is_future
}

/// Returns `T` of `Future<Output = T>` in the type of a function's output.
pub(crate) fn output_of_future(output: &[TokenTree]) -> &[TokenTree] {
    let future = output.iter().position(|token| is(token, "Future"));
    let after =
        future.and_then(|at| output[at..].iter().position(|token| is(token, "Output")).map(|n| at + n));
    let Some(rest) = after.and_then(|at| output.get(at + 2..)) else { return &[] };
    let (mut depth, mut arrow) = (0_usize, false);
    for (n, token) in rest.iter().enumerate() {
        if depth == 0 && (is_punct(token, ',') || is_punct(token, '>') && !arrow) {
            return &rest[..n];
        } else if is_punct(token, '<') {
            depth += 1;
        } else if is_punct(token, '>') && !arrow {
            depth -= 1;
        }
        arrow = is_punct(token, '-');
    }
    &[]
}

/// Whether the body may return before its end: it has a `return` or a `?` outside of async blocks and items.
pub(crate) fn may_return_early(body: TokenStream) -> bool {
    let mut is_skipped = false; // whether the next block runs elsewhere
    for token in body {
        match &token {
            TokenTree::Group(group) if is_skipped && group.delimiter() == Delimiter::Brace => {
                is_skipped = false;
            }
            TokenTree::Group(group) if !is_skipped && may_return_early(group.stream()) => return true,
            token if is(token, "async") || is(token, "fn") => is_skipped = true,
            token if !is_skipped && (is(token, "return") || is_punct(token, '?')) => return true,
            _ => {}
        }
    }
    false
}
