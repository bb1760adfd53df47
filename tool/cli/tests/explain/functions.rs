//! Functions are those of the program, with their whole stacks on demand.

use hairline_formats::track_event::{
    self as te, AddressSymbols, Frame, InternedStack, Line, Mapping, PerfSample, SequenceId,
};

use crate::planted::{MS, SERVER, Shape, command, explain, explain_both, requests};

/// Slow requests that compute in `checksum`, whose loop is inlined code of the standard library, and in
/// `malloc`.
fn trace() -> Vec<u8> {
    let mut times = Vec::new();
    let trace = requests("request", |_, middle| {
        times.push(middle);
        Some(("", "parse"))
    });
    let mut trace = trace.finish(Shape::States);
    let sequence = SequenceId(9);
    let mapping = |path: &'static [u64], build_id| Mapping { path, build_id, ..Mapping::default() };
    let frame = |mapping, rel_pc| Frame { function: 0, mapping, rel_pc };
    te::interned_stacks(
        &mut trace,
        sequence,
        true,
        &[
            InternedStack::BuildId { iid: 1, bytes: &[1] },
            InternedStack::BuildId { iid: 2, bytes: &[2] },
            InternedStack::Path { iid: 1, path: "server" },
            InternedStack::Path { iid: 2, path: "libc.so.6" },
            InternedStack::Mapping { iid: 1, mapping: mapping(&[1], 1) },
            InternedStack::Mapping { iid: 2, mapping: mapping(&[2], 2) },
            InternedStack::Frame { iid: 1, frame: frame(1, 1) },
            InternedStack::Frame { iid: 2, frame: frame(1, 2) },
            InternedStack::Frame { iid: 3, frame: frame(2, 3) },
            InternedStack::Callstack { iid: 1, frames: &[1, 2] },
            InternedStack::Callstack { iid: 2, frames: &[1, 3] },
        ],
    );
    for time in times {
        for n in 0..50 {
            let callstack = if n % 5 == 0 { 2 } else { 1 };
            let sample = PerfSample { pid: 100, tid: SERVER as u32, callstack, ..PerfSample::default() };
            te::perf_sample(&mut trace, sequence, time + n * MS, &sample);
        }
    }
    let line = |function, file| Line { function, file, line: 1 };
    let library = "/rustc/0123/library/core/src/slice/iter/macros.rs";
    let checksum = vec![line("next<u64>", library), line("server::checksum", "src/main.rs")];
    let main = vec![line("server::main", "src/main.rs")];
    let of_program =
        [AddressSymbols { address: 1, lines: main }, AddressSymbols { address: 2, lines: checksum }];
    te::module_symbols(&mut trace, sequence, "server", &[1], &of_program);
    let malloc = AddressSymbols { address: 3, lines: vec![line("__GI___libc_malloc", "./malloc/malloc.c")] };
    te::module_symbols(&mut trace, sequence, "libc.so.6", &[2], &[malloc]);
    trace
}

#[test]
fn functions_are_those_of_the_program() {
    for text in explain_both(&trace(), &["net/request"]) {
        let said = "Functions on the CPU: `server::checksum` 80 %, `malloc` in `server::main` 20 %.";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("\nmalloc in server::main ") && !text.contains("stack of"), "{text}");
    }
}

#[test]
fn verbose_shows_the_whole_stack_of_each_function_once() {
    for text in explain_both(&trace(), &["net/request", "--verbose"]) {
        let checksum = "\nthe most frequent stack of `server::checksum`, its innermost function first:\n    \
                        next<u64> (inlined)\n    server::checksum\n    server::main\n";
        let malloc = "\nthe most frequent stack of `malloc` in `server::main`, its innermost function first:\n    \
                      __GI___libc_malloc\n    server::main\n";
        assert!(text.contains(checksum) && text.contains(malloc), "{text}");
        assert_eq!(text.matches("the most frequent stack of").count(), 2, "{text}");
    }
}

#[test]
fn json_has_the_function_what_it_called_and_the_whole_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    explain(folder.path(), &trace(), &[]);
    let text = command(folder.path(), &["explain", "t.pftrace", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let functions = &all["names"][0]["slowest"]["functions_on_cpu"];
    let expected = serde_json::json!([
        {
            "name": "server::checksum",
            "function": "server::checksum",
            "entered": null,
            "stack": "server::main;server::checksum;next<u64>",
            "samples": 80,
        },
        {
            "name": "malloc in server::main",
            "function": "server::main",
            "entered": "malloc",
            "stack": "server::main;__GI___libc_malloc",
            "samples": 20,
        },
    ]);
    assert_eq!(*functions, expected, "{functions:#}");
}
