// As much of the protobuf wire format as trace_processor's RPC needs, written and read by hand.
// Integers are Numbers while they are small and BigInts beyond, so that no 64-bit value is ever rounded.

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8');

export const WIRE = {VARINT: 0, I64: 1, LEN: 2, I32: 5};

export const utf8 = (bytes) => decoder.decode(bytes);

export function concat(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// ---- writing

export function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest < 0x80n) return Uint8Array.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

export const intField = (field, value) => concat([varint(field << 3), varint(value)]);
export const bytesField = (field, bytes) => concat([varint((field << 3) | WIRE.LEN), varint(bytes.length), bytes]);
export const stringField = (field, text) => bytesField(field, encoder.encode(text));

// ---- reading

/** Reads a varint at `at`: [value as an unsigned Number or BigInt, where the next thing starts]. */
export function readVarint(bytes, at) {
  let low = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = bytes[at++];
    low |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [low, at];
  }
  let value = BigInt(low);
  for (let shift = 28n; ; shift += 7n) {
    if (at >= bytes.length) throw new Error('protobuf: cut varint');
    const byte = bytes[at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [BigInt.asUintN(64, value), at];
  }
}

/** Yields [field, wire type, value] of each field of a message. */
export function* fields(bytes) {
  for (let at = 0; at < bytes.length;) {
    let key, value;
    [key, at] = readVarint(bytes, at);
    const field = Math.floor(Number(key) / 8);
    const wire = Number(key) & 7;
    if (wire === WIRE.VARINT) {
      [value, at] = readVarint(bytes, at);
    } else {
      let length = wire === WIRE.I64 ? 8 : 4;
      if (wire === WIRE.LEN) {
        [length, at] = readVarint(bytes, at);
        length = Number(length);
      } else if (wire !== WIRE.I64 && wire !== WIRE.I32) {
        throw new Error(`protobuf: wire type ${wire}`);
      }
      value = bytes.subarray(at, at + length);
      at += length;
    }
    yield [field, wire, value];
  }
}

/** The last value of `field`, or undefined. */
export function lastField(bytes, field) {
  let found;
  for (const [f, , value] of fields(bytes)) if (f === field) found = value;
  return found;
}

/** The integers of a repeated field: `value` is one of them or, if packed, the bytes of all. */
export function* repeatedInts(wire, value) {
  if (wire !== WIRE.LEN) {
    yield value;
    return;
  }
  for (let at = 0, int; at < value.length;) {
    [int, at] = readVarint(value, at);
    yield int;
  }
}

/** An unsigned varint as the int64 it stands for; a Number only where that is exact. */
export function toInt64(value) {
  if (typeof value === 'number') return value;
  const signed = BigInt.asIntN(64, value);
  const exact = signed >= BigInt(Number.MIN_SAFE_INTEGER) && signed <= BigInt(Number.MAX_SAFE_INTEGER);
  return exact ? Number(signed) : signed;
}
