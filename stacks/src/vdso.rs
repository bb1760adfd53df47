//! The kernel's own library, which is in the memory of each process and in no file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The path of its mappings.
pub(crate) const NAME: &str = "[vdso]";

/// More than it ever has.
const MOST: u64 = 1 << 20;

/// Reads this process's: the kernel gives all processes the same one.
pub(crate) fn image() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(NAME))?;
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start).filter(|size| *size <= MOST)?;
    let mut image = vec![0; usize::try_from(size).ok()?];
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    memory.read_exact(&mut image).ok()?;
    Some(image)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_one_and_it_is_an_elf_file() {
        assert!(super::image().unwrap().starts_with(b"\x7fELF"));
    }
}
