//! Names made at run time, several categories, correlation ids.

use hairline::{Level, trace_counter, trace_instant, trace_log, trace_scope};
use hairline_tests::recording::{FORMATS, record, record_with};

#[test]
fn names_may_be_made_at_run_time() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..3 {
                let name = format!("query {n}");
                trace_scope!("db", "query", n, name: &name);
                trace_instant!("db", "row", name: format_args!("row {n}").to_string());
            }
            trace_scope!("db", "long", name: "n".repeat(5000));
            trace_scope!("db", "empty", name: "");
            for n in 0..3 {
                trace_counter!("db", "c", n, name: format!("counter {n}"));
            }
        });
        let names = trace.rows(
            "select category, name, dur >= 0 from slice where length(name) < 100 and name != '' order by ts",
        );
        assert_eq!(
            names, "db\tquery 0\t1\ndb\trow 0\t1\ndb\tquery 1\t1\ndb\trow 1\t1\ndb\tquery 2\t1\ndb\trow 2\t1",
            "{format:?}"
        );
        assert_eq!(
            trace.rows("select length(name), dur >= 0 from slice where length(name) > 100"),
            "1000\t1",
            "{format:?}"
        );
        assert_eq!(trace.rows("select count(*), sum(dur < 0) from slice"), "8\t0", "{format:?}");
        let counters = "counter 0 = 0.0\ncounter 1 = 1.0\ncounter 2 = 2.0";
        assert_eq!(trace.counters(), counters, "{format:?}");
    }
}

#[test]
fn an_event_of_several_categories_is_recorded_if_one_of_them_is() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.categories("slow,db.*"),
            |_| {
                trace_scope!("net,slow", "both");
                trace_scope!("net, db.read ,x", "spaces");
                trace_scope!("net", "neither");
                trace_instant!("net,gpu", "neither");
                trace_instant!("slow", "one");
            },
        );
        let rows = trace.rows("select replace(category, ' ', ''), name from slice order by ts");
        assert_eq!(rows, "net,slow\tboth\nnet,db.read,x\tspaces\nslow\tone", "{format:?}");
    }
}

#[test]
fn many_categories_are_all_there() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..3 {
                trace_scope!("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "sixteen");
            }
        });
        let rows = trace.rows("select category, name, dur >= 0 from slice");
        assert_eq!(rows, ["a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\tsixteen\t1"; 3].join("\n"), "{format:?}");
    }
}

#[test]
fn correlation_ids_are_numbers_or_strings() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("t", "number", correlation: 7);
            trace_scope!("t", "text", correlation: "request 7");
        });
        let ids = trace.rows(
            "select s.name, replace(a.display_value, 'tp:#', '') from slice s join args a using (arg_set_id) \
             where a.key = 'correlation_id' order by s.ts",
        );
        assert_eq!(ids, "number\t7\ntext\trequest 7", "{format:?}");
    }
}

#[test]
fn arguments_may_be_made_of_the_program_s_own_statics_whatever_their_names() {
    const KEYS: [u32; 3] = [1, 2, 3];
    static CALLSITE: &str = "mine";
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!("t", "i", keys = KEYS.len(), callsite = CALLSITE);
            trace_counter!("t", "c", KEYS.len());
        });
        assert_eq!(trace.arguments(), "i: keys = 3\ni: callsite = mine", "{format:?}");
        assert_eq!(trace.counters(), "c = 3.0", "{format:?}");
    }
}

#[test]
fn a_category_of_blanks_is_none() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!(" ", "i");
            trace_instant!(",", "j");
        });
        assert_eq!(trace.rows("select name from slice order by ts"), "i\nj", "{format:?}");
    }
}

#[test]
fn macros_mean_no_names_of_the_program() {
    mod core {}
    #[allow(dead_code)]
    struct Some;
    #[allow(unused_macros)]
    macro_rules! stringify {
        ($($tokens:tt)*) => {
            compile_error!("the program's")
        };
    }
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("t", "s", n = 1, r = { 2 }, b = 1 < 2,);
            trace_log!(Level::Info, "t", "text",);
        });
        assert_eq!(trace.rows("select count(*) from slice"), "2", "{format:?}");
    }
}
