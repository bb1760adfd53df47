//! Processes of the command that run, but have recorded nothing yet: daemons before their first event.

use std::path::Path;

/// The processes of this user whose environment names the directory of the parts, with their names. None
/// where the system has no `/proc`.
pub(super) fn processes(directory: &Path) -> Vec<(u32, String)> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let directory = directory.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for process in all.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Fails for processes of other users. Of a process that has ended it is empty.
        let Ok(environment) = std::fs::read(process.path().join("environ")) else { continue };
        let is_of = |variable: &[u8]| {
            let value = variable.strip_prefix(b"HAIRLINE=");
            value.is_some_and(|value| value.starts_with(directory))
        };
        if environment.split(|byte| *byte == 0).any(is_of) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim_end().to_owned()));
        }
    }
    found.sort();
    found
}
