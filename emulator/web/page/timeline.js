// The time line: marks and series on one axis, and a handle that shows the page as it was at an instant.

import { byId, count, el, svg } from "./dom.js";
import { showLive, showPast, store } from "./store.js";
import { past } from "./wire.js";

const EDGE_PX = 6; // half of the handle, which stands between the ends of the axis
const LANES = 2;
const LEAST_MS = 30_000;
const STEP_MS = 200;
const COLOURS = 8;
const TICK_PX = 80;
const STRIPS = {
  lag: (entry) => entry.lag,
  "requests/s": (entry) => chosen(entry.counts, ["requests with messages", "requests without messages", "messages stored"]),
  trouble: (entry) => chosen(entry.counts, ["failed sends", "two owners", "no owner", "views that differ"]),
};
const AXIS_STEPS_S = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

let afterwards = () => {};
let wantedMs = null; // the instant that is asked for next
let asking = false;
let hoverMs = null;
let drawn = "";
const elements = new Map(); // of marks, by key
let lags = []; // groups and topics in the order of their colours

const chosen = (counts, names) => Object.fromEntries(names.filter((name) => name in counts).map((name) => [name, counts[name]]));
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

export function setUp(changed) {
  afterwards = changed;
  const handle = byId("instant");
  handle.addEventListener("input", () => {
    if (Number(handle.value) > Number(handle.max) - STEP_MS) backToLive();
    else look(Number(handle.value));
  });
  handle.addEventListener("pointermove", (event) => {
    hoverMs = at(event.offsetX);
    drawReadout();
  });
  handle.addEventListener("pointerleave", () => {
    hoverMs = null;
    drawReadout();
  });
  byId("back-to-live").addEventListener("click", backToLive);
  byId("span").addEventListener("change", draw);
  new ResizeObserver(draw).observe(byId("plot"));
}

/** Ask for an instant; while an answer is awaited only the last wish counts. */
async function look(ms) {
  wantedMs = ms;
  byId("instant").dataset.wanted = String(ms);
  if (asking) return;
  asking = true;
  while (wantedMs !== null) {
    const asked = wantedMs;
    wantedMs = null;
    const found = await past(asked);
    if (byId("instant").dataset.wanted === "") continue; // live again meanwhile
    if (found === null) {
      byId("instant").dataset.wanted = store.atMs ?? "";
      continue;
    }
    afterwards(...showPast(found));
  }
  asking = false;
}

export function backToLive() {
  wantedMs = null;
  byId("instant").dataset.wanted = "";
  afterwards(...showLive());
}

/** The ends of the axis. */
function span() {
  const end = Math.max(store.nowMs, store.fromMs + LEAST_MS);
  const shown = Number(byId("span").value) * 1000;
  return [shown ? Math.max(store.fromMs, Math.floor((end - shown) / 1000) * 1000) : store.fromMs, end];
}

function scale() {
  const [from, to] = span();
  const width = byId("plot").clientWidth - 2 * EDGE_PX;
  return (ms) => EDGE_PX + (Math.min(Math.max(ms, from), to) - from) * (width / (to - from));
}

function at(x) {
  const [from, to] = span();
  const width = byId("plot").clientWidth - 2 * EDGE_PX;
  return from + Math.min(1, Math.max(0, (x - EDGE_PX) / width)) * (to - from);
}

/** Marks and series again where something changed, and the handle always. */
export function draw() {
  if (byId("plot").clientWidth === 0) return; // hidden
  drawHandle();
  drawReadout();
  const [from, to] = span();
  const now = JSON.stringify([byId("plot").clientWidth, byId("strips").clientHeight, from, Math.floor(store.nowMs / 1000)]);
  if (now === drawn) return;
  drawn = now;
  drawMarks(from, to);
  drawStrips(from, to);
}

export function redraw() {
  drawn = "";
  draw();
}

function drawHandle() {
  const [from, to] = span();
  const handle = byId("instant");
  const live = store.atMs === null;
  Object.assign(handle, { min: from, max: to, step: STEP_MS });
  handle.value = handle.dataset.wanted || store.nowMs;
  handle.setAttribute("aria-valuetext", live ? "live" : seconds(store.atMs));
  document.body.dataset.looking = live ? "live" : "back";
  byId("clock").hidden = !live;
  byId("looking").hidden = live;
  if (!live) byId("looking-words").textContent = `looking at ${seconds(store.atMs)}, live is ${seconds(store.nowMs)}`;
}

// --- marks ---------------------------------------------------------------------------------

/** Elements stay while their marks do, so that focus and half a click are not lost. */
function drawMarks(from, to) {
  const x = scale();
  const ends = Array(LANES).fill(-Infinity);
  const shown = new Map(Object.entries(store.marks).filter(([, mark]) => (mark.to_ms ?? to) >= from));
  for (const [key, element] of elements) {
    if (shown.has(key)) continue;
    element.remove();
    elements.delete(key);
  }
  for (const [key, mark] of shown) {
    if (!elements.has(key)) {
      elements.set(key, mark.what === "process" ? el("span", { class: "point" }) : el("button", { type: "button" }));
      byId("marks").append(elements.get(key));
    }
    if (mark.what === "process") placePoint(elements.get(key), mark, x);
    else placeSpan(elements.get(key), mark, x, ends);
  }
}

function placePoint(element, mark, x) {
  element.title = `${seconds(mark.from_ms)}  ${mark.text}`;
  element.dataset.event = mark.text.split(" ").at(-1);
  element.style.setProperty("left", `${x(mark.from_ms)}px`);
}

