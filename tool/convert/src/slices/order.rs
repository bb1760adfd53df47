//! Sorts all events of a trace by time, in bounded memory: sorted runs go to a temporary file.
//!
//! Events of equal time stay in order of arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::TrackId;
use crate::slices::entry::{Change, Entry};
use crate::slices::keys::Key;

/// The number of events in a run; 40 MiB.
const RUN: usize = 1 << 20;
/// The number of events that are read at once from a run; 36 KiB.
const BLOCK: usize = 1 << 10;
/// The size of an event in the file.
const SIZE: usize = 36;

/// The events of a trace.
#[derive(Debug)]
pub(super) struct Order {
    create: fn() -> io::Result<File>,
    waiting: Vec<Entry>,
    file: Option<File>,
    /// The numbers of events in the file, for each run.
    runs: Vec<u64>,
    failed: Option<io::Error>,
}

/// The events in order.
pub(super) struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    /// The time of each run's next event, the earliest first.
    next: BinaryHeap<Reverse<(i64, usize)>>,
}

struct Run {
    /// The place of the next block in the file.
    at: u64,
    left: u64,
    block: VecDeque<Entry>,
}

impl Order {
    pub(super) fn new(create: fn() -> io::Result<File>) -> Self {
        Self { create, waiting: Vec::new(), file: None, runs: Vec::new(), failed: None }
    }

    /// Adds an event. After a failure the rest is dropped; [`sorted`](Self::sorted) returns the error.
    pub(super) fn push(&mut self, entry: Entry) {
        self.waiting.push(entry);
        if self.waiting.len() >= RUN {
            if self.failed.is_none() {
                self.failed = self.spill().err();
            }
            self.waiting.clear();
        }
    }

    /// Writes a run.
    fn spill(&mut self) -> io::Result<()> {
        self.waiting.sort_by_key(|entry| entry.time);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert((self.create)()?),
        };
        let mut bytes = Vec::with_capacity(BLOCK * SIZE);
        for block in self.waiting.chunks(BLOCK) {
            bytes.clear();
            block.iter().for_each(|entry| bytes.extend_from_slice(&encode(entry)));
            file.write_all(&bytes)?;
        }
        self.runs.push(self.waiting.len() as u64);
        Ok(())
    }

    /// Ends the input.
    pub(super) fn sorted(mut self) -> io::Result<Sorted> {
        if let Some(e) = self.failed {
            return Err(e);
        }
        self.waiting.sort_by_key(|entry| entry.time);
        let mut at = 0;
        let mut runs = Vec::new();
        for left in self.runs {
            runs.push(Run { at, left, block: VecDeque::new() });
            at += left * SIZE as u64;
        }
        runs.push(Run { at, left: 0, block: self.waiting.into() });
        let mut sorted = Sorted { file: self.file, runs, next: BinaryHeap::new() };
        (0..sorted.runs.len()).try_for_each(|run| sorted.enqueue(run))?;
        Ok(sorted)
    }
}

impl Sorted {
    /// Removes the earliest event.
    pub(super) fn pop(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse((_, run))) = self.next.pop() else { return Ok(None) };
        let entry = self.runs[run].block.pop_front();
        self.enqueue(run)?;
        Ok(entry)
    }

    /// Queues the next event of a run, if there is one.
    fn enqueue(&mut self, number: usize) -> io::Result<()> {
        let run = &mut self.runs[number];
        if let (true, true, Some(file)) = (run.block.is_empty(), run.left > 0, &mut self.file) {
            let count = run.left.min(BLOCK as u64);
            let mut bytes = vec![0; count as usize * SIZE];
            file.seek(SeekFrom::Start(run.at))?;
            file.read_exact(&mut bytes)?;
            run.block.extend(bytes.chunks_exact(SIZE).map(decode));
            run.left -= count;
            run.at += bytes.len() as u64;
        }
        // Of events with equal times, the earlier run's is first.
        self.next.extend(run.block.front().map(|entry| Reverse((entry.time, number))));
        Ok(())
    }
}

fn encode(entry: &Entry) -> [u8; SIZE] {
    let (change, duration) = match entry.change {
        Change::Begin => (0_u32, 0),
        Change::End => (1, 0),
        Change::Complete { duration } => (2, duration),
        Change::Point => (3, 0),
    };
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&entry.time.to_le_bytes());
    bytes[8..16].copy_from_slice(&duration.to_le_bytes());
    let words = [change, entry.track.0, entry.name.0, entry.category.0, entry.tag];
    for (place, word) in bytes[16..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Entry {
    let long = |at: usize| bytes[at..at + 8].try_into().map_or(0, i64::from_le_bytes);
    let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let change = match word(16) {
        0 => Change::Begin,
        1 => Change::End,
        2 => Change::Complete { duration: long(8) },
        _ => Change::Point,
    };
    let (name, category) = (Key(word(24)), Key(word(28)));
    Entry { time: long(0), track: TrackId(word(20)), change, name, category, tag: word(32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_in_any_order_come_in_order_and_equal_times_as_they_came() {
        const MANY: u32 = 3 * RUN as u32 / 2;
        let create = || {
            let name = format!("hairline-order-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(path)?;
            Ok(file)
        };
        let mut order = Order::new(create);
        for n in 0..MANY {
            let time = i64::from(n.wrapping_mul(0x9e37_79b9) >> 14);
            let change = [Change::Begin, Change::End, Change::Complete { duration: time }][n as usize % 3];
            let (name, category) = (Key(n / 2), Key(7));
            order.push(Entry { time, track: TrackId(n), change, name, category, tag: n });
        }
        let mut sorted = order.sorted().expect("sorted");
        let (mut count, mut last) = (0, (i64::MIN, 0));
        while let Some(entry) = sorted.pop().expect("read") {
            let n = entry.track.0;
            assert!((entry.time, n) > last && entry.time == i64::from(n.wrapping_mul(0x9e37_79b9) >> 14));
            assert_eq!((entry.name, entry.category, entry.tag), (Key(n / 2), Key(7), n));
            let expected = [Change::Begin, Change::End, Change::Complete { duration: entry.time }];
            assert_eq!(entry.change, expected[n as usize % 3]);
            (count, last) = (count + 1, (entry.time, n));
        }
        assert_eq!(count, MANY);
    }
}
