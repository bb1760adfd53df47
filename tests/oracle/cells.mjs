// The cells of a query result: decoded from trace_processor's batches, printed as JSON.
//
// An integer is a Number or, beyond 2^53, a BigInt; a double is a `Real` (so that 1.0 does not turn into the
// integer 1); a blob is a Uint8Array; NULL is null. As JSON an integer is its exact literal (a reader with
// 64-bit integers loses nothing), a Real always has a point or an exponent, a blob is {"$blob": hex}.
import {fields, repeatedInts, toInt64, utf8} from './protobuf.mjs';

export class Real {
  constructor(value) {
    this.value = value;
  }
}

// QueryResult.CellsBatch: its fields, and the values of CellType.
const BATCH = {CELLS: 1, VARINTS: 2, FLOATS: 3, BLOBS: 4, STRINGS: 5};
const CELL = {NULL: 1, INT: 2, REAL: 3, STRING: 4, BLOB: 5};

/** Appends the cells of one CellsBatch to `out`, row by row. */
export function decodeBatch(batch, out) {
  const types = [], ints = [], reals = [], blobs = [];
  let strings = [];
  for (const [field, wire, value] of fields(batch)) {
    if (field === BATCH.CELLS) for (const type of repeatedInts(wire, value)) types.push(type);
    else if (field === BATCH.VARINTS) for (const int of repeatedInts(wire, value)) ints.push(toInt64(int));
    else if (field === BATCH.FLOATS) for (const real of readReals(value)) reals.push(real);
    else if (field === BATCH.BLOBS) blobs.push(value.slice());
    else if (field === BATCH.STRINGS) strings = utf8(value).split('\0');
  }
  const next = {
    [CELL.NULL]: () => null,
    [CELL.INT]: taker(ints),
    [CELL.REAL]: taker(reals),
    [CELL.STRING]: taker(strings),
    [CELL.BLOB]: taker(blobs),
  };
  for (const type of types) {
    if (!next[type]) throw new Error(`query result: cell type ${type}`);
    out.push(next[type]());
  }
}

function taker(values) {
  let at = 0;
  return () => values[at++];
}

function* readReals(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + 8 <= bytes.length; at += 8) yield new Real(view.getFloat64(at, true));
}

export function cellJson(cell) {
  if (typeof cell === 'bigint') return cell.toString();
  if (cell instanceof Real) return realJson(cell.value);
  if (cell instanceof Uint8Array) return JSON.stringify({$blob: Buffer.from(cell).toString('hex')});
  return JSON.stringify(cell);
}

function realJson(value) {
  const text = String(value);
  if (!Number.isFinite(value)) return JSON.stringify(text);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** A row as a JSON array, or as an object if its columns' names are given. */
export function rowJson(row, columns) {
  if (!columns) return `[${row.map(cellJson).join(',')}]`;
  return `{${row.map((cell, i) => `${JSON.stringify(columns[i])}:${cellJson(cell)}`).join(',')}}`;
}