function placeSpan(element, mark, x, ends) {
  const left = x(mark.from_ms);
  const right = Math.max(left + 4, x(mark.to_ms ?? store.nowMs));
  const free = ends.findIndex((end) => end <= left);
  const lane = free < 0 ? LANES - 1 : free;
  ends[lane] = right;
  const until = mark.to_ms === null ? "goes on" : `until ${seconds(mark.to_ms)}`;
  element.className = `span span-${mark.what}`;
  element.title = `${mark.text}\nfrom ${seconds(mark.from_ms)}, ${until}`;
  element.textContent = mark.text.replace("request storm: ", "storm: ");
  element.onclick = () => look(mark.shown_ms);
  element.style.setProperty("left", `${left}px`);
  element.style.setProperty("width", `${right - left}px`);
  element.style.setProperty("--lane", lane);
}

// --- series --------------------------------------------------------------------------------

function buckets(from, to) {
  return Object.entries(store.seconds)
    .map(([begin, entry]) => ({ begin: begin * 1000, end: (Number(begin) + entry.width_s) * 1000, ...entry }))
    .filter((one) => one.end > from && one.begin < to);
}

function drawStrips(from, to) {
  const x = scale();
  const box = byId("strips");
  const [width, height] = [box.clientWidth, box.clientHeight];
  const names = Object.keys(STRIPS);
  const axisPx = 15;
  const each = (height - axisPx) / names.length;
  const shown = buckets(from, to);
  lags = series(Object.values(store.seconds).map((entry) => entry.lag));
  const storms = Object.values(store.marks).filter((mark) => mark.what === "storm");
  const strips = names.map((name, i) => {
    const top = i * each;
    const values = shown.map((one) => STRIPS[name](one));
    const most = Math.max(0, ...values.flatMap((one) => Object.values(one)));
    byId(`most-${i}`).textContent = most ? `max ${most.toLocaleString("en")}` : "none";
    const back = svg("rect", { class: "lane", x: EDGE_PX, y: top + 1, width: width - 2 * EDGE_PX, height: each - 3 });
    const bands = i !== 1 ? [] : storms.map((mark) => svg("rect", { class: "storm", x: x(mark.from_ms), y: top + 1, width: x(mark.to_ms ?? store.nowMs) - x(mark.from_ms), height: each - 3 }));
    const lines = series(values).map((line) => path(line, shown, values, x, top + 2, each - 5, most));
    return svg("g", {}, back, ...bands, ...lines);
  });
  box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  box.replaceChildren(...ticks(from, to, x, height - axisPx), ...strips);
}

const nth = (line) => Math.max(0, lags.indexOf(line)) % COLOURS;

const series = (values) => [...new Set(values.flatMap((one) => Object.keys(one)))].sort();

function path(name, shown, values, x, top, height, most) {
  const y = (value) => (top + height - (value / most) * height).toFixed(1);
  const parts = [];
  let last = null;
  shown.forEach((one, i) => {
    const value = y(values[i][name] ?? 0);
    parts.push(last === one.begin ? `V${value}` : `M${x(one.begin).toFixed(1)},${value}`, `H${x(one.end).toFixed(1)}`);
    last = one.end;
  });
  return svg("path", { class: "line", "data-series": name, "data-nth": nth(name), d: parts.join("") });
}

function ticks(from, to, x, bottom) {
  const most = byId("plot").clientWidth / TICK_PX;
  const step = (AXIS_STEPS_S.find((one) => (to - from) / 1000 / one <= most) ?? AXIS_STEPS_S.at(-1)) * 1000;
  const found = [];
  for (let ms = Math.ceil(from / step) * step; ms <= to; ms += step) {
    const place = x(ms);
    const near = place > byId("plot").clientWidth - 24;
    found.push(svg("line", { class: "grid", x1: place, x2: place, y1: 0, y2: bottom }));
    found.push(svg("text", { class: "tick", x: place, y: bottom + 12, "text-anchor": place < 24 ? "start" : near ? "end" : "middle" }, `${ms / 1000} s`));
  }
  return found;
}

/** What was counted at the handle, or where the pointer is; it is the legend, too. */
function drawReadout() {
  const shown = Object.entries(store.seconds);
  const ms = hoverMs ?? store.atMs ?? Infinity;
  const found = shown.filter(([begin]) => begin * 1000 <= ms).at(-1) ?? shown.at(-1);
  if (!found) {
    byId("readout").replaceChildren("nothing is counted yet");
    return;
  }
  const [begin, entry] = found;
  const within = entry.width_s === 1 ? "" : ` (most in ${count(entry.width_s, "second")})`;
  const parts = Object.entries(STRIPS).flatMap(([name, of]) => Object.entries(of(entry)).map(([line, value]) => item(name === "lag" ? `lag ${line}` : line, line, value)));
  const busiest = entry.busiest ? [el("span", { class: "busiest", title: entry.busiest[1] }, `busiest: ${entry.busiest[1]}, ${entry.busiest[0].toLocaleString("en")}/s`)] : [];
  byId("readout").replaceChildren(el("b", {}, `${begin} s${within}`), ...parts, ...busiest);
}

function item(text, line, value) {
  const swatch = el("i", { class: "swatch", "data-series": line, "data-nth": nth(line) });
  return el("span", { class: "reading" }, swatch, `${text} `, el("b", {}, value.toLocaleString("en")));
}
