//! The schema is a contract: what users read about it is what it is.

use std::collections::HashSet;

use hairline_tables::{Kind, TABLES, TableId, VERSION, markdown};

#[test]
fn the_guide_has_all_tables_and_columns() {
    let guide = include_str!("../../../docs/guide/schema.md");
    let missing: Vec<&str> = {
        let lines: HashSet<&str> = guide.lines().collect();
        static SCHEMA: std::sync::LazyLock<String> = std::sync::LazyLock::new(markdown);
        SCHEMA.lines().filter(|line| !lines.contains(line)).collect()
    };
    assert!(guide.contains(&markdown()), "docs/guide/schema.md lacks:\n{}", missing.join("\n"));
    assert!(guide.contains(&format!("version {VERSION}")), "the version");
}

/// The tables and columns of version 1. Nothing is taken from this list; a later version has a list of its
/// own.
#[test]
fn columns_are_only_added() {
    let first = "slice: id start duration self_time depth parent category name track track_name thread tid \
         thread_name process pid process_name running waiting\n\
         instant: id time depth parent category name track track_name thread tid thread_name process pid \
         process_name\n\
         counter: time value name series unit track thread tid thread_name process pid process_name\n\
         flow: time time_out slice_out slice_in flow\n\
         arg: time of owner flat_key key value_type int_value float_value bool_value text_value\n\
         thread: id tid name process pid process_name is_main\n\
         process: id pid name command_line\n\
         sched: start duration state cpu tid thread thread_name process pid process_name waker\n\
         sample: time kind function stack tid thread thread_name process pid process_name\n\
         trace: schema uuid host executable build_id writer clock since_1970 start end events is_whole losses \
         lost_events lost_buffer_full lost_reentrant lost_too_large lost_thread_exit lost_output \
         lost_arguments lost_damaged lost_kernel_ring defects left_out";
    for line in first.lines() {
        let (table, columns) = line.split_once(": ").expect("a table");
        let table = TableId::by_name(table).expect(table).table();
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let columns: Vec<&str> = columns.split(' ').collect();
        assert!(names.starts_with(&columns), "{}: {names:?}", table.name);
    }
}

#[test]
fn tables_are_sorted_by_times() {
    for table in TABLES {
        if let Some(column) = table.sorted_by.map(|column| table.columns[column]) {
            assert!(column.kind == Kind::Int && !column.is_optional, "{}", table.name);
        }
        let names: HashSet<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), table.columns.len(), "{}", table.name);
    }
}
