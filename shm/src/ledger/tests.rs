//! Simulates a kill at each step of the drain: the region's file and the output together must have all
//! committed records at that moment.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::abi::RegionHeader;
use crate::recover::{DeadRegion, NextOutput, Part, RegionFile};
use crate::step::{hook, step};
use crate::{Backing, BackingChoice, ChunkInfo, Commit, Drain, Output, Region, RegionConfig, WriteChunk};

/// The context of a sequence.
fn context(sequence: u32) -> [u8; 2] {
    [0xff, sequence as u8]
}

fn record(sequence: u32, number: u8) -> [u8; 2] {
    [sequence as u8, number]
}

/// The bytes that the drain thread itself writes in between.
const BEAT: [u8; 2] = [0xfe, 0];

/// A file that writes its bytes in two halves, and fails if the flag is set.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>, bool);

impl Output for Sink {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.0.borrow_mut().extend_from_slice(first);
        step();
        if self.1 {
            let len = self.0.borrow().len() - first.len();
            self.0.borrow_mut().truncate(len);
            step();
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.borrow_mut().extend_from_slice(second);
        step();
        Ok(())
    }

    fn file_len(&self) -> Option<u64> {
        Some(self.0.borrow().len() as u64)
    }
}

/// A chunk writer: its sequence, its chunk, the index of its next chunk, its next record.
struct ChunkWriter {
    sequence: u32,
    chunk: Option<WriteChunk>,
    index: u32,
    next: u8,
    /// The commit before the last record of the chunk.
    before_last: Option<Commit>,
}

impl ChunkWriter {
    fn claim(&mut self, region: &Arc<Region>) {
        if self.chunk.is_none() {
            let info = ChunkInfo { sequence: self.sequence, index: self.index, ..ChunkInfo::default() };
            self.chunk = region.claim(info, &context(self.sequence));
            self.before_last = None;
            self.index += u32::from(self.chunk.is_some());
        }
    }

    fn append(&mut self, committed: &RefCell<[u8; 2]>) {
        if let Some(chunk) = &mut self.chunk
            && self.next < 250
        {
            self.before_last = Some(chunk.committed());
            assert!(chunk.append(&record(self.sequence, self.next), 1));
            self.next += 1;
            committed.borrow_mut()[self.sequence as usize - 1] = self.next;
        }
    }

    /// Takes the last record back. Returns whether that was possible.
    fn take_back(&mut self, committed: &RefCell<[u8; 2]>) -> bool {
        let (Some(chunk), Some(before)) = (&mut self.chunk, self.before_last.take()) else { return false };
        let set = |next| committed.borrow_mut()[self.sequence as usize - 1] = next;
        set(self.next - 1); // before the first step
        let is_back = chunk.retract(before);
        self.next -= u8::from(is_back);
        set(self.next);
        is_back
    }
}

/// Recovers the region after a kill. Returns the whole trace.
fn recovered(region: &Path, output: &[u8]) -> Vec<u8> {
    let mut image = std::fs::read(region).unwrap();
    let pid = offset_of!(RegionHeader, pid);
    image[pid..pid + 4].fill(0xff); // nobody's
    let copy = std::env::temp_dir().join(format!("hairline-ledger-{}", std::process::id()));
    std::fs::write(&copy, &image).unwrap();
    let dead = DeadRegion::open(&copy).unwrap();
    let whole = usize::try_from(dead.facts().output_len.unwrap()).unwrap();
    let mut all = output[..whole].to_vec();
    let mut fragments = dead.fragments(Part::NotInOutput).unwrap();
    assert_eq!(fragments.damaged(), 0);
    while let Some(fragment) = fragments.next().unwrap() {
        all.extend_from_slice(fragment.bytes);
    }
    dead.remove().unwrap();
    all
}

/// Checks that the trace has each record of both sequences once and in order, after the context of its
/// sequence.
fn check(all: &[u8], committed: [u8; 2]) {
    let (mut next, mut current) = ([0; 2], None);
    for pair in all.chunks_exact(2) {
        match *pair {
            [0xfe, _] => {} // BEAT
            [0xff, sequence] => current = Some(sequence),
            [sequence, number] => {
                assert_eq!(current, Some(sequence), "{all:?}");
                let next = &mut next[usize::from(sequence) - 1];
                assert_eq!(*next, number, "{all:?}");
                *next += 1;
            }
            _ => unreachable!(),
        }
    }
    assert_eq!(next, committed, "{all:?}");
}

/// A region whose output is a file, and the path of the region.
fn region_with_file() -> (Arc<Region>, PathBuf) {
    let config =
        RegionConfig { buffer_size: 4 * 4096, backing: BackingChoice::File, ..RegionConfig::small() };
    let region = Region::create(&config).unwrap();
    region.activate(Some(0));
    let Backing::File(path) = region.backing().clone() else { panic!("in a file") };
    (region, path.into())
}

