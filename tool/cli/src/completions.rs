//! `hairline completions` and `hairline man`: generated from the command line definition.

use std::io;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_mangen::Man;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{failed, put, written};

/// Prints the completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline completions bash > ~/.local/share/bash-completion/completions/hairline
  hairline completions zsh > ~/.zfunc/_hairline
  hairline completions fish > ~/.config/fish/completions/hairline.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

/// Writes the manual pages.
///
/// With a directory, writes one page for each command. Without one, prints the page of `hairline`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline man | man -l -
  hairline man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// An existing directory.
    directory: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, mut command: clap::Command) -> Outcome {
    let mut all = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "hairline", &mut all);
    written(put(&all), "stdout")
}

pub(crate) fn run_man(arguments: &ManArguments, command: clap::Command) -> Outcome {
    match &arguments.directory {
        Some(directory) => run_pages(command, directory),
        None => {
            let mut page = Vec::new();
            let made = Man::new(command).render(&mut page);
            written(made.and_then(|()| put(&page)), "stdout")
        }
    }
}

/// Writes one page for each command. clap_mangen's own function would follow a link in place of a page.
fn run_pages(command: clap::Command, directory: &Path) -> Outcome {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = vec![command];
    while let Some(command) = pages.pop() {
        pages.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let page = Man::new(command);
        let path = directory.join(page.get_filename());
        if let Err(e) = write_page(&page, &path) {
            return failed(format_args!("{}: {e}", path.display()));
        }
    }
    Outcome::Done
}

fn write_page(page: &Man, path: &Path) -> io::Result<()> {
    let mut output = Output::create(path, &[])?;
    page.render(&mut output)?;
    output.keep()
}
