#!/usr/bin/env node
// Opens a trace in the real Perfetto UI, in headless Chromium, and takes a picture of it.
// Needs: apt-get install chromium; npm install (in this directory, for playwright-core). No network after that.
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import {parseArgs} from 'node:util';
import {findUiDir} from './ui_build.mjs';

const USAGE = `usage: node ui_shot.mjs [options] TRACE OUT.png
  --size WxH         viewport (1600x900)
  --vis START,END    the visible window, in the trace's ns
  --select TS,DUR    select the slice with this ts and dur
  --expand           expand all groups of tracks
  --query SQL        run SQL in the UI's query box on load
  --cmd ID[=JSON]    run a UI command after load (repeatable), e.g. 'dev.perfetto.PinTracksByRegex=[".*main.*"]'
  --click TEXT       click the first element with this text after load (repeatable)
  --at X,Y           click at this place (repeatable), after those clicks
  --fill HINT=TEXT   type a text and Enter into the first field with this hint (repeatable), after the clicks
  --timeout SECONDS  (90)
  --chrome PATH      (/usr/bin/chromium)
  --verbose          the page's console to stderr
Prints one line of JSON: {title, type, start, end, importErrors, tracks, dialog, pageErrors}
exit: 0 ok, 1 usage, 2 the UI showed an error, 3 time-out or anything else`;

const OPTIONS = {
  size: {type: 'string', default: '1600x900'},
  vis: {type: 'string'},
  select: {type: 'string'},
  expand: {type: 'boolean'},
  query: {type: 'string'},
  cmd: {type: 'string', multiple: true, default: []},
  click: {type: 'string', multiple: true, default: []},
  at: {type: 'string', multiple: true, default: []},
  fill: {type: 'string', multiple: true, default: []},
  timeout: {type: 'string', default: '90'},
  chrome: {type: 'string', default: '/usr/bin/chromium'},
  verbose: {type: 'boolean'},
};

const MIME = {
  '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json',
  '.png': 'image/png', '.wasm': 'application/wasm', '.woff2': 'font/woff2',
};

const CHROMIUM_ARGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

function parse(args) {
  try {
    const {values, positionals} = parseArgs({args, options: OPTIONS, allowPositionals: true});
    if (positionals.length === 2) return {...values, trace: positionals[0], png: positionals[1]};
  } catch (error) {
    console.error(error.message);
  }
  console.error(USAGE);
  process.exit(1);
}

/** Serves the UI build and the trace on a free port of 127.0.0.1. */
async function serve(root, trace) {
  const traceUrl = `/trace/${path.basename(trace)}`;
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    const file = url === traceUrl ? trace : path.join(root, path.normalize(url === '/' ? '/index.html' : url));
    fs.readFile(file, (error, bytes) => {
      const type = file === trace ? undefined : MIME[path.extname(file)];
      response.writeHead(error ? 404 : 200, {'Content-Type': type ?? 'application/octet-stream', 'Cache-Control': 'no-cache'});
      response.end(bytes);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.close();
    server.closeAllConnections?.();
  };
  return {origin, close, traceUrl: origin + encodeURI(traceUrl)};
}

async function openBrowser(options, profile, timeout, origin) {
  const {chromium} = await import('playwright-core').catch(() => {
    throw new Error('playwright-core is missing: run npm install in tests/oracle');
  });
  const [width, height] = options.size.split('x').map(Number);
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: options.chrome,
    headless: true,
    viewport: {width, height},
    serviceWorkers: 'block',
    timeout,
    args: CHROMIUM_ARGS,
  });
  // Nothing but this server: no other host, and no look for a native trace_processor on this machine.
  const elsewhere = (url) => url.origin !== origin && /^(https?|wss?):$/.test(url.protocol);
  await browser.route(elsewhere, (route) => route.abort());
  await browser.routeWebSocket(/.*/, (socket) => socket.close());
  return browser;
}

