//! The ring under loom: every interleaving of two or three threads, and every value a weak load may return.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p hairline-shm --release --test loom
//! ```
//!
//! One property a model. A model that can end in more than one way says at its end which ways it must have
//! seen, so that none passes by never coming to the race it is about.
//!
//! Payload bytes are ordinary memory, which loom does not watch; a cell a record stands guard for them (see
//! `ChunkHeader`): the writer mutates it before a record's bytes, the drain reads it with them. There are four
//! cells, so a chunk has at most four records here, each appended with a count of one.

#![cfg(loom)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hairline_shm::{ChunkInfo, Drain, Region, RegionConfig, Window, WriteChunk};
use loom::thread;

use common::Sink;

/// Two threads: every interleaving.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(model);
}

/// Three threads: every interleaving with at most this many preemptions. All of them would take hours; nearly
/// all known bugs of this kind show with two or three.
const PREEMPTIONS: usize = 5;

/// The same for two threads where one of them is the window: it looks at every chunk twice.
const WINDOW_PREEMPTIONS: usize = 3;

fn explore_most(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(WINDOW_PREEMPTIONS);
    builder.check(model);
}

fn explore_three_threads(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// Four chunks, the fewest there can be.
fn ring() -> Arc<Region> {
    Region::create(&RegionConfig { buffer_size: 4 * 4096, ..RegionConfig::small() }).unwrap()
}

/// Four chunks, of which `free` are free and the others in the caller's hands.
fn ring_with_free(free: usize) -> (Arc<Region>, Vec<WriteChunk>) {
    let region = ring();
    let held = (free..4).map(|_| claim(&region, 100, 0, b"").unwrap()).collect();
    (region, held)
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8]) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, context)
}

/// A whole short life of a chunk.
fn write_chunk(region: &Arc<Region>, sequence: u32, index: u32, records: &[&[u8]]) {
    let mut chunk = claim(region, sequence, index, b"").unwrap();
    for record in records {
        assert!(chunk.append(record, 1));
    }
}

/// How often a model ended in some way.
#[derive(Clone, Default)]
struct Seen(Arc<AtomicU64>);

impl Seen {
    fn note_if(&self, it_happened: bool) {
        self.0.fetch_add(u64::from(it_happened), Ordering::Relaxed);
    }

    fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

// ---- claim against claim

// thread 1: claim  --+
// thread 2: claim  --+--> [free][free][free][free]
// thread 3: claim  --+
#[test]
fn three_claimers_get_three_chunks() {
    explore_three_threads(|| {
        let region = ring();
        let others: Vec<_> = (1..=2)
            .map(|sequence| {
                let region = Arc::clone(&region);
                thread::spawn(move || claim(&region, sequence, 0, b"").unwrap())
            })
            .collect();
        let mine = claim(&region, 3, 0, b"").unwrap();
        let others: Vec<_> = others.into_iter().map(|t| t.join().unwrap()).collect();
        assert_ne!(mine.number(), others[0].number());
        assert_ne!(mine.number(), others[1].number());
        assert_ne!(others[0].number(), others[1].number());
        assert_eq!(region.free_chunks(), 1);
    });
}

// thread 1: claim  --+
// thread 2: claim  --+--> [held][held][held][free]
#[test]
fn of_two_claimers_of_the_only_free_chunk_exactly_one_loses() {
    let (first_won, second_won) = (Seen::default(), Seen::default());
    let (first, second) = (first_won.clone(), second_won.clone());
    explore(move || {
        let (region, _held) = ring_with_free(1);
        let other = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, 1, 0, b""))
        };
        let mine = claim(&region, 2, 0, b"");
        let others = other.join().unwrap();
        assert!(mine.is_some() ^ others.is_some());
        assert_eq!(mine.as_ref().or(others.as_ref()).unwrap().number(), 3);
        assert_eq!(region.free_chunks(), 0);
        first.note_if(mine.is_some());
        second.note_if(others.is_some());
    });
    assert!(first_won.happened() && second_won.happened());
}

// drain:    frees chunk 0     \
// thread 1: claims one         +--> one word of the bitmap
// thread 2: claims one        /
#[test]
fn no_chunk_vanishes_when_claims_and_a_free_meet_in_one_word() {
    explore_three_threads(|| {
        let region = ring();
        write_chunk(&region, 1, 0, &[b"x"]);
        let claimers: Vec<_> = (2..=3)
            .map(|sequence| {
                let region = Arc::clone(&region);
                thread::spawn(move || claim(&region, sequence, 0, b"").unwrap())
            })
            .collect();
        let mut drain = Drain::new(Arc::clone(&region));
        drain.pass(&mut Sink::default()).unwrap();
        let held: Vec<_> = claimers.into_iter().map(|t| t.join().unwrap()).collect();
        assert_ne!(held[0].number(), held[1].number());
        assert_eq!(region.free_chunks(), 2);
    });
}

