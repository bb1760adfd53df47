//! The command `hairline`, for the tests of the whole: a test finds the programs of its own package only.

fn main() -> std::process::ExitCode {
    hairline_cli::main()
}
