//! The drain, while a chunk is begun, written, completed and claimed again.

use super::*;

// ---- begin against drain

// owner: [context][a.....    claims, writes the context, stores Writing, appends
// drain:     one pass meanwhile
#[test]
fn a_chunk_seen_as_begun_has_its_own_header_and_context() {
    let (early, late) = (Seen::default(), Seen::default());
    let (saw_nothing, saw_record) = (early.clone(), late.clone());
    explore(move || {
        let region = ring();
        // A previous owner leaves other numbers in the header.
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
// drain:  one pass, which may free the chunk
#[test]
fn a_chunk_is_freed_only_after_its_last_record_is_taken() {
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

//              first owner         second owner
// chunk 0:  [a] Complete | free | [b] Complete
//                 drain ---^  ^--- another thread, at once
#[test]
fn the_next_owner_writes_after_the_drain_has_read_the_chunk() {
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

// As above, but the claimer can see the free bit in a word that another claimer stored after the drain. The
// drain's Release must reach it through that claimer's read-modify-write.
#[test]
fn a_claim_is_ordered_after_the_free_if_another_claim_came_in_between() {
    let through_another = Seen::default();
    let seen = through_another.clone();
    explore_three_threads(move || {
        // Chunks 0 and 1 are Complete. Threads are writing the others.
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

// owner: chunk 0 [a] FLAG_LAST|          while the drain runs; then the same sequence again, from index 0
#[test]
fn the_drain_sees_the_end_of_a_sequence_at_any_moment_of_its_pass() {
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
        // If the drain had missed the flag, it would wait for index 1 for ever.
        write_chunk(&region, 1, 0, &[b"b"]);
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"ab");
        assert_eq!(region.free_chunks(), 4);
    });
}
