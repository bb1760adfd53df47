//! A `Heap` that counts always: a session has the memory that was allocated before it.

use std::alloc::System;
use std::hint::black_box;

use hairline::Heap;
use hairline_tests::recording::{FORMATS, record};

#[global_allocator]
static HEAP: Heap<System> = Heap::new(System).report_above(usize::MAX).count_always();

#[test]
fn a_session_has_the_bytes_from_before_it() {
    let before = black_box(vec![1u8; 48 << 20]);
    for format in FORMATS {
        let mut during = Vec::new();
        let trace = record(format, |_| during = black_box(vec![1u8; 16 << 20]));
        let live = trace.rows(
            "select cast(max(c.value) as int) from counter c join counter_track t on c.track_id = t.id \
             where t.name = 'heap: live bytes'",
        );
        let live: i64 = live.parse().unwrap();
        assert!((live - (64 << 20)).abs() < 8 << 20, "{format:?}: {live}");
        let others = "select count(*) from slice union all select count(*) from counter_track \
                      where name like '%since start'";
        assert_eq!(trace.rows(others), "0\n0", "{format:?}");
        drop(during);
    }
    drop(before);
}
