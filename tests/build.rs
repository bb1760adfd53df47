//! Turns the Rust snippets of README.md and docs/guide into modules that `src/bin/snippets.rs` includes.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

#[path = "src/pages.rs"]
#[allow(dead_code, unreachable_pub)] // the library has the rest
mod pages;

use pages::{Block, Snippet};

/// The imports that each snippet has in front of it. Its own imports shadow them.
const IMPORTS: &str = "use hairline::*; use std::{thread, time::Duration};";

fn main() {
    println!("cargo::rerun-if-changed={}", pages::root().join("README.md").display());
    println!("cargo::rerun-if-changed={}", pages::guide().display());
    println!("cargo::rerun-if-changed=src/pages.rs");
    let (mut modules, mut runs) = (String::new(), String::new());
    let mut number = 0;
    for page in pages::all() {
        for block in &page.blocks {
            let Block::Snippet(snippet) = block else { continue };
            write_module(&mut modules, number, &page.name, snippet);
            write!(runs, "snippet_{number}::run, ").expect("a String takes all");
            number += 1;
        }
    }
    let source = format!("{modules}\nconst SNIPPETS: [fn() -> Done; {number}] = [{runs}];\n");
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&folder).join("snippets.rs"), source).expect("the folder OUT_DIR can be written to");
}

fn write_module(out: &mut String, number: usize, page: &str, snippet: &Snippet) {
    let Snippet { line, source, .. } = snippet;
    let body = if snippet.is_program() {
        format!("{source}\npub(super) fn run() -> super::Done {{ super::Ends::done(main()) }}")
    } else {
        format!("pub(super) fn run() -> super::Done {{\n{source}\nOk(()) }}")
    };
    let allow = "#[allow(unused, clippy::all)]";
    writeln!(out, "// {page}:{line}\n{allow}\nmod snippet_{number} {{ {IMPORTS}\n{body}\n}}")
        .expect("a String takes all");
}
