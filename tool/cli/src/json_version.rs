//! The version of what commands print with `--json`: docs/guide/json.md has the keys.

/// Grows when a key goes or means something else.
pub(crate) const JSON_VERSION: u32 = 1;
