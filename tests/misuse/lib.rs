//! Programs that use the macros wrongly do not compile, and the compiler's message says what to write.

#[cfg(test)]
mod tests {
    #[test]
    fn misuse_does_not_compile_and_says_why() {
        let cases = trybuild::TestCases::new();
        cases.pass("pass/*.rs");
        cases.compile_fail("fail/*.rs");
    }
}
