#!/usr/bin/env bash
# Hairline's samples and heap profile beside those of perf, samply, dial9, jemalloc and heaptrack, with programs whose
# truth is known (benches/peers/profilers). Not a part of ci/test.sh: it builds for minutes, and times on a shared machine
# say nothing.
#
#   ci/profilers.sh shares [BUILD]     whether two functions have the 70 and 30 % that they burn, for programs built in
#                                      seven ways, with perf events and where they are refused
#   ci/profilers.sh cost [ROUNDS]      what samples at 99 Hz cost
#   ci/profilers.sh sums [SCALE]       what each function has allocated, and what is live
#   ci/profilers.sh heap [ROUNDS]      what a heap profile costs
#   ci/profilers.sh leak [SECONDS]     whether a leak of 100 KiB in a second is found in a minute
#   ci/profilers.sh oom                whether the peak is in the trace of a program that the kernel kills for its memory
#
# perf, samply and heaptrack are left out where they are not installed (Debian: linux-perf, heaptrack; `cargo install
# samply`, with llvm-symbolizer of Debian's llvm). addr2line is needed for jemalloc's (binutils).
set -euo pipefail
folder=$(dirname "${BASH_SOURCE[0]}")/profilers
what=${1:-}
shift || true
case $what in
  shares) exec "$folder/shares.py" "$@" ;;
  cost) exec "$folder/cost.py" "$@" ;;
  heap) exec "$folder/heap.py" cost "$@" ;;
  sums | leak | oom) exec "$folder/heap.py" "$what" "$@" ;;
  *) echo "ci/profilers.sh: shares, cost, sums, heap, leak or oom, not '$what'" >&2; exit 1 ;;
esac
