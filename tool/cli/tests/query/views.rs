//! The tables and views of folders for other engines.

use crate::{Folder, stderr, stdout};

#[test]
fn the_statements_of_each_engine_are_printed() {
    let folder = Folder::new();
    for (engine, expected) in [
        ("duckdb", "read_parquet('s3://bucket/fleet/slice/*/*/*/*.parquet'"),
        ("clickhouse", "s3('s3://bucket/fleet/slice/*/*/*/*.parquet'"),
        ("datafusion", "location 's3://bucket/fleet/slice/'"),
        ("spark", "parquet.`s3://bucket/fleet/slice`"),
    ] {
        let output = folder.run(&["--views", engine, "s3://bucket/fleet/"]);
        let shown = stdout(&output);
        assert!(output.status.success() && shown.contains(expected), "{engine}: {shown}");
    }
    let output = folder.run(&["--views", "oracle"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("duckdb, clickhouse, datafusion, spark"));
}
