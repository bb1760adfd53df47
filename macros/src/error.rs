//! Errors of the macro, which the compiler reports at their place.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// An error at a place in the source.
pub(crate) struct Error {
    message: String,
    span: Span,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), span }
    }

    /// Returns `::core::compile_error!("...");` at the place.
    pub(crate) fn compile_error(&self) -> TokenStream {
        let mut out = TokenStream::new();
        for part in ["core", "compile_error"] {
            out.extend(colons(self.span));
            out.extend([TokenTree::Ident(Ident::new(part, self.span))]);
        }
        let message: TokenTree = Literal::string(&self.message).into();
        let mut arguments = Group::new(Delimiter::Parenthesis, message.into());
        arguments.set_span(self.span);
        for token in [punct('!', self.span), arguments.into(), punct(';', self.span)] {
            out.extend([token]);
        }
        // Every token gets the place.
        out.into_iter()
            .map(|mut token| {
                token.set_span(self.span);
                token
            })
            .collect()
    }
}

fn punct(c: char, span: Span) -> TokenTree {
    let mut punct = Punct::new(c, Spacing::Alone);
    punct.set_span(span);
    punct.into()
}

fn colons(span: Span) -> [TokenTree; 2] {
    let mut first = Punct::new(':', Spacing::Joint);
    first.set_span(span);
    [first.into(), punct(':', span)]
}
