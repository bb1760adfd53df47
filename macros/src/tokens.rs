//! Token streams: made of text, filled in, and split.

use proc_macro::{Group, TokenStream, TokenTree};

/// Parses text of this crate into tokens.
pub(crate) fn words(text: &str) -> TokenStream {
    text.parse().unwrap_or_default() // the text is a constant, and valid
}

/// Replaces names by their parts. The parts keep their places in the source, so that errors point there.
pub(crate) fn fill_in(tokens: TokenStream, parts: &[(&str, TokenStream)]) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                match parts.iter().find(|(part, _)| *part == name) {
                    Some((_, part)) => out.extend(part.clone()),
                    None => out.extend([TokenTree::Ident(ident)]),
                }
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), fill_in(group.stream(), parts));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

pub(crate) fn is(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

pub(crate) fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

/// Splits tokens at the commas outside of `<...>`.
pub(crate) fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut all, mut depth) = (vec![Vec::new()], 0_usize);
    let mut arrow = false;
    for token in tokens {
        if is_punct(&token, '<') {
            depth += 1;
        } else if is_punct(&token, '>') && !arrow {
            depth = depth.saturating_sub(1);
        }
        arrow = is_punct(&token, '-') || is_punct(&token, '=');
        if depth == 0 && is_punct(&token, ',') {
            all.push(Vec::new());
        } else if let Some(last) = all.last_mut() {
            last.push(token);
        }
    }
    all.retain(|part| !part.is_empty());
    all
}
