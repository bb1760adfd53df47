//! Thread 0 of a process, which JSON's importer takes for another one.

use std::collections::BTreeSet;

use serde_json::Value;

/// A number that no thread has.
const OTHER_THAN_0: u32 = 2_000_000_000;

/// A copy of a trace in which thread 0 of each process has another number, if it is JSON and a process has
/// both thread 0 and the thread with its own number. The importer of JSON takes those two for one, so that
/// the begins and ends of both pair with each other.
#[must_use]
pub fn without_thread_0(trace: &[u8]) -> Option<Vec<u8>> {
    // What is not quite JSON is in other tests.
    let mut json: Value = serde_json::from_slice(trace).ok()?;
    let events = if json.is_array() { &mut json } else { json.get_mut("traceEvents")? };
    let events = events.as_array_mut()?;
    let thread = |event: &Value| Some((event.get("pid")?.as_u64()?, event.get("tid")?.as_u64()?));
    let threads: BTreeSet<_> = events.iter().filter_map(thread).collect();
    let has_both = |pid| pid != 0 && threads.contains(&(pid, 0)) && threads.contains(&(pid, pid));
    let mut has_any = false;
    for event in events {
        if thread(event).is_some_and(|(pid, tid)| tid == 0 && has_both(pid)) {
            event["tid"] = OTHER_THAN_0.into();
            has_any = true;
        }
    }
    has_any.then(|| json.to_string().into_bytes())
}
