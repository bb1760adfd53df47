//! The environment variables that Hairline reads.

use crate::error::Error;
use crate::on::base::platform::process;

/// Returns the value of an environment variable. `None` if it is not set, is empty, or was set by a caller
/// with fewer rights. This crate reads all its variables here.
pub(crate) fn read(name: &str) -> Option<std::ffi::OsString> {
    if process::is_privileged() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the value of a variable that must be UTF-8.
pub(crate) fn variable(name: &'static str) -> Result<Option<String>, Error> {
    let Some(value) = read(name) else { return Ok(None) };
    let not_utf8 = |v: std::ffi::OsString| Error::Value {
        what: name,
        value: v.to_string_lossy().into_owned(),
        expected: "use UTF-8",
    };
    value.into_string().map(Some).map_err(not_utf8)
}

/// Returns the value whose name in `known` is `value`, in any case of letters.
pub(crate) fn one_of<T: Copy>(
    what: &'static str,
    value: String,
    known: &[(&str, T)],
    expected: &'static str,
) -> Result<T, Error> {
    let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&value));
    found.map(|(_, t)| *t).ok_or(Error::Value { what, value, expected })
}
