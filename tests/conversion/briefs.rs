//! What a program records is read as events in brief, which takes a quarter of the time.

use hairline::{trace_instant, trace_scope};
use hairline_convert::{BriefUse, Context, Item, MOST_BRIEF, open};
use hairline_tests::recording::{FORMATS, record};

#[test]
fn recorded_events_are_brief() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..1000_u32 {
                trace_scope!("net", "request");
                trace_scope!("db", "query", rows = n, text = "select");
                trace_instant!("net", "sent");
            }
        });
        let mut reader = open(std::fs::File::open(trace.path()).expect("a trace"), None).expect("its format");
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let (mut brief, mut others) = (0, 0);
        loop {
            reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            brief += briefs.len();
            let Some(item) = reader.next(&mut context).expect("it is read") else { break };
            others += usize::from(matches!(item, Item::Event(_)));
        }
        assert_eq!(brief + others, 5000, "{format:?}");
        assert!(others < 60, "{format:?}: {others} one by one");
    }
}
