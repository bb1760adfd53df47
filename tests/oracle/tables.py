#!/usr/bin/env python3
"""Asks DuckDB about the tables that `hairline export` has written: one line of JSON, a list of rows for each query.

    tests/oracle/tables.py FOLDER SQL...

Each folder in FOLDER is a table. tests/oracle/setup.sh installs DuckDB beside this script.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "duckdb"))

import duckdb  # noqa: E402


def main():
    folder = pathlib.Path(sys.argv[1])
    database = duckdb.connect(":memory:", config={"threads": 1})
    for table in sorted(folder.iterdir()):
        if table.is_dir():
            files = str(table / "*" / "*" / "*" / "*.parquet").replace("'", "''")
            options = "hive_partitioning = true, hive_types_autocast = false"
            database.execute(f"create view \"{table.name}\" as select * from read_parquet('{files}', {options})")
    print(json.dumps([database.execute(sql).fetchall() for sql in sys.argv[2:]]))


main()
