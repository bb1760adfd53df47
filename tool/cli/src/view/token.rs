//! The secret in the link.

use std::fmt;
use std::io;

/// 128 random bits from the system as text. Only the owner of the link knows them.
#[derive(Debug)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        Ok(Self(format!("{:032x}", u128::from_ne_bytes(random))))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_comes_twice() {
        let token = || Token::new().expect("random").0;
        assert!(token() != token() && token().len() == 32);
    }
}