// ---- begin against drain

// owner: [context][a.....    claims, writes the context, says Writing, appends
// drain:     one pass meanwhile
#[test]
fn a_chunk_seen_as_begun_has_its_own_header_and_context() {
    let (early, late) = (Seen::default(), Seen::default());
    let (saw_nothing, saw_record) = (early.clone(), late.clone());
    explore(move || {
        let region = ring();
        // A former life leaves other numbers in the header.
        drop(claim(&region, 7, 0, b"older"));
        let mut drain = Drain::new(Arc::clone(&region));
        drain.pass(&mut Sink::default()).unwrap();

        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut chunk = claim(&region, 9, 0, b"new").unwrap();
                assert!(chunk.append(b"a", 1));
                chunk
            })
        };
        let mut sink = Sink::default();
        let pass = drain.pass(&mut sink).unwrap();
        assert!(matches!(&sink.bytes[..], b"" | b"newa"), "{:?}", sink.bytes);
        assert_eq!(pass.freed, 0);
        saw_nothing.note_if(sink.bytes.is_empty());
        saw_record.note_if(!sink.bytes.is_empty());
        let _chunk = owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"newa");
        assert_eq!(drain.records_by_sequence().get(&9), Some(&1));
    });
    assert!(early.happened() && late.happened());
}

// ---- commit against drain

// owner: [aa][bbb][c]   appends while
// drain:  two passes
#[test]
fn a_drain_of_a_chunk_being_written_takes_whole_records_in_order_each_once() {
    let partly = Seen::default();
    let saw_a_part = partly.clone();
    explore(move || {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        let owner = thread::spawn(move || {
            for record in [&b"aa"[..], b"bbb", b"c"] {
                assert!(chunk.append(record, 1));
            }
            chunk
        });
        let mut drain = Drain::new(region);
        let mut sink = Sink::default();
        let mut records = 0;
        for _ in 0..2 {
            records += drain.pass(&mut sink).unwrap().records;
            let whole: &[u8] = [&b""[..], b"aa", b"aabbb", b"aabbbc"][usize::try_from(records).unwrap()];
            assert_eq!(sink.bytes, whole);
            saw_a_part.note_if(records == 1 || records == 2);
        }
        let _chunk = owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"aabbbc");
    });
    assert!(partly.happened());
}

// ---- completion against drain

// owner: [a][b]|        gives the chunk back while
// drain:  one pass, which frees it or does not
#[test]
fn a_chunk_is_freed_only_with_its_last_record_taken() {
    let (freed_at_once, freed_later) = (Seen::default(), Seen::default());
    let (at_once, later) = (freed_at_once.clone(), freed_later.clone());
    explore(move || {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        let owner = thread::spawn(move || {
            assert!(chunk.append(b"a", 1));
            assert!(chunk.append(b"b", 1));
        });
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        let first = drain.pass(&mut sink).unwrap();
        if first.freed == 1 {
            assert_eq!(sink.bytes, b"ab");
        }
        at_once.note_if(first.freed == 1);
        later.note_if(first.freed == 0);
        owner.join().unwrap();
        let second = drain.pass(&mut sink).unwrap();
        assert_eq!(first.freed + second.freed, 1);
        assert_eq!(sink.bytes, b"ab");
        assert_eq!(region.free_chunks(), 4);
    });
    assert!(freed_at_once.happened() && freed_later.happened());
}

// ---- reuse

//              first life          second life
// chunk 0:  [a] Complete | free | [b] Complete
//                 drain ---^  ^--- another thread, at once
#[test]
fn a_chunks_second_life_begins_after_the_drain_has_read_the_first() {
    let (reused, fresh) = (Seen::default(), Seen::default());
    let (got_the_old_chunk, got_a_new_chunk) = (reused.clone(), fresh.clone());
    explore(move || {
        let region = ring();
        write_chunk(&region, 1, 0, &[b"a"]);
        let second = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut chunk = claim(&region, 2, 0, b"").unwrap();
                assert!(chunk.append(b"b", 1)); // its guard fails the model if the drain's read is not before
                chunk.number()
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        assert!(matches!(&sink.bytes[..], b"a" | b"ab"));
        let number = second.join().unwrap();
        got_the_old_chunk.note_if(number == 0);
        got_a_new_chunk.note_if(number != 0);
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"ab");
        assert_eq!(region.free_chunks(), 4);
    });
    assert!(reused.happened() && fresh.happened());
}