function pageUrl(options, server) {
  const query = [`url=${encodeURIComponent(server.traceUrl)}`];
  if (options.vis) {
    const [start, end] = options.vis.split(',');
    query.push(`visStart=${start}`, `visEnd=${end}`);
  }
  if (options.select) {
    const [ts, dur] = options.select.split(',');
    query.push(`ts=${ts}`, `dur=${dur}`);
  }
  if (options.query) query.push(`query=${encodeURIComponent(options.query)}`);
  return `${server.origin}/?testing=1#!/?${query.join('&')}`;
}

// The functions below that are handed to `page` run in the UI.

const loadedOrFailed = () =>
  (self.app?.trace && typeof waitForPerfettoIdle === 'function' && !self.app.isLoadingTrace) ||
  document.querySelector('.pf-modal-dialog');

const idle = (page) => page.evaluate(() =>
  Promise.race([waitForPerfettoIdle(300), new Promise((resolve) => setTimeout(resolve, 20000))]));

const dialog = (page) => page.evaluate(() => document.querySelector('.pf-modal-dialog')?.innerText);

const traceInfo = (page) => page.evaluate(() => {
  const info = self.app.trace?.traceInfo;
  const text = (value) => (value === undefined ? undefined : String(value));
  const titles = [...document.querySelectorAll('.pf-track__title')];
  return {
    title: info?.traceTitle,
    type: info?.traceType,
    start: text(info?.start),
    end: text(info?.end),
    importErrors: info?.importErrors,
    tracks: titles.map((element) => element.innerText.trim().split('\n').pop()),
  };
});

async function act(page, options) {
  await idle(page);
  const commands = options.expand ? ['dev.perfetto.ExpandAllGroups', ...options.cmd] : options.cmd;
  for (const command of commands) {
    const [, id, json] = /^([^=]*)=?(.*)$/s.exec(command);
    await page.evaluate(([id, args]) => self.app.commands.runCommand(id, ...args), [id, json ? JSON.parse(json) : []]);
    await idle(page);
  }
  for (const text of options.click) {
    await page.getByText(text).first().click();
    await idle(page);
  }
  for (const place of options.at) {
    const [x, y] = place.split(',').map(Number);
    await page.mouse.click(x, y);
    await page.waitForTimeout(500);
  }
  for (const filled of options.fill) {
    const [, hint, text] = /^([^=]*)=?(.*)$/s.exec(filled);
    const field = page.getByPlaceholder(hint).first();
    await field.fill(text);
    await field.press('Enter');
    await field.blur(); // closes the list of hints below it
    await idle(page);
  }
  await page.mouse.move(0, 0);
  await idle(page);
}

async function shoot(browser, server, options, timeout) {
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.setDefaultTimeout(timeout);
  const pageErrors = [];
  page.on('pageerror', (error) => pageErrors.push(String(error)));
  if (options.verbose) page.on('console', (message) => console.error(`[${message.type()}] ${message.text()}`));
  await page.addInitScript(() => localStorage.setItem('dismissedPanningHint', 'true'));
  await page.goto(pageUrl(options, server));
  await page.waitForFunction(loadedOrFailed, null, {timeout});
  if (!(await dialog(page))) await act(page, options);
  const failed = await dialog(page);
  const info = await traceInfo(page);
  await page.screenshot({path: options.png, animations: 'disabled'});
  console.log(JSON.stringify({...info, dialog: failed, pageErrors}));
  return failed ? 2 : 0;
}

const options = parse(process.argv.slice(2));
const timeout = Number(options.timeout) * 1000;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'ui_shot_'));
let server, browser;
try {
  server = await serve(path.dirname(findUiDir()), options.trace);   // the parent holds index.html
  browser = await openBrowser(options, profile, timeout, server.origin);
  process.exitCode = await shoot(browser, server, options, timeout);
} catch (error) {
  console.error(error.message);
  process.exitCode = 3;
} finally {
  await browser?.close();
  server?.close();
  fs.rmSync(profile, {recursive: true, force: true, maxRetries: 3});
}
