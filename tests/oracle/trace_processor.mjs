// Perfetto's trace_processor as a JavaScript object: the UI's engine bundle, driven by its byte-stream RPC
// (protos/perfetto/trace_processor/trace_processor.proto). One engine loads any number of traces in turn.
import fs from 'node:fs';
import path from 'node:path';
import {decodeBatch} from './cells.mjs';
import {bytesField, concat, fields, intField, lastField, stringField, utf8} from './protobuf.mjs';
import {STATS_SQL, statOf} from './stats.mjs';
import {findUiDir, runWorkerBundle} from './ui_build.mjs';

// TraceProcessorRpcStream.msg, the fields of TraceProcessorRpc, and of each method its number and the fields
// of its argument and its result.
const STREAM_MSG = 1;
const RPC = {SEQ: 1, METHOD: 2, INVALID_METHOD: 4, FATAL_ERROR: 5};
const APPEND = {number: 1, argument: 101, result: 201};
const FINALIZE = {number: 2, result: 212};
const QUERY = {number: 3, argument: 103, result: 203};
const STATUS = {number: 10, result: 210};

const LOAD_CHUNK = 32 << 20;   // a trace is fed in pieces: Node cannot read a file over 2 GiB in one
// A trace of Hairline begins with one of these: FXT's magic number, or a packet with Perfetto's marker. The first
// bytes of a trace take the engine as long as all else of a small one: its state after them is kept.
const HEADS = ['1000044678541600', '0a155001a2021082477a76b28d42ba81dc33326d57a079']
  .map((hex) => Buffer.from(hex, 'hex'));
const LOG_LINES = 200;         // of the engine's own log, the last ones are kept for the report of a crash

/** The trace itself is at fault: it was not accepted. */
export class LoadError extends Error {}
/** A query is at fault. */
export class SqlError extends Error {}
/** The engine is at fault or broken by the trace; it cannot be used any more. */
export class EngineError extends Error {}

export class TraceProcessor {
  #port;
  #answer = [];
  #seq = 0;
  #log = [];
  #memory;
  #fresh;               // the state before the first trace
  #begun = new Map();   // and after each of HEADS that a trace began with

  static async create() {
    const engine = new TraceProcessor();
    const say = (...words) => {
      engine.#log.push(words.join(' '));
      if (engine.#log.length > LOG_LINES) engine.#log.shift();
    };
    const console = {log: say, warn: say, error: say, info: say, debug: say};
    const worker = runWorkerBundle(path.join(findUiDir(), 'engine_bundle.js'), {console});
    engine.#port = {postMessage: (bytes) => bytes?.length && engine.#answer.push(bytes)};
    worker.onmessage({data: engine.#port});
    await new Promise((resolve) => setImmediate(resolve));   // the glue starts its runtime in a promise
    engine.version = utf8(lastField(engine.#call(STATUS)[0], 2));
    engine.#memory = worker.memory;
    engine.#fresh = engine.#state();
    return engine;
  }

  /** Loads a trace file in place of the one before. */
  load(file) {
    const head = HEADS.find((head) => head.equals(firstBytes(file, head.length)));
    this.#reset(this.#stateAfter(head));
    for (const piece of filePieces(file, head?.length ?? 0)) this.#append(piece);
    this.#check(this.#call(FINALIZE)[0], 1, 'end of file: ');
  }

  #stateAfter(head) {
    if (!head) return this.#fresh;
    if (!this.#begun.has(head)) {
      this.#reset(this.#fresh);
      this.#append(head);
      this.#begun.set(head, this.#state());
    }
    return this.#begun.get(head);
  }

  #append(piece) {
    this.#check(this.#call(APPEND, piece)[0], 2, '');
  }

  // All state is in the module's memory. To put that back is several times as fast as the engine's own reset.
  #state() {
    return {bytes: new Uint8Array(this.#memory.buffer).slice(), seq: this.#seq};
  }

  #reset({bytes: kept, seq}) {
    const bytes = new Uint8Array(this.#memory.buffer);
    bytes.set(kept);
    bytes.fill(0, kept.length);
    this.#seq = seq;
  }

  #check(result, errorField, where) {
    const error = result && lastField(result, errorField);
    if (error?.length) throw new LoadError(where + utf8(error));
  }

  /** The rows of a query (of its last statement): {columns: [name], rows: [[cell]]}. */
  query(sql) {
    const columns = [], cells = [];
    for (const result of this.#call(QUERY, stringField(1, sql))) {
      for (const [field, , value] of fields(result)) {
        if (field === 1) columns.push(utf8(value));
        else if (field === 2 && value.length) throw new SqlError(`${utf8(value)}\n  in: ${sql}`);
        else if (field === 3) decodeBatch(value, cells);
      }
    }
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
    return {columns, rows};
  }

  /** Every counter of the importer that is not zero: [{name, idx, severity, source, value}]. */
  stats() {
    return this.query(STATS_SQL).rows.map(statOf);
  }

  // One RPC: the result messages of its answer.
  #call(method, argument) {
    const request = [intField(RPC.SEQ, this.#seq++), intField(RPC.METHOD, method.number)];
    if (argument) request.push(bytesField(method.argument, argument));
    const results = [];
    for (const [field, , message] of fields(this.#exchange(bytesField(STREAM_MSG, concat(request))))) {
      if (field !== STREAM_MSG) continue;
      for (const [key, , value] of fields(message)) {
        if (key === RPC.FATAL_ERROR) throw new EngineError(utf8(value));
        if (key === RPC.INVALID_METHOD) throw new EngineError(`method ${method.number} is not known`);
        if (key === method.result) results.push(value);
      }
    }
    return results;
  }

  #exchange(bytes) {
    this.#answer = [];
    try {
      this.#port.onmessage({data: bytes});
    } catch (error) {
      throw new EngineError([`${error.stack ?? error}`, ...this.#log.slice(-20)].join('\n'));
    }
    return concat(this.#answer);
  }
}

function firstBytes(file, length) {
  for (const piece of filePieces(file, 0, length)) return piece;
  return Buffer.alloc(0);
}

function* filePieces(file, from, longest = LOAD_CHUNK) {
  const fd = fs.openSync(file, 'r');
  const buffer = Buffer.alloc(Math.min(longest, Math.max(fs.fstatSync(fd).size, 1)));
  try {
    for (let n, at = from; (n = fs.readSync(fd, buffer, 0, buffer.length, at)) > 0; at += n) yield buffer.subarray(0, n);
  } finally {
    fs.closeSync(fd);
  }
}
