//! `hairline completions` and `hairline man`: what a shell and `man` want to know, made of the arguments themselves.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;
use crate::text::{put, written};

/// Writes the completions of a shell to stdout.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline completions bash > ~/.local/share/bash-completion/completions/hairline
  hairline completions zsh > ~/.zfunc/_hairline
  hairline completions fish > ~/.config/fish/completions/hairline.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

/// Writes the manual's pages: to a directory, one for each command, or the first one to stdout.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline man | man -l -
  hairline man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// A directory that is there.
    directory: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut all = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "hairline", &mut all);
    written(put(&all), "stdout")
}

pub(crate) fn run_man(arguments: &ManArguments) -> Outcome {
    let command = crate::Arguments::command();
    match &arguments.directory {
        Some(directory) => written(clap_mangen::generate_to(command, directory), directory.display()),
        None => {
            let mut page = Vec::new();
            let made = clap_mangen::Man::new(command).render(&mut page);
            written(made.and_then(|()| put(&page)), "stdout")
        }
    }
}
