//! Links, and paths in backticks, of all documents.

use std::fs;
use std::path::{Path, PathBuf};

use hairline_tests::pages;

/// The folders at the root of the repository by which a path in backticks is known.
const FOLDERS: [&str; 13] = [
    "shm", "perf", "sampler", "stacks", "formats", "sdk", "macros", "tool", "examples", "benches", "tests",
    "ci", "docs",
];

/// All documents: those at the root, and those below docs.
fn documents() -> Vec<PathBuf> {
    let mut folders = vec![pages::root().join("docs")];
    let mut found: Vec<_> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| pages::root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of documents") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page that a link leads to");
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|text| text.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// The texts between two delimiters, on one line each.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.lines().flat_map(move |line| {
        line.split(open).skip(1).filter_map(move |rest| Some(rest.split_once(close)?.0))
    })
}

/// What is wrong with a link of a document.
fn wrong_link(document: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { document.to_owned() } else { document.with_file_name(path) };
    if !target.exists() {
        return Some(format!("{}: {link} is not there", document.display()));
    }
    let is_heading = anchor.is_none_or(|anchor| anchors(&target).iter().any(|a| a == anchor));
    (!is_heading).then(|| format!("{}: {link} has no such heading", document.display()))
}

#[test]
fn every_link_and_every_path_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let links = between(&text, "](", ')').filter(|link| !link.contains("://"));
        wrong.extend(links.filter_map(|link| wrong_link(&document, link)));
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let path = path.split([' ', ':']).next().unwrap_or_default();
            let folder = path.split_once('/').map(|(folder, _)| folder);
            if folder.is_some_and(|folder| FOLDERS.contains(&folder)) && !pages::root().join(path).exists() {
                wrong.push(format!("{}: {path} is not there", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