// As above, but the claimer may learn of the freed chunk from the bitmap word that another claimer stored
// after the drain: the drain's Release must reach it through that claimer's read-modify-write.
#[test]
fn a_claim_is_ordered_after_the_free_though_another_claim_came_between() {
    let through_another = Seen::default();
    let seen = through_another.clone();
    explore_three_threads(move || {
        // Chunks 0 and 1 are Complete, the rest held.
        let (region, _held) = ring_with_free(2);
        write_chunk(&region, 1, 0, &[b"a"]);
        write_chunk(&region, 1, 1, &[b"b"]);
        let claimers: Vec<_> = (2..=3)
            .map(|sequence| {
                let region = Arc::clone(&region);
                thread::spawn(move || {
                    let mut chunk = claim(&region, sequence, 0, b"")?;
                    assert!(chunk.append(b"c", 1));
                    Some(chunk.number())
                })
            })
            .collect();
        let mut drain = Drain::new(Arc::clone(&region));
        drain.pass(&mut Sink::default()).unwrap();
        let got: Vec<_> = claimers.into_iter().filter_map(|t| t.join().unwrap()).collect();
        seen.note_if(got.len() == 2 && got[0] != got[1]);
    });
    assert!(through_another.happened());
}

// ---- batches

//              first life             second life
// chunk 0:  [aaa] batch 1 | free | [b...            its owner asks what the output has of it
//                   drain ---^       two passes
#[test]
fn what_the_output_has_of_a_chunk_is_never_told_by_its_former_life() {
    let (reused, taken) = (Seen::default(), Seen::default());
    let (got_the_old_chunk, saw_it_taken) = (reused.clone(), taken.clone());
    explore(move || {
        let region = ring();
        write_chunk(&region, 1, 0, &[b"aaa"]);
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut chunk = claim(&region, 2, 0, b"").unwrap();
                assert!(chunk.append(b"b", 1));
                let said = chunk.header().in_output(region.header());
                assert!(matches!((said.bytes(), said.records()), (0, 0) | (1, 1)), "{said:?}");
                (chunk, said)
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        drain.pass(&mut sink).unwrap();
        let (chunk, said) = owner.join().unwrap();
        got_the_old_chunk.note_if(chunk.number() == 0);
        saw_it_taken.note_if(said.records() == 1);
        // Now the drain rests, and the answer is what it did.
        let said = chunk.header().in_output(region.header());
        assert_eq!(said.bytes() == 1, sink.bytes == b"aaab", "{said:?} {:?}", sink.bytes);
    });
    assert!(reused.happened() && taken.happened());
}

// owner: [a][b]      appends
// drain:  a pass; when the bytes are with the output, and before it has said so, none of them count
#[test]
fn a_batch_counts_when_the_output_has_it_and_not_before() {
    struct Watch<'r>(&'r Region, u64);
    impl hairline_shm::Output for Watch<'_> {
        fn write_all_parts(&mut self, parts: &[std::io::IoSlice<'_>]) -> std::io::Result<()> {
            let said = self.0.chunk_header(0).in_output(self.0.header());
            assert_eq!(u64::from(said.bytes()), self.1);
            self.1 += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            Ok(())
        }
    }
    let partly = Seen::default();
    let saw_a_part = partly.clone();
    explore(move || {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        let owner = thread::spawn(move || {
            assert!(chunk.append(b"a", 1));
            assert!(chunk.append(b"b", 1));
            chunk
        });
        let mut drain = Drain::new(Arc::clone(&region));
        let mut watch = Watch(&region, 0);
        for _ in 0..2 {
            drain.pass(&mut watch).unwrap();
            let said = region.chunk_header(0).in_output(region.header());
            assert_eq!(u64::from(said.bytes()), watch.1);
            saw_a_part.note_if(watch.1 == 1);
        }
        let _chunk = owner.join().unwrap();
    });
    assert!(partly.happened());
}

// ---- order in a sequence

// owner: chunk 0 [a]|  chunk 1 [b]|      one sequence
// drain:  one pass while it runs, one after it
#[test]
fn a_sequences_chunks_are_taken_in_order_while_it_grows() {
    let between = Seen::default();
    let first_only = between.clone();
    explore(move || {
        let region = ring();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                write_chunk(&region, 1, 0, &[b"a"]);
                write_chunk(&region, 1, 1, &[b"b"]);
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        assert!(matches!(&sink.bytes[..], b"" | b"a" | b"ab"), "{:?}", sink.bytes);
        first_only.note_if(sink.bytes == b"a");
        owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"ab");
        assert_eq!(region.free_chunks(), 4);
    });
    assert!(between.happened());
}

// ---- the end of a sequence

