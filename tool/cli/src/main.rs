//! `hairline`: the command.

fn main() -> std::process::ExitCode {
    hairline_cli::main()
}
