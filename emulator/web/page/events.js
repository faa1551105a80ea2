// The last events, newest at the bottom; can be paused and filtered.

import { byId, el } from "./dom.js";
import { store } from "./store.js";

const isLater = (item) => store.atMs !== null && Number(item.dataset.at) * 1000 > store.atMs;

const LINES_MAX = 500;
const NEAR_PX = 40;
const STORM = "request storm: ";
const LINE = /^\s*(\d+\.\d+) {2}(.*)$/;
let waiting = [];
let paused = false;
let following = true; // the newest line stays in sight

export function setUp() {
  byId("pause").addEventListener("click", () => {
    paused = !paused;
    byId("pause").setAttribute("aria-pressed", String(paused));
    showPause();
    if (!paused) flush();
  });
  byId("event-filter").addEventListener("input", () => {
    for (const item of byId("events").children) filter(item);
    toEnd();
  });
  const list = byId("events");
  list.addEventListener("scroll", () => {
    following = isAtEnd(list);
  });
  new ResizeObserver(() => {
    if (following && store.atMs === null) toEnd();
  }).observe(list);
}

function isAtEnd(list) {
  return list.scrollTop + list.clientHeight >= list.scrollHeight - NEAR_PX;
}

/** A new stream begins with what the old one had. */
export function begin() {
  waiting = [];
  byId("events").replaceChildren();
  const longest = Math.max(4, ...Object.keys(store.live.nodes).map((name) => name.length));
  byId("events").style.setProperty("--name-chars", Math.min(longest, 18));
}

export function take(lines) {
  waiting = waiting.concat(lines).slice(-LINES_MAX);
  if (paused) showPause();
  else flush();
}

function showPause() {
  byId("pause").textContent = paused ? (waiting.length ? `Resume (${waiting.length} new)` : "Resume") : "Pause";
}

function flush() {
  const list = byId("events");
  const atEnd = isAtEnd(list);
  list.append(...waiting.map(item));
  waiting = [];
  while (list.childElementCount > LINES_MAX) list.firstElementChild.remove();
  if (atEnd && store.atMs === null) toEnd();
}

/** What came after the instant that is looked at is pale. */
export function look() {
  const items = [...byId("events").children];
  for (const item of items) item.classList.toggle("later", isLater(item));
  const last = items.filter((item) => !item.hidden && !isLater(item)).at(-1);
  if (store.atMs === null) toEnd();
  else if (last) byId("events").scrollTop = last.offsetTop - byId("events").offsetTop - byId("events").clientHeight + last.offsetHeight;
  else byId("events").scrollTop = 0;
}

function toEnd() {
  byId("events").scrollTop = byId("events").scrollHeight;
}

function item(line) {
  const made = el("li", {}, ...columns(line));
  const text = line.toLowerCase();
  made.dataset.text = text;
  made.dataset.at = LINE.exec(line)?.[1] ?? "0";
  made.classList.toggle("later", isLater(made));
  if (text.includes("fault begin") || (text.includes(STORM) && !text.endsWith("is over"))) made.classList.add("begin");
  else if (text.includes("fault end") || text.includes(STORM)) made.classList.add("end");
  filter(made);
  return made;
}

function filter(made) {
  made.hidden = !made.dataset.text.includes(byId("event-filter").value.trim().toLowerCase());
}

/** Time, node, what, and the rest; a line of another form stays in one piece. */
function columns(line) {
  const [, time, rest] = LINE.exec(line) ?? [null, "", line];
  const words = rest.trim().split(/\s{2,}/);
  const node = words[0].split(" ")[0] in store.live.nodes ? words[0].split(" ")[0] : "";
  const said = node ? rest.trim().slice(node.length).trim() : rest.trim();
  const [what, ...text] = said.startsWith(STORM) ? [STORM.slice(0, -2), said.slice(STORM.length)] : said.split(/ {2,}| (?=\S+: )/);
  return [el("span", { class: "t" }, time), el("span", { class: "n" }, node), el("span", { class: "w" }, what.replaceAll("_", " ")), el("span", { class: "x" }, text.join(" "))];
}

