//! Conversion from format to format: before and after, trace_processor shows the same.

mod briefs;
mod differences;
mod early_ends;
mod field;
mod fxt_across;
mod fxt_handmade;
mod fxt_limits;
mod fxt_recorded;
mod generated;
mod imperfect;
mod json;
mod late_tracks;
mod matrix;
mod merging;
mod mixed;
mod newer;
mod others;
mod packets;
mod scheduling;
mod tables;
mod track_event;

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use hairline_convert::{BriefUse, Context, Report, TraceFormat, create, open_twice};

/// What a trace becomes in another format, and what the reader and the writer have to say about it.
#[track_caller]
fn convert(trace: &[u8], to: TraceFormat) -> (Vec<u8>, Report) {
    merge(&[trace], to)
}

/// The same of several traces, as one. It is the same with all events as items, and with those in brief that
/// can be.
#[track_caller]
fn merge(traces: &[&[u8]], to: TraceFormat) -> (Vec<u8>, Report) {
    let (merged, report) = merge_items(traces, to, false);
    let (in_brief, its_report) = merge_items(traces, to, true);
    assert!(merged == in_brief, "with events in brief another trace");
    assert!(report.iter().eq(its_report.iter()), "with events in brief another report");
    (in_brief, its_report)
}

#[track_caller]
fn merge_items(traces: &[&[u8]], to: TraceFormat, in_brief: bool) -> (Vec<u8>, Report) {
    let (mut merged, mut report) = (Vec::new(), Report::default());
    let mut writer = create(to, &mut merged);
    let mut context = Context::new();
    for trace in traces {
        let copy = trace.to_vec();
        let again = || Ok(Box::new(Cursor::new(copy)) as Box<dyn Read>);
        let mut reader = open_twice(*trace, None, again).expect("a trace");
        let mut briefs = Vec::new();
        loop {
            if in_brief {
                reader.briefs(BriefUse::Writing, &mut context, &mut briefs);
                writer.write_briefs(&briefs, &context.strings).expect("memory");
            }
            let Some(item) = reader.next(&mut context).expect("a whole trace") else { break };
            writer.write(&item).expect("memory");
        }
        report.add_all(reader.report());
        context.next_input();
        writer.next_input().expect("memory");
    }
    writer.finish().expect("memory");
    report.add_all(writer.report());
    drop(writer);
    (merged, report)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a trace")
}

/// A trace of another tracer: see corpus/README.md.
fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conversion/corpus").join(name)
}