// owner: chunk 0 [a] FLAG_LAST|          while the drain runs; then the number is used anew, from index 0
#[test]
fn a_finished_sequence_is_forgotten_whenever_the_drain_looked() {
    explore(|| {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        let owner = thread::spawn(move || {
            assert!(chunk.append(b"a", 1));
            chunk.finish_sequence();
        });
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        // Had the drain missed the flag it would wait for index 1 for ever.
        write_chunk(&region, 1, 0, &[b"b"]);
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"ab");
        assert_eq!(region.free_chunks(), 4);
    });
}

// ---- overwriting against the window

/// Four chunks of a region that overwrites: one complete, the others in the caller's hands.
fn ring_with_one_to_overwrite() -> (Arc<Region>, Vec<WriteChunk>) {
    let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
    let region = Region::create(&config).unwrap();
    let mut only = claim(&region, 1, 0, b"").unwrap();
    assert!(only.append(b"a", 1));
    only.finish_sequence();
    let held = (0..3).map(|n| claim(&region, 100 + n, 0, b"").unwrap()).collect();
    (region, held)
}

// thread 1: claim  --+
// thread 2: claim  --+--> [complete][held][held][held]
#[test]
fn of_two_that_overwrite_the_same_chunk_exactly_one_wins() {
    explore(|| {
        let (region, _held) = ring_with_one_to_overwrite();
        let other = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, 2, 0, b""))
        };
        let mine = claim(&region, 3, 0, b"");
        assert!(mine.is_some() ^ other.join().unwrap().is_some());
    });
}

// window: pins [a], copies it, lets go    \
// owner:  takes it, writes [b]             +--> what the window copies is one life of the chunk, whole
#[test]
fn what_the_window_reads_is_not_overwritten_meanwhile() {
    let (old, new, refused) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), refused.clone());
    explore_most(move || {
        let (region, _held) = ring_with_one_to_overwrite();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let Some(mut chunk) = claim(&region, 2, 0, b"") else { return false };
                assert!(chunk.append(b"bc", 1));
                true
            })
        };
        let mut window = Window::new(Arc::clone(&region));
        window.take();
        let (mut is_old, mut is_new) = (false, false);
        for piece in window.pieces().filter(|piece| piece.info.sequence < 100) {
            match (piece.info.sequence, piece.bytes, piece.records) {
                (1, b"a", 1) => is_old = true,
                (2, b"bc", 1) => is_new = true,
                (2, b"", 0) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(!(is_old && is_new), "one chunk, one life");
        let took = owner.join().unwrap();
        seen.0.note_if(is_old);
        seen.1.note_if(is_new);
        seen.2.note_if(!took);
    });
    // The pin may have kept the chunk from the owner, whose event is then counted as lost.
    assert!(old.happened() && new.happened() && refused.happened());
}

// owner:  [a..   appends, completes, goes on in the next chunk \
// window: pins what it finds                                    +--> no record is missing between two that are there
#[test]
fn a_window_has_no_hole_where_a_thread_changes_chunks() {
    let (one, both) = (Seen::default(), Seen::default());
    let seen = (one.clone(), both.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        let mut first = claim(&region, 1, 0, b"").unwrap();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(first.append(b"1", 1));
                let mut second = claim(&region, 1, 1, b"").unwrap();
                drop(first);
                assert!(second.append(b"2", 1));
            })
        };
        let mut window = Window::new(Arc::clone(&region));
        window.take();
        let bytes: Vec<u8> = window.pieces().flat_map(|piece| piece.bytes.to_vec()).collect();
        assert!(b"12".starts_with(&bytes), "{bytes:?}");
        seen.0.note_if(bytes == b"1");
        seen.1.note_if(bytes == b"12");
        owner.join().unwrap();
    });
    assert!(one.happened() && both.happened());
}

/// A ring without a free chunk, and the chunk that the drain may free.
fn full_ring() -> (Arc<Region>, Vec<WriteChunk>) {
    let (region, held) = ring_with_free(1);
    write_chunk(&region, 1, 0, &[b"r"]);
    (region, held)
}

// A wake-up that is missed would be a deadlock: time does not pass here.
#[test]
fn who_waits_for_a_chunk_is_woken_when_the_drain_frees_one() {
    explore(|| {
        let (region, _held) = full_ring();
        let waiter = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(region.wait_for_chunk(Instant::now()));
                assert!(claim(&region, 2, 0, b"").is_some(), "nobody else wants it");
            })
        };
        let mut drain = Drain::new(region);
        assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 1);
        waiter.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_chunk_is_let_go_when_nothing_is_drained_any_more() {
    explore(|| {
        let (region, _held) = full_ring();
        let waiter = {
            let region = Arc::clone(&region);
            thread::spawn(move || region.wait_for_chunk(Instant::now()))
        };
        region.end_waits();
        assert!(!waiter.join().unwrap());
        assert!(!region.may_wait());
    });
}
