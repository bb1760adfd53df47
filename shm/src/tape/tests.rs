#![cfg(unix)]

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use super::*;
use crate::abi::RegionHeader;
use crate::recover::RegionFile;
use crate::step::hook;
use crate::{Backing, BackingChoice, RegionConfig};

/// A region in a file, with a tape of this many bytes.
fn region(tape: u32) -> (Arc<Region>, String) {
    let config =
        RegionConfig { tapes: [tape, 4096, 0], backing: BackingChoice::File, ..RegionConfig::small() };
    let region = Region::create(&config).expect("a region");
    region.activate(None);
    let Backing::File(path) = region.backing() else { panic!("a file") };
    let path = path.clone();
    (region, path)
}

/// The entry with this number: of 0 to 500 bytes, each with the same one.
fn entry(number: u64) -> Vec<u8> {
    let length = (number * 37 % 493) as usize;
    let mut entry = vec![number as u8; 8 + length];
    entry[..8].copy_from_slice(&number.to_le_bytes());
    entry
}

fn numbers(tape: &[u8]) -> Vec<u64> {
    let number = |of: &[u8]| u64::from_le_bytes(*of.first_chunk().expect("a number"));
    tape_entries(tape)
        .map(|of| {
            assert_eq!(of, entry(number(of)), "a whole entry");
            number(of)
        })
        .collect()
}

#[cfg(feature = "recovery")]
fn from_outside(path: &str) -> Vec<u8> {
    RegionFile::open(path.as_ref()).expect("a region").glance().expect("a copy").tape(0).to_owned()
}

/// As after a kill at each step: the last entries are there, without a gap, and whole.
#[cfg(feature = "recovery")]
#[test]
fn at_each_moment_the_last_entries_are_whole() {
    let (region, path) = region(8192);
    let mut tape = Tape::of(&region, 0).expect("the tape");
    let appended = Rc::new(RefCell::new(0));
    let (now, at) = (Rc::clone(&appended), path.clone());
    hook::set(Some(Box::new(move || {
        let (there, next) = (numbers(&from_outside(&at)), *now.borrow());
        let first = there.first().copied().unwrap_or(next);
        let last = first + there.len() as u64;
        assert_eq!(there, (first..last).collect::<Vec<_>>());
        assert!(last == next || last == next + 1, "{last} of {next}");
        assert!(next < 20 || there.len() >= 12, "{} of {next}", there.len());
    })));
    for number in 0..300 {
        assert!(tape.append(&entry(number)));
        *appended.borrow_mut() += 1;
        assert_eq!(numbers(&tape.read(0)).last(), Some(&number));
    }
    hook::set(None);
    let kept = numbers(&tape.read(0));
    region.forget_tape(0, tape.end());
    assert!(tape.read(0).is_empty() && from_outside(&path).is_empty() && kept.len() > 12);
    assert!(tape.append(&entry(300)));
    assert_eq!((numbers(&tape.read(0)), numbers(&from_outside(&path))), (vec![300], vec![300]));
}

#[test]
fn a_tape_grows_step_by_step_and_its_region_gives_it_once() {
    let (region, path) = region(4 << 20);
    let used = || {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(&path).expect("the file").blocks() * 512
    };
    let before = used();
    let mut tape = Tape::of(&region, 0).expect("the tape");
    assert!(Tape::of(&region, 0).is_none());
    for number in 0..100 {
        assert!(tape.append(&entry(number)));
    }
    let grown = used() - before;
    assert!((1..=512 << 10).contains(&grown) || before > 4 << 20, "{grown}"); // an old kernel allocates all
    assert_eq!(numbers(&tape.read(0)).len(), 100);
    assert!(Tape::of(&Region::create(&RegionConfig::small()).expect("a region"), 0).is_none());
}

/// Another process may write anything into the region.
#[test]
fn a_tape_that_another_process_has_written_is_read_without_harm() {
    let words: [[u64; 4]; 7] = [
        [u64::MAX; 4],
        [0, u64::MAX, 0, u64::MAX],
        [4096, 4096, u64::MAX, 5],
        [4096, 4096, 5, u64::MAX],
        [4096, 0, 0, 4096],
        [u64::MAX - 4095, 4096, 0, 4096],
        [4096, 1 << 40, 0, 1 << 39],
    ];
    for [offset, len, begin, end] in words {
        let (region, path) = region(8192);
        let mut tape = Tape::of(&region, 0).expect("the tape");
        (0..100).for_each(|number| assert!(tape.append(&entry(number))));
        let file: File = OpenOptions::new().write(true).open(&path).expect("the file");
        let fields = [
            (offset_of!(RegionHeader, tape_offset), offset),
            (offset_of!(RegionHeader, tape_len), len),
            (offset_of!(RegionHeader, tape_begin), begin),
            (offset_of!(RegionHeader, tape_end), end),
        ];
        for (at, value) in fields {
            file.write_all_at(&value.to_le_bytes(), at as u64).expect("written");
        }
        #[cfg(feature = "recovery")]
        tape_entries(&from_outside(&path)).for_each(drop);
        let bytes = std::fs::metadata(&path).expect("the file").len();
        file.write_all_at(&[0xff; 8192], bytes - 8192).expect("written");
        assert!(RegionFile::open(path.as_ref()).is_ok());
        for number in 0..100 {
            assert!(tape.append(&entry(number)));
            tape_entries(&tape.read(0)).for_each(drop);
        }
    }
}
