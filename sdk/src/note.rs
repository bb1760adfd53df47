//! A note in each program with this crate: the crate's version, and whether it has the feature `enable`.
//! `hairline doctor` reads the note, also of a program in which the macros compile to nothing.
//!
//! It is a note of ELF, because linkers keep notes though nothing refers to them, and `strip` keeps them too.

#![allow(unsafe_code)] // names a section

/// The note's text. `doctor` looks for the last word.
const TEXT: &str = if cfg!(feature = "enable") {
    concat!(env!("CARGO_PKG_VERSION"), " enabled")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " disabled")
};

/// A note as the ELF specification has it. The linker aligns the next one of the section to 4 bytes.
#[repr(C)]
struct Note {
    name_len: u32,
    text_len: u32,
    kind: u32,
    name: [u8; 12],
    text: [u8; TEXT.len()],
}

#[used]
// SAFETY: the section holds notes, and this is one.
#[unsafe(link_section = ".note.hairline")]
static NOTE: Note = Note {
    name_len: 9,
    text_len: TEXT.len() as u32,
    kind: 1,
    name: *b"Hairline\0\0\0\0",
    text: {
        let mut text = [0; TEXT.len()];
        text.copy_from_slice(TEXT.as_bytes());
        text
    },
};
