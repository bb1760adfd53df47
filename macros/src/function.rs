//! The parts of a function that `#[trace]` needs, found by their tokens.
//!
//! ```text
//! #[..] pub(..) async unsafe fn name <..> (parameters) -> output where .. { body }
//! ```

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::error::Error;
use crate::future::output_of_future;
use crate::tokens::{fill_in, is, is_punct, split, words};

/// The parts of a function.
pub(crate) struct Function {
    /// All tokens before the body.
    pub(crate) head: Vec<TokenTree>,
    pub(crate) name: Ident,
    pub(crate) is_async: bool,
    pub(crate) body: Group,
    /// The names of parameters with a plain name.
    pub(crate) parameters: Vec<Ident>,
    pub(crate) output: Vec<TokenTree>,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> Result<Self, Error> {
        let mut head: Vec<TokenTree> = item.into_iter().collect();
        let here = Span::call_site();
        let Some(at) = head.iter().position(|t| is(t, "fn")) else {
            return Err(Error::new("#[trace] goes on a function", here));
        };
        let body = match head.pop() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => group,
            other => {
                let span = other.map_or(here, |token| token.span());
                return Err(Error::new("#[trace] goes on a function with a body", span));
            }
        };
        if let Some(keyword) = head[..at].iter().find(|t| is(t, "const")) {
            return Err(Error::new(
                "a const fn cannot be traced: it may run in the compiler",
                keyword.span(),
            ));
        }
        let is_async = head[..at].iter().any(|t| is(t, "async"));
        let Some(TokenTree::Ident(name)) = head.get(at + 1).cloned() else {
            return Err(Error::new("a function's name is missing", head[at].span()));
        };
        let after_generics = skip_generics(&head, at + 2);
        let parameters = match head.get(after_generics) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                names(group.stream())
            }
            _ => return Err(Error::new("a function's parameters are missing", name.span())),
        };
        let output =
            head[after_generics + 1..].iter().skip(2).take_while(|t| !is(t, "where")).cloned().collect();
        Ok(Self { head, name, is_async, body, parameters, output })
    }

    /// Returns statements that tell the compiler the output type of the async block around the body. Empty if
    /// the type cannot be written there.
    pub(crate) fn output_hint(&self, krate: &TokenStream) -> TokenStream {
        let output = if self.is_async { &self.output } else { output_of_future(&self.output) };
        let never = matches!(output, [token] if is_punct(token, '!'));
        if output.is_empty() || never || output.iter().any(mentions_impl) {
            return TokenStream::new();
        }
        // Without an attribute: a program may forbid the lints that one would allow.
        let hint = "if false { return __crate::__private::output::<__type>(); }";
        fill_in(words(hint), &[("__crate", krate.clone()), ("__type", output.iter().cloned().collect())])
    }
}

/// Whether a type contains `impl Trait`, which a `let` cannot name.
fn mentions_impl(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.stream().into_iter().any(|t| mentions_impl(&t)),
        token => is(token, "impl"),
    }
}

/// Returns the index after `<...>` if that begins at `at`, otherwise `at`.
fn skip_generics(tokens: &[TokenTree], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        let arrow = at > 0 && is_punct(&tokens[at - 1], '-'); // the `>` of `->` closes no `<`
        if is_punct(token, '<') {
            depth += 1;
        } else if is_punct(token, '>') && !arrow {
            depth = depth.saturating_sub(1);
        } else if depth == 0 {
            return at;
        }
        at += 1;
    }
    at
}

/// Returns the names of parameters: `name: Type`, `mut name: Type`, `ref name: Type`; not `self`, no
/// patterns.
fn names(parameters: TokenStream) -> Vec<Ident> {
    split(parameters)
        .into_iter()
        .filter_map(|parameter| {
            let mut tokens = parameter.into_iter().peekable();
            // Skips attributes, `mut` and `ref`.
            loop {
                match tokens.peek()? {
                    token if is_punct(token, '#') => {
                        tokens.next();
                        tokens.next();
                    }
                    token if is(token, "mut") || is(token, "ref") => {
                        tokens.next();
                    }
                    _ => break,
                }
            }
            match (tokens.next()?, tokens.next()?) {
                (TokenTree::Ident(name), colon) if is_punct(&colon, ':') => {
                    let text = name.to_string();
                    (text != "self" && text != "_").then_some(name)
                }
                _ => None,
            }
        })
        .collect()
}
