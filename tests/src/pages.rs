//! The pages whose snippets and commands the tests run: README.md and the guide.
//!
//! | on the page | what the tests do with it |
//! |---|---|
//! | a block of `rust` | compile it and run it in an empty folder |
//! | a block of `text` after the line "It prints:" | compare it with the output of the snippet above it |
//! | a block of `sql` | ask the judge about `trace.pftrace` of the snippet above it |
//! | a block of `text` after the line "It returns:" | compare it with the rows of the query above it |
//! | a block of `console` | run each line after `$ ` in the page's folder, compare the lines below it |
//!
//! Snippets have `use hairline::*` and other imports in front of them (`tests/build.rs`). A snippet that
//! starts no session itself is run with `HAIRLINE=trace.pftrace`. In a `console` block `hairline` is the
//! command and `./program` the last snippet above it that has a `main`.
//!
//! The build script includes this file, so it uses nothing but the standard library.

use std::fs;
use std::path::{Path, PathBuf};

/// The line that precedes the output of a snippet.
const PRINTS: &str = "It prints:";
/// The line that precedes the rows of a query.
const RETURNS: &str = "It returns:";

/// A page of the documentation.
#[derive(Debug)]
pub struct Page {
    /// Its path from the root of the repository.
    pub name: String,
    /// What the tests run, in the order of the page.
    pub blocks: Vec<Block>,
}

/// A fenced block that the tests run.
#[derive(Debug)]
pub enum Block {
    /// A block of `rust`.
    Snippet(Snippet),
    /// A block of `sql`.
    Query(Query),
    /// A block of `console`, without the fences.
    Console {
        /// The line of the page on which it begins.
        line: usize,
        /// Commands and what they print.
        text: String,
    },
}

/// A snippet of Rust.
#[derive(Debug)]
pub struct Snippet {
    /// The line of the page on which it begins.
    pub line: usize,
    /// Its source.
    pub source: String,
    /// Its output, if the page shows it.
    pub prints: Option<String>,
}

/// A question to the judge.
#[derive(Debug)]
pub struct Query {
    /// The line of the page on which it begins.
    pub line: usize,
    /// The SQL.
    pub sql: String,
    /// Its rows, if the page shows them: cells between bars, a row a line.
    pub returns: Option<String>,
}

impl Snippet {
    /// Whether it is a whole program, and not statements only.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.source.lines().any(|line| line.starts_with("fn main(") || line.starts_with("async fn main("))
    }
}

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where the pages of the guide are.
#[must_use]
pub fn guide() -> PathBuf {
    root().join("docs").join("guide")
}

/// All pages: README.md first, then the guide in the order of its file names.
///
/// # Panics
/// If a page cannot be read.
#[must_use]
pub fn all() -> Vec<Page> {
    let guide = fs::read_dir(guide()).expect("the folder docs/guide");
    let mut names: Vec<_> = guide.map(|entry| entry.expect("an entry of docs/guide").file_name()).collect();
    names.sort();
    let guide = names.iter().map(|name| format!("docs/guide/{}", name.to_string_lossy()));
    let pages = std::iter::once("README.md".to_owned()).chain(guide);
    pages.filter(|name| name.ends_with(".md")).map(read).collect()
}

fn read(name: String) -> Page {
    let text = fs::read_to_string(root().join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let inside: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            add(&mut blocks, kind, at + 1, inside.join("\n"), before);
        } else if !line.is_empty() {
            before = line;
        }
    }
    Page { name, blocks }
}

fn add(blocks: &mut Vec<Block>, kind: &str, line: usize, text: String, before: &str) {
    match (kind, blocks.last_mut()) {
        ("rust", _) => blocks.push(Block::Snippet(Snippet { line, source: text, prints: None })),
        ("console", _) => blocks.push(Block::Console { line, text }),
        ("sql", _) => blocks.push(Block::Query(Query { line, sql: text, returns: None })),
        ("text", Some(Block::Snippet(snippet))) if before == PRINTS => snippet.prints = Some(text),
        ("text", Some(Block::Query(query))) if before == RETURNS => query.returns = Some(text),
        _ => {}
    }
}
