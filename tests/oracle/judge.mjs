#!/usr/bin/env node
// The judge as a server over stdin and stdout; one engine loads the traces of a whole test run.
//
// Says hello once:   {"ready": "<version of trace_processor>"}  or  {"error": "why not"}
// Then, a line for a line:
//   request  {"id": 1, "trace": "/path", "sql": ["select ...", ...]}
//   answer   {"id": 1, "error": null, "results": [{"columns": [...], "rows": [[...], ...]}, ...],
//             "complaints": [stat, ...], "stats": [stat, ...]}
//   stat     {"name", "idx", "severity", "source", "value"}
// An error is text that starts with its kind: "load: ", "sql: ", "engine: ", "request: ". Cells are as cells.mjs says.
// Ends when stdin does.
import fs from 'node:fs';
import readline from 'node:readline';
import {rowJson} from './cells.mjs';
import {isComplaint, statJson} from './stats.mjs';
import {EngineError, LoadError, SqlError, TraceProcessor} from './trace_processor.mjs';

class RequestError extends Error {}

let engine = null;

function parseRequest(line) {
  try {
    const request = JSON.parse(line);
    if (typeof request.trace === 'string' && Array.isArray(request.sql)) return request;
  } catch { /* said below */ }
  throw new RequestError(`not a request: ${line.slice(0, 200)}`);
}

async function judge({trace, sql}) {
  engine ??= await TraceProcessor.create();
  engine.load(trace);
  const results = sql.map((statement) => engine.query(statement));
  const stats = engine.stats();
  return {results, stats};
}

const list = (items, toJson) => `[${items.map(toJson).join(',')}]`;
const resultJson = ({columns, rows}) =>
  `{"columns":${JSON.stringify(columns)},"rows":${list(rows, (row) => rowJson(row))}}`;

function answerJson(id, error, {results = [], stats = []} = {}) {
  return `{"id":${JSON.stringify(id)},"error":${JSON.stringify(error)},"results":${list(results, resultJson)},` +
    `"complaints":${list(stats.filter(isComplaint), statJson)},"stats":${list(stats, statJson)}}`;
}

function errorText(error) {
  if (error instanceof LoadError || error.syscall) return `load: ${error.message}`;
  if (error instanceof SqlError) return `sql: ${error.message}`;
  if (error instanceof RequestError) return `request: ${error.message}`;
  return `engine: ${error.message}`;
}

async function answer(line) {
  let id = null;
  try {
    const request = parseRequest(line);
    id = request.id;
    return answerJson(id, null, await judge(request));
  } catch (error) {
    if (error instanceof EngineError) engine = null;   // the next request starts a new one
    return answerJson(id, errorText(error));
  }
}

// Written synchronously: an answer is out before the next request is looked at, and none is lost at exit.
function say(line) {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length;) at += fs.writeSync(1, bytes, at);
}

try {
  engine = await TraceProcessor.create();
} catch (error) {
  say(JSON.stringify({error: error.message}));
  process.exit(1);
}
say(JSON.stringify({ready: engine.version}));
for await (const line of readline.createInterface({input: process.stdin})) say(await answer(line));
