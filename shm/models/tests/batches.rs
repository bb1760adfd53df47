//! The fields of a chunk that belong to a batch.

use super::*;

//              first life             second life
// chunk 0:  [aaa] batch 1 | free | [b...            its owner asks how many bytes the output has
//                   drain ---^       two passes
#[test]
fn the_bytes_that_the_output_has_are_those_of_the_chunks_present_owner() {
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
        // The drain has stopped, so the answer is exact.
        let said = chunk.header().in_output(region.header());
        assert_eq!(said.bytes() == 1, sink.bytes == b"aaab", "{said:?} {:?}", sink.bytes);
    });
    assert!(reused.happened() && taken.happened());
}

// owner: [a][b]      appends
// drain:  a pass; the bytes count when the batch is done, and not when the output gets them
#[test]
fn a_batch_counts_when_it_is_done_and_not_before() {
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
