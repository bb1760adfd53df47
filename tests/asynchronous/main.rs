//! Functions and futures: `#[trace]`, `traced`, with real runtimes.

mod allocations;
mod attribute;
mod closings;
mod environment;
mod futures_and_streams;
mod held;
mod lanes;
mod many;
mod messages;
mod other_layers;
mod polls;
mod requests;
mod runtimes;
mod set_ups;
mod spans;

#[global_allocator]
static ALLOCATOR: hairline_tests::alloc::CountingAlloc = hairline_tests::alloc::CountingAlloc;

/// The lives of futures: slices on async tracks, in the order of their begins, with the name of the slice
/// above on their track, or else of the track above.
const LIVES: &str = "select s.name, coalesce(ps.name, p.name, '-') as above, s.dur >= 0 as ended from slice s \
     join track t on s.track_id = t.id left join track p on t.parent_id = p.id \
     left join slice ps on s.parent_id = ps.id \
     where s.track_id not in (select id from thread_track) order by s.ts, s.id";

/// The message of an event, or the name of a slice `s`.
const TEXT: &str = "ifnull((select display_value from args a where a.arg_set_id = s.arg_set_id \
     and a.key in ('message', 'track_event.log_message')), s.name)";
