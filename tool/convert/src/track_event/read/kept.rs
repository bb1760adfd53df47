//! Texts that the reader keeps: a trace with one long name takes no memory of its size.

use hairline_formats::truncate_utf8;

use crate::Report;

/// The limit for the texts of tracks and source locations, which the reader keeps, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// Returns the part of a text that is kept.
#[inline]
pub(super) fn kept<'t>(text: &'t str, report: &mut Report) -> &'t str {
    if text.len() > MOST_TEXT {
        report.add("texts of tracks and source locations longer than 1 MiB, cut");
    }
    truncate_utf8(text, MOST_TEXT)
}
