// Where the Perfetto UI build lies, and how one of its web-worker bundles is run in Node.
import fs from 'node:fs';
import path from 'node:path';
import v8 from 'node:v8';
import {fileURLToPath} from 'node:url';

// V8 would spend more time on optimising functions than a hundred small traces take without: large ones repay it.
v8.setFlagsFromString('--wasm-tiering-budget=300000000');

const HERE = path.dirname(fileURLToPath(import.meta.url));

/** The directory that holds engine_bundle.js: PERFETTO_UI_DIR, else the newest one that setup.sh made. */
export function findUiDir() {
  const given = process.env.PERFETTO_UI_DIR;
  const base = path.join(HERE, 'perfetto-ui');
  const candidates = given ? [given] : versionDirs(base);
  const found = candidates.find((dir) => fs.existsSync(path.join(dir, 'engine_bundle.js')));
  if (found) return found;
  throw new Error(`no Perfetto UI build in ${given ?? base}: run tests/oracle/setup.sh`);
}

function versionDirs(base) {
  if (!fs.existsSync(base)) return [];
  const names = fs.readdirSync(base).filter((name) => /^v\d+/.test(name));
  return names.sort().reverse().map((name) => path.join(base, name));
}

/**
 * Runs a worker bundle as a plain function whose parameters shadow Node's globals, so that its emscripten
 * glue believes it is in a web worker (WorkerGlobalScope is there; process, window and require are not).
 * Returns the worker's `self`, with `memory` if its module exports one; `globals` adds to or replaces what
 * the bundle sees.
 */
export function runWorkerBundle(file, globals) {
  const self = {location: {href: `http://localhost/${path.basename(file)}`}, postMessage() {}, addEventListener() {}};
  const scope = {
    self,
    location: self.location,
    postMessage: (...args) => self.postMessage(...args),
    addEventListener() {},
    importScripts() {},
    WorkerGlobalScope: function WorkerGlobalScope() {},
    XMLHttpRequest: siblingFileRequest(path.dirname(file)),
    WebAssembly: wasm32((memory) => { self.memory = memory; }),
    ...Object.fromEntries(NODE_GLOBALS.map((name) => [name, undefined])),
    ...globals,
  };
  new Function(...Object.keys(scope), fs.readFileSync(file, 'utf8'))(...Object.values(scope));
  return self;
}

const NODE_GLOBALS = ['window', 'document', 'process', 'require', 'module', 'exports', 'define', 'global', 'Buffer'];

// The glue reads its .wasm by a synchronous XMLHttpRequest: answered from the bundle's directory.
function siblingFileRequest(dir) {
  return class XMLHttpRequest {
    open(_method, url) {
      this.file = path.join(dir, path.basename(String(url).replace(/[?#].*$/, '')));
    }
    send() {
      const bytes = fs.readFileSync(this.file);
      this.status = 200;
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    }
  };
}

// The glue takes the memory64 build where the engine knows memory64 (Node >= 24). The 32-bit build (4 GiB of
// heap) is taken everywhere, so that every machine has the same judge: the 23-byte module that the glue
// probes with (one memory section whose limits carry the 64-bit flag) is refused. Says what memory it has.
function wasm32(onMemory) {
  function Module(bytes) {
    if (bytes.byteLength === 23 && bytes[8] === 5 && bytes[11] === 4) {
      throw new WebAssembly.CompileError('memory64 is not used');
    }
    return new WebAssembly.Module(bytes);
  }
  function Instance(module, imports) {
    const instance = new WebAssembly.Instance(module, imports);
    if (instance.exports.memory) onMemory(instance.exports.memory);
    return instance;
  }
  return Object.create(WebAssembly, {Module: {value: Module}, Instance: {value: Instance}});
}
