//! What a running process has: its mappings and the names of its threads, from `/proc`.

use hairline_perf::Map;

use crate::file::Inode;

/// A mapping with code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) inode: Inode,
    pub(crate) path: String,
}

pub(crate) fn mappings(pid: u32) -> Vec<Present> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().filter_map(parse).collect()
}

/// Parses a line: `start-end r-xp offset device inode path`.
fn parse(line: &str) -> Option<Present> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        field
    };
    let (range, permissions, offset) = (field(), field(), field());
    let (device, number) = (field(), field().parse().ok()?);
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (major, minor) = device.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = Inode { device, number };
    let path = rest.trim_start();
    let path = if path.is_empty() { "//anon" } else { path };
    let is_code = permissions.as_bytes().get(2) == Some(&b'x');
    let (start, end, offset) = (hex(start)?, hex(end)?, hex(offset)?);
    let present = Present { start, end, offset, inode, path: path.to_owned() };
    is_code.then_some(present)
}

pub(crate) fn names(pid: u32) -> Map<u32, String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let name = |task: std::fs::DirEntry| {
        let tid = task.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read(task.path().join("comm")).ok()?;
        Some((tid, String::from_utf8_lossy(&name).trim_end().to_owned()))
    };
    tasks.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_with_code_is_parsed_with_the_spaces_of_its_path() {
        let line = "7f00-7f10 r-xp 0000a000 08:01 123                        /a b/lib.so (deleted)";
        let path = "/a b/lib.so (deleted)".to_owned();
        let inode = Inode { device: (8, 1), number: 123 };
        assert_eq!(parse(line), Some(Present { start: 0x7f00, end: 0x7f10, offset: 0xa000, inode, path }));
        assert_eq!(parse("7f00-7f10 r-xp 00000000 00:00 0").unwrap().path, "//anon");
        assert_eq!(parse("7f00-7f10 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(parse("nonsense"), None);
    }
}
