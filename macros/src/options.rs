//! The options of `#[trace(..)]`.

use proc_macro::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};

use crate::error::Error;
use crate::function::Function;
use crate::tokens::{fill_in, split, words};

/// The attribute's options.
#[derive(Default)]
pub(crate) struct Options {
    category: Option<TokenStream>,
    name: Option<TokenStream>,
    krate: Option<TokenStream>,
    args: Args,
    skip: Vec<Ident>,
}

#[derive(Default)]
enum Args {
    #[default]
    None,
    /// All parameters.
    All,
    Given(TokenStream),
}

const EXPECTED: &str =
    "#[trace] takes a category, `name = \"..\"`, `args(..)`, `args`, `skip(..)`, `crate = path`";

impl Options {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self, Error> {
        let mut options = Self::default();
        for (n, part) in split(attribute).into_iter().enumerate() {
            let span = part[0].span();
            match part.as_slice() {
                [TokenTree::Ident(key), TokenTree::Punct(equals), value @ ..] if equals.as_char() == '=' => {
                    options.set(key, value.iter().cloned().collect())?;
                }
                [TokenTree::Ident(key)] if key.to_string() == "args" => options.args = Args::All,
                [TokenTree::Ident(key), TokenTree::Group(group)]
                    if group.delimiter() == Delimiter::Parenthesis =>
                {
                    options.set_list(key, group)?;
                }
                _ if n == 0 => options.category = Some(part.into_iter().collect()),
                _ => return Err(Error::new(EXPECTED, span)),
            }
        }
        match (&options.args, options.skip.first()) {
            (Args::None, Some(skipped)) => Err(Error::new(
                "`skip(..)` goes with `args`, which records all other parameters: write `args, skip(..)`",
                skipped.span(),
            )),
            (Args::Given(_), Some(skipped)) => Err(Error::new(
                "`skip(..)` goes with `args` alone; `args(..)` already lists what is recorded",
                skipped.span(),
            )),
            _ => Ok(options),
        }
    }

    fn set(&mut self, key: &Ident, value: TokenStream) -> Result<(), Error> {
        if value.is_empty() {
            return Err(Error::new(format!("`{key} =` needs a value"), key.span()));
        }
        match key.to_string().as_str() {
            "name" => self.name = Some(value),
            "crate" => self.krate = Some(value),
            _ => return Err(Error::new(EXPECTED, key.span())),
        }
        Ok(())
    }

    fn set_list(&mut self, key: &Ident, group: &Group) -> Result<(), Error> {
        match key.to_string().as_str() {
            "args" => self.args = Args::Given(group.stream()),
            "skip" => {
                for part in split(group.stream()) {
                    match part.as_slice() {
                        [TokenTree::Ident(name)] => self.skip.push(name.clone()),
                        _ => return Err(Error::new("`skip(..)` takes names of parameters", part[0].span())),
                    }
                }
            }
            _ => return Err(Error::new(EXPECTED, key.span())),
        }
        Ok(())
    }

    pub(crate) fn krate(&self) -> TokenStream {
        self.krate.clone().unwrap_or_else(|| words("::hairline"))
    }

    pub(crate) fn category(&self, krate: &TokenStream) -> TokenStream {
        self.category.clone().unwrap_or_else(|| {
            let path = [("__crate", krate.clone())];
            fill_in(words("__crate::__private::module_path!()"), &path)
        })
    }

    pub(crate) fn name(&self, function: &Function) -> TokenStream {
        self.name.clone().unwrap_or_else(|| {
            let name = function.name.to_string();
            TokenTree::Literal(Literal::string(name.trim_start_matches("r#"))).into()
        })
    }

    /// Returns the arguments for `scope!`: `, key = value ...`.
    pub(crate) fn arguments(&self, function: &Function) -> Result<TokenStream, Error> {
        for skipped in &self.skip {
            if !function.parameters.iter().any(|p| p.to_string() == skipped.to_string()) {
                return Err(Error::new(format!("there is no parameter `{skipped}` to skip"), skipped.span()));
            }
        }
        let mut out = TokenStream::new();
        match &self.args {
            Args::None => {}
            Args::Given(tokens) => out.extend(words(",").into_iter().chain(tokens.clone())),
            Args::All => {
                let skipped = |p: &&Ident| self.skip.iter().any(|s| s.to_string() == p.to_string());
                for parameter in function.parameters.iter().filter(|p| !skipped(p)) {
                    out.extend(words(",").into_iter().chain([TokenTree::Ident(parameter.clone())]));
                }
            }
        }
        Ok(out)
    }
}
