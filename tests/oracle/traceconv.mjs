#!/usr/bin/env node
// Perfetto's own converter (traceconv.wasm of the UI build). To see every packet of a trace: traceconv.mjs text TRACE
import fs from 'node:fs';
import path from 'node:path';
import {findUiDir, runWorkerBundle} from './ui_build.mjs';

const USAGE = `usage: node traceconv.mjs MODE IN [OUT]      (no OUT, or -: stdout)
  text      a Perfetto trace as protobuf text    binary    protobuf text as a Perfetto trace
  json      any trace as Trace Event JSON        systrace  any trace as ftrace text
exit: 0 ok, 1 usage, 2 the conversion failed`;

const MODES = ['text', 'binary', 'json', 'systrace'];

const [mode, input, output = '-'] = process.argv.slice(2);
if (!MODES.includes(mode) || !input) {
  console.error(USAGE);
  process.exit(1);
}

// As much of a Blob and of its reader as the glue's file system asks for.
const blobOf = (bytes) => ({size: bytes.length, bytes, slice: (from, to) => blobOf(bytes.subarray(from, to))});
class FileReaderSync {
  readAsArrayBuffer({bytes}) {
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
}

const log = [];
const say = (...words) => log.push(words.join(' '));
let failure = 'no output';

const worker = runWorkerBundle(path.join(findUiDir(), 'traceconv_bundle.js'), {
  FileReaderSync,
  console: {log: say, warn: say, error: say, info: say, debug: say},
});

worker.postMessage = (message) => {
  if (message.kind === 'downloadFile') {
    fs.writeFileSync(output === '-' ? 1 : output, Buffer.from(message.buffer));
    failure = null;
  } else if (message.kind === 'updateStatus') {
    say(message.status);
  } else if (message.kind === 'error') {
    failure = JSON.stringify(message.error);
  }
};
process.on('unhandledRejection', (error) => {
  failure = String(error?.message ?? error);
});
process.on('exit', () => {
  if (failure === null) return;
  console.error([...log, failure].join('\n'));
  process.exitCode = 2;
});

// The bundle lets only 'json' and 'systrace' through its check of the format and then hands on what it reads
// from the field a second time: the converter itself knows the other modes.
let reads = 0;
const request = {
  kind: 'ConvertTraceAndDownload',
  trace: blobOf(fs.readFileSync(input)),
  get format() {
    return ++reads === 1 ? 'json' : mode;
  },
};
worker.onmessage({data: request});
