//! The whole vocabulary: recorded through the public API, in both formats, and read by trace_processor.

mod arguments;
mod asyncs;
mod composed;
mod contexts;
mod counters;
mod detail;
mod examples;
mod flows;
mod lifetimes;
mod limits;
mod logs;
mod names;
mod panics;
mod process_counters;
mod records;
mod repeated_tracks;
mod stream;
mod torture;
mod tracks;

#[global_allocator]
static ALLOC: hairline_tests::alloc::CountingAlloc = hairline_tests::alloc::CountingAlloc;

/// Slices with the track they are on and the track above that, in the order of their begins.
const ON_TRACKS: &str = "select s.depth, s.name, ifnull(t.name, '-') as track, ifnull(p.name, '-') as parent, \
     case when s.dur >= 0 then 'ended' else 'open' end as state \
     from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id order by s.ts, s.id";
