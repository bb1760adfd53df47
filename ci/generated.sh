#!/bin/sh
# Converts all generated traces: each pair of record kinds of each format, in each relation of their times, and
# many triples, before and after each conversion in trace_processor. Takes some minutes. A number as argument
# runs so many.
set -eu
cd "$(dirname "$0")/.."
HAIRLINE_GENERATED=${1:-all} cargo test -p hairline-tests --test conversion generated -- --nocapture
