#!/usr/bin/env python3
"""Asks an engine the questions of the fleet.

    ask.py ENGINE STATEMENTS QUESTIONS OUT [--memory GIB]

STATEMENTS is a file with what `hairline query --views ENGINE DIR` prints. Each file of the folder QUESTIONS
is one question; OUT/NAME.csv gets its rows, OUT/seconds.json the times. The engine `hairline` is the program
HAIRLINE_TOOL; its statements are the inputs, one in each line.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import time


def duckdb(memory):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set memory_limit = '{memory}GiB'")

    def ask(sql):
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()

    return connection.execute, ask


def clickhouse(memory):
    from chdb.session import Session

    session = Session()
    session.query(f"set max_memory_usage = {memory << 30}")
    session.query(f"set max_bytes_before_external_group_by = {memory << 29}")

    def ask(sql):
        lines = session.query(sql, "JSONCompactEachRowWithNames").bytes().decode().splitlines()
        names, *rows = (json.loads(line) for line in lines)
        return names, rows

    return session.query, ask


def spark(memory):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", f"{memory}g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "16")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def ask(sql):
        frame = session.sql(sql)
        return frame.columns, [tuple(row) for row in frame.collect()]

    return session.sql, ask


def datafusion(memory):
    import datafusion

    runtime = datafusion.RuntimeEnvBuilder().with_fair_spill_pool(memory << 30)
    context = datafusion.SessionContext(datafusion.SessionConfig(), runtime)

    def run(sql):
        return context.sql(sql).collect()

    def ask(sql):
        frame = context.sql(sql)
        names = frame.schema().names
        return names, [tuple(row[name] for name in names) for row in frame.to_pylist()]

    return run, ask


def hairline(memory):
    inputs = []

    def run(lines):
        inputs.extend(lines.splitlines())

    def ask(sql):
        command = [os.environ["HAIRLINE_TOOL"], "query", "--csv", "--memory", str(memory << 10), sql, *inputs]
        output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
        names, *rows = csv.reader(io.StringIO(output))
        return names, rows

    return run, ask


def cell(value):
    """A value as all engines' outputs show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("engine", choices=["duckdb", "clickhouse", "spark", "datafusion", "hairline"])
    parser.add_argument("statements", type=pathlib.Path)
    parser.add_argument("questions", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--memory", type=int, default=6)
    arguments = parser.parse_args()
    run, ask = globals()[arguments.engine](arguments.memory)
    for statement in arguments.statements.read_text().split(";\n"):
        if statement.strip():
            run(statement)
    arguments.out.mkdir(parents=True, exist_ok=True)
    seconds = {}
    for question in sorted(arguments.questions.glob("*.sql")):
        began = time.monotonic()
        names, rows = ask(question.read_text())
        seconds[question.stem] = round(time.monotonic() - began, 3)
        with (arguments.out / f"{question.stem}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([cell(value) for value in row] for row in rows)
        print(f"{arguments.engine} {question.stem}: {len(rows)} rows, {seconds[question.stem]} s", flush=True)
    (arguments.out / "seconds.json").write_text(json.dumps(seconds, indent=1) + "\n")


if __name__ == "__main__":
    main()