#[test]
fn after_a_kill_at_any_step_file_and_ring_together_have_each_record_once() {
    let mut seed = 1_u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let kills = Rc::new(RefCell::new(0_u64));
    let mut taken_back = 0;
    for _ in 0..60 {
        let (region, path) = region_with_file();
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        let committed = Rc::new(RefCell::new([0_u8; 2]));
        let (output, expected, counted) = (sink.clone(), Rc::clone(&committed), Rc::clone(&kills));
        hook::set(Some(Box::new(move || {
            *counted.borrow_mut() += 1;
            check(&recovered(&path, &output.0.borrow()), *expected.borrow());
        })));
        let mut writers = [1, 2].map(|sequence| ChunkWriter {
            sequence,
            chunk: None,
            index: 0,
            next: 0,
            before_last: None,
        });
        for _ in 0..60 {
            let writer = &mut writers[random(2) as usize];
            match random(11) {
                0 | 1 => writer.claim(&region),
                2..=4 => writer.append(&committed),
                5 => drop(writer.chunk.take()),
                6 => drop(drain.pass(&mut sink)),
                8 | 9 => taken_back += u32::from(writer.take_back(&committed)),
                // This can come between a failed batch and its repetition.
                7 => drain.insert(&BEAT, &mut sink).unwrap(),
                _ => {
                    sink.1 = true;
                    drop(drain.pass(&mut sink));
                    sink.1 = false;
                }
            }
            step();
        }
        hook::set(None);
        let Ok(_) = drain.pass(&mut sink) else { panic!("it takes all") };
        check(&sink.0.borrow(), *committed.borrow());
    }
    assert!(*kills.borrow() > 5_000 && taken_back > 100, "{kills:?}, {taken_back}");
}

#[test]
fn the_region_says_whether_the_output_has_the_tail() {
    let (region, path) = region_with_file();
    let has_tail = || RegionFile::open(&path).unwrap().facts().has_tail;
    let mut drain = Drain::new(Arc::clone(&region));
    let mut sink = Sink::default();
    drain.insert(b"beat", &mut sink).unwrap();
    assert!(!has_tail());
    sink.1 = true;
    drain.insert_tail(b"tail", &mut sink).unwrap_err();
    drain.discard();
    assert!(!has_tail());
    sink.1 = false;
    drain.insert_tail(b"tail", &mut sink).unwrap();
    assert!(has_tail());
}

/// The facts about the output: the inode that must be at its path, and the next file, which can be there too.
type Believed = (Option<u64>, Option<NextOutput>);

fn believed(region: &Path) -> Believed {
    let region = RegionFile::open(region).unwrap();
    (region.facts().output_inode, region.facts().next_output)
}

/// Runs `change`. Returns the facts after each of its steps.
fn believed_while(region: &Path, change: impl FnOnce()) -> Vec<Believed> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let (seen, path) = (Rc::clone(&all), region.to_owned());
    hook::set(Some(Box::new(move || seen.borrow_mut().push(believed(&path)))));
    change();
    hook::set(None);
    all.take()
}

//  announced:  file 11 | batch | file 22 | failed: file 11 again
#[test]
fn a_kill_during_an_announcement_leaves_no_mixture_of_two_files() {
    let (region, path) = region_with_file();
    let (mut drain, mut sink) = (Drain::new(Arc::clone(&region)), Sink::default());
    let first = NextOutput { inode: 11, len: 100, number: 1 };
    let second = NextOutput { inode: 22, len: 200, number: 2 };
    let announce = |next: NextOutput| region.announce_output(next.inode, next.len, next.number);

    let steps = believed_while(&path, || announce(first));
    assert!(steps.iter().all(|now| [(None, None), (None, Some(first))].contains(now)), "{steps:?}");
    assert_eq!(steps.last(), Some(&(None, Some(first))));

    drain.insert(&BEAT, &mut sink).unwrap(); // the batch that goes into file 11
    assert_eq!(believed(&path), (Some(11), None));

    // Until file 22 is announced, file 11 is at the path.
    let steps = believed_while(&path, || announce(second));
    let allowed = [(Some(11), None), (None, None), (None, Some(second))];
    assert!(steps.iter().all(|now| allowed.contains(now)), "{steps:?}");
    assert_eq!(steps.last(), Some(&(None, Some(second))));

    // The rename of file 22 has failed.
    let again = NextOutput { number: 2, ..first };
    let steps = believed_while(&path, || announce(again));
    let allowed = [(None, Some(second)), (None, None), (None, Some(again))];
    assert!(steps.iter().all(|now| allowed.contains(now)), "{steps:?}");
    assert_eq!(steps.last(), Some(&(None, Some(again))));
}

#[test]
fn a_kill_before_the_header_is_complete_leaves_a_region_without_facts() {
    const CHUNKS: u64 = 37; // no other test makes a file of this length
    let config =
        RegionConfig { buffer_size: CHUNKS * 4096, backing: BackingChoice::File, ..RegionConfig::small() };
    let states = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&states);
    let own = format!("hairline-{}-", std::process::id());
    hook::set(Some(Box::new(move || {
        let files = std::fs::read_dir("/dev/shm").unwrap().flatten();
        let is_this = |file: &std::fs::DirEntry| {
            file.file_name().to_string_lossy().starts_with(&own)
                && file.metadata().is_ok_and(|metadata| metadata.len() / 4096 == CHUNKS + 1)
        };
        let file = files.into_iter().find(is_this).unwrap().path();
        let facts = RegionFile::open(&file).unwrap().facts().clone();
        seen.borrow_mut().push((facts.pid, facts.process_start != 0, facts.chunk_count));
    })));
    let region = Region::create(&config).unwrap();
    hook::set(None);
    let (pid, all) = (std::process::id(), region.chunk_count());
    assert_eq!(*states.borrow(), [(pid, false, 0), (pid, true, all)], "first only its name, then all facts");
}
