// The importer's counters, and which of them complain about the trace.
import {rowJson} from './cells.mjs';

export const STATS_SQL = "select name, idx, severity, source, value from stats where value != 0 and name != 'parse_trace_duration_ns'";

export const statOf = ([name, idx, severity, source, value]) => ({name, idx, severity, source, value});

export const statJson = (stat) => rowJson(Object.values(stat), Object.keys(stat));

// v52 files most of the mistakes it finds under severity 'info'. Their names tell them from plain counts.
const NAMES_A_PROBLEM = /error|skip|drop|invalid|misplaced|without|fail|overflow|lost|dup|missing|unknown|negative|corrupt|truncat|out_of_order|unsupported/;
// ... except these, which only count work done.
const HARMLESS = new Set(['clock_sync_cache_miss']);

/** Is this (non-zero) stat something that a good trace does not cause? */
export const isComplaint = ({name, severity}) =>
  severity !== 'info' || (NAMES_A_PROBLEM.test(name) && !HARMLESS.has(name));
