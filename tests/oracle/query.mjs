#!/usr/bin/env node
// Loads a trace, runs SQL, prints each row as a JSON object on a line.
import {parseArgs} from 'node:util';
import {rowJson} from './cells.mjs';
import {isComplaint, statJson} from './stats.mjs';
import {EngineError, LoadError, SqlError, TraceProcessor} from './trace_processor.mjs';

const USAGE = `usage: node query.mjs [--strict] [--stats] TRACE [SQL...]
  --strict   list the importer's complaints on stderr and exit 4 if there is any
  --stats    print every stat of the importer that is not zero, after the rows
exit: 0 ok, 1 usage or no such file, 2 the trace did not load, 3 SQL error, 4 --strict, 5 the engine crashed`;

class UsageError extends Error {}

function parse(args) {
  const options = {strict: {type: 'boolean'}, stats: {type: 'boolean'}};
  try {
    const {values, positionals: [trace, ...queries]} = parseArgs({args, options, allowPositionals: true});
    if (trace) return {...values, trace, queries};
  } catch (error) {
    throw new UsageError(`${error.message}\n${USAGE}`);
  }
  throw new UsageError(USAGE);
}

async function main({strict, stats: showStats, trace, queries}) {
  const engine = await TraceProcessor.create();
  engine.load(trace);
  for (const sql of queries) {
    const {columns, rows} = engine.query(sql);
    for (const row of rows) console.log(rowJson(row, columns));
  }
  const stats = engine.stats();
  if (showStats) for (const stat of stats) console.log(statJson(stat));
  const complaints = stats.filter(isComplaint);
  if (!strict || complaints.length === 0) return 0;
  for (const stat of complaints) console.error(`complaint: ${statJson(stat)}`);
  return 4;
}

function exitCode(error) {
  if (error instanceof LoadError) return 2;
  if (error instanceof SqlError) return 3;
  if (error instanceof EngineError) return 5;
  return 1;
}

try {
  process.exitCode = await main(parse(process.argv.slice(2)));
} catch (error) {
  process.exitCode = exitCode(error);
  console.error(error.message);
}
