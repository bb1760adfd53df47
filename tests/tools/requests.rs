//! The arrows of a request through three processes, in the trace that `hairline merge` makes of theirs.

use std::process::Command;

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::{hairline, run, stderr, without_tracing};

const REQUESTS: usize = 5;

/// The arrows, from process to process.
const ARROWS: &str = "select a.category || '/' || a.name, b.category || '/' || b.name, count(*) \
     from flow join slice a on slice_out = a.id join slice b on slice_in = b.id group by 1, 2 order by 1, 2";

/// The requests whose arrows connect slices of one trace id only, and how many slices each has.
const TRACES: &str = "select count(*), min(slices), max(slices) from (select count(*) as slices from slice \
     join args using (arg_set_id) where key glob '*traceparent' group by substr(display_value, 4, 32))";

#[test]
fn the_arrows_of_a_request_go_through_three_processes() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Command::new(env!("CARGO_BIN_EXE_requests"));
        without_tracing(&mut program);
        let requests = REQUESTS.to_string();
        program.args(["traces", "--requests", &requests, "--format", extension(format)]);
        let done = run(program.current_dir(&folder));
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(String::from_utf8_lossy(&done.stdout).lines().count(), REQUESTS);

        let names = ["client", "front", "back"].map(|name| format!("traces/{name}.{}", extension(format)));
        let merged = format!("merged.{}", extension(format));
        let done = run(hairline(folder.path()).arg("merge").args(&names).args(["-o", &merged]));
        assert!(done.status.success(), "{}", stderr(&done));

        let verdict = judge::load(folder.path().join(merged), &[ARROWS, TRACES]);
        verdict.require_clean();
        let arrows = [("back/serve\tfront/told", 2), ("client/get\tfront/serve", 1)];
        let more = [("front/ask\tback/serve", 2), ("front/serve\tclient/got", 1)];
        let expected = arrows.iter().chain(&more).map(|(arrow, n)| format!("{arrow}\t{}", n * REQUESTS));
        assert_eq!(verdict.results[0].text(), expected.collect::<Vec<_>>().join("\n"), "{format:?}");
        // get, serve, and for each of the two questions ask and serve.
        assert_eq!(verdict.results[1].text(), format!("{REQUESTS}\t6\t6"), "{format:?}");
    }
}
