// What Node traces of itself: V8, its event loop, asynchronous hooks, file accesses.
const { readFile } = require('node:fs/promises');
const { performance } = require('node:perf_hooks');

async function step(n) {
  performance.mark(`begin ${n}`);
  await readFile(__filename);
  performance.measure(`step ${n}`, `begin ${n}`);
  return n < 20 ? step(n + 1) : n;
}

step(0).then(() => setTimeout(() => {}, 5));
