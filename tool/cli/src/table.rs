//! Tables for people, with columns as wide as their content appears on a terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use unicode_width::UnicodeWidthStr;

/// Longer names are cut, because the numbers beside them are more important.
pub(crate) const WIDEST: usize = 60;
/// The limit for characters. Some have no width of their own.
const LONGEST: usize = 4 * WIDEST;

/// A table.
pub(crate) struct Table {
    /// The number of text columns, which are first and left-aligned. The others are right-aligned.
    texts: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table. The first `texts` titles are those of text columns.
    pub(crate) fn new(texts: usize, titles: &[&str]) -> Self {
        Self { texts, rows: vec![titles.iter().map(|&title| title.to_owned()).collect()] }
    }

    pub(crate) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row.iter().map(|cell| plain(cell)).collect());
    }

    /// Adds a row whose last cell is a command, which is worth nothing if it is cut.
    pub(crate) fn add_with_command(&mut self, mut row: Vec<String>, command: &str) {
        row.iter_mut().for_each(|cell| *cell = plain(cell));
        row.push(command.chars().map(harmless).collect());
        self.rows.push(row);
    }

    /// The lines of the table, with bold titles if `in_colour`.
    pub(crate) fn lines(&self, in_colour: bool) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            self.rows
                .iter()
                .filter_map(|row: &Vec<String>| row.get(column))
                .map(|cell: &String| cell.width())
                .max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for (n, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - cell.width());
                let gap = if column > 0 { "  " } else { "" };
                let (before, after) =
                    if column < self.texts { ("", space) } else { (space.as_str(), String::new()) };
                let _ = write!(line, "{gap}{before}{cell}{after}");
            }
            let line = line.trim_end();
            let _ = if n == 0 && in_colour {
                writeln!(out, "\u{1b}[1m{line}\u{1b}[0m")
            } else {
                writeln!(out, "{line}")
            };
        }
        out
    }
}

/// Whether a terminal would obey a character, or show the text around it as another one: control characters,
/// those that change the direction of the text, and those that nobody sees.
pub(crate) fn is_harmful(c: char) -> bool {
    let is_invisible =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    c.is_control() || is_invisible || matches!(c, '\u{61c}' | '\u{feff}')
}

/// Replaces a [harmful](is_harmful) character.
pub(crate) fn harmless(c: char) -> char {
    if is_harmful(c) { '\u{fffd}' } else { c }
}

/// Whether a text may be the path of a file.
pub(crate) fn is_path(text: &str) -> bool {
    text.contains('/') && !text.contains(char::is_whitespace)
}

/// Cuts a path to so many characters at its begin: its end names the file.
pub(crate) fn cut_path(path: &str, most: usize) -> String {
    match path.chars().count().checked_sub(most) {
        Some(more @ 1..) => std::iter::once('\u{2026}').chain(path.chars().skip(more + 1)).collect(),
        _ => path.to_owned(),
    }
}

/// Prepares a text from a trace for a terminal: one line, no harmful characters, limited width.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    // Only the first characters are measured: a trace may have names of many megabytes.
    let mut rest = text.chars().map(harmless);
    plain.extend(rest.by_ref().take(LONGEST));
    if rest.next().is_none() && plain.width() <= WIDEST {
        return plain;
    }
    while plain.width() >= WIDEST {
        plain.pop();
    }
    plain.push('\u{2026}');
    plain
}

/// Whether stdout supports colours, and the user did not turn them off (<https://no-color.org>).
pub(crate) fn in_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal()
        && !is_set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_look() {
        let mut table = Table::new(1, &["name", "n"]);
        table.add(vec!["\u{8aad}\u{3080}".to_owned(), "1".to_owned()]);
        table.add(vec!["a".to_owned(), "100".to_owned()]);
        assert_eq!(table.lines(false), "name    n\n\u{8aad}\u{3080}    1\na     100\n");
        assert!(table.lines(true).starts_with("\u{1b}[1mname    n\u{1b}[0m\n"));
    }

    #[test]
    fn paths_are_cut_at_their_begin() {
        assert_eq!(cut_path("/src/main.rs", 8), "\u{2026}main.rs");
        assert_eq!(cut_path("/src/main.rs", 12), "/src/main.rs");
        assert_eq!(cut_path("/\u{e9}t\u{e9}/\u{e0}.rs", 5), "\u{2026}\u{e0}.rs");
        assert!(is_path("/a/b") && !is_path("a / b") && !is_path("main.rs"));
    }

    #[test]
    fn names_cannot_steer_the_terminal_or_push_the_numbers_away() {
        assert_eq!(plain("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200b}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        assert_eq!(plain(&"x".repeat(100)).width(), WIDEST);
        // One cell on the terminal but many characters, or no cell at all.
        assert!(plain(&"\u{301}".repeat(100)).width() <= WIDEST);
        assert!(plain(&"\u{301}".repeat(1000)).chars().count() <= LONGEST + 1);
        assert_eq!(plain(&"x".repeat(1 << 22)).width(), WIDEST, "at once, though it is long");
    }
}
