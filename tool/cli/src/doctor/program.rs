//! The file of a program: whether Hairline is in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Object, ObjectSection};

use crate::doctor::finding::Finding;
use crate::input::open_file;
use crate::platform;
use crate::text::shown;

const WHAT: &str = "program";

/// The section of the notes, and the most bytes of it that are read: a note has some 40.
const SECTION: &str = ".note.hairline";
const MOST: u64 = 4 << 10;

/// The owner in a note of Hairline.
const OWNER: &[u8] = b"Hairline\0";

/// What a program contains.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// Hairline, in this version.
    Enabled(String),
    /// Hairline without the feature `enable`.
    Disabled(String),
    /// No Hairline.
    Nothing,
    /// It is no ELF file.
    Unknown,
}

/// The program of a command: the file, and whether events can come from it.
pub(super) struct Program {
    path: PathBuf,
    content: Content,
    gives_rights: bool,
}

impl Program {
    /// The program that a command starts.
    pub(super) fn of_command(name: &OsStr) -> io::Result<Self> {
        let path = find(name).ok_or(io::ErrorKind::NotFound)?;
        Self::at(&path, path.clone())
    }

    /// The program of a running process, also if its file was replaced.
    pub(super) fn of_process(pid: u32) -> io::Result<Self> {
        let link = format!("/proc/{pid}/exe");
        let path = std::fs::read_link(&link)?;
        Self::at(Path::new(&link), path)
    }

    fn at(file: &Path, path: PathBuf) -> io::Result<Self> {
        let (file, _) = open_file(file)?;
        let gives_rights = platform::gives_rights(&file);
        Ok(Self { path, content: content(file), gives_rights })
    }

    /// The findings. Without Hairline in it, a program that `has_recorded` has started others, or has loaded
    /// a library with Hairline.
    pub(super) fn findings(&self, has_recorded: bool) -> Vec<Finding> {
        let at = shown(&self.path);
        let mut findings = Vec::new();
        let own = env!("CARGO_PKG_VERSION");
        findings.push(match &self.content {
            Content::Enabled(version) if version == own => {
                Finding::good(WHAT, format!("{at} has Hairline {version}"))
            }
            Content::Enabled(version) => Finding::remark(
                WHAT,
                format!("{at} has Hairline {version}, and this command is of {own}"),
                "a command of the program's version reads all that it leaves",
            ),
            Content::Disabled(version) if !has_recorded => Finding::wrong(
                WHAT,
                format!("{at} has Hairline {version} without the feature `enable`: its macros are nothing"),
                "build it with the feature, which is a default one",
            ),
            Content::Nothing if !has_recorded => Finding::wrong(
                WHAT,
                format!("{at} has no Hairline"),
                "build it with the crate `hairline` and its macros, or run the program that has them (libraries that \
                 it loads are not looked at)",
            ),
            Content::Disabled(_) | Content::Nothing => Finding::good(
                WHAT,
                format!("{at} has no Hairline that is enabled, but a process or a library of it records"),
            ),
            Content::Unknown => Finding::remark(
                WHAT,
                format!("{at} is no ELF file, so it is not known whether it has Hairline"),
                "a script has what it starts",
            ),
        });
        if self.gives_rights && !has_recorded {
            let found = format!("{at} runs with more rights than its caller (setuid or setgid)");
            let advice = "it reads no variable: run it as its owner, or start a session in its code";
            findings.push(Finding::wrong(WHAT, found, advice));
        }
        findings
    }
}

/// The file that a command's name means.
fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Reads the notes of a file, which may have any bytes.
fn content(file: File) -> Content {
    let cache = ReadCache::new(file);
    let Ok(elf) = object::File::parse(&cache) else { return Content::Unknown };
    let section = elf.section_by_name(SECTION).filter(|section| section.size() <= MOST);
    let notes = section.and_then(|section| section.data().ok()).unwrap_or_default();
    let texts = texts(notes, elf.is_little_endian());
    let of = |state: &str| texts.iter().find_map(|text| text.strip_suffix(state).map(str::to_owned));
    match (of(" enabled"), of(" disabled")) {
        (Some(version), _) => Content::Enabled(version),
        (None, Some(version)) => Content::Disabled(version),
        (None, None) => Content::Nothing,
    }
}

/// The texts of Hairline's notes. A program with two versions of the crate has two.
fn texts(mut notes: &[u8], is_little: bool) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((text, rest)) = next(notes, is_little) {
        texts.extend(text);
        notes = rest;
    }
    texts
}

/// The text of the first note, if Hairline wrote it, and the bytes after the note.
fn next(notes: &[u8], is_little: bool) -> Option<(Option<String>, &[u8])> {
    let number = |at: usize| {
        let bytes = notes.get(at..at + 4)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) } as usize)
    };
    let (owner_len, text_len) = (number(0)?, number(4)?);
    let rest = notes.get(12..)?;
    let owner = rest.get(..owner_len)?;
    let rest = rest.get(owner_len.checked_next_multiple_of(4)?..)?;
    let text = rest.get(..text_len)?;
    let rest = rest.get(text_len.checked_next_multiple_of(4)?..).unwrap_or_default();
    let text = (owner == OWNER).then(|| String::from_utf8_lossy(text).into_owned());
    Some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(owner: &[u8], text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [owner.len(), text.len(), 1] {
            bytes.extend(u32::try_from(number).expect("small").to_le_bytes());
        }
        for part in [owner, text] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn each_note_of_hairline_is_found_among_others() {
        let notes = [note(OWNER, b"0.1.0 enabled"), note(b"GNU\0", b"x"), note(OWNER, b"9.2.0 disabled")];
        assert_eq!(texts(&notes.concat(), true), ["0.1.0 enabled", "9.2.0 disabled"]);
    }

    #[test]
    fn notes_that_are_cut_or_lie_about_their_length_are_passed_over() {
        let whole = note(OWNER, b"0.1.0 enabled");
        for cut in 0..whole.len() {
            assert!(texts(&whole[..cut], true).len() <= 1);
        }
        for at in [0, 4] {
            let mut wrong = whole.clone();
            wrong[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            assert!(texts(&wrong, true).is_empty());
        }
    }
}
