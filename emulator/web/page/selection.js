// Which nodes are selected (two at most), and the buttons for what can be done to them.

import { byId, el } from "./dom.js";
import { store } from "./store.js";

const ABOUT_ONE = {
  running: ["suspend", "stop", "kill", "power-off"],
  suspended: ["resume", "kill", "power-off"],
  down: ["start"],
  "powered off": ["start"],
};
const IN_WORDS = { "power-off": "Power off" };

export const selected = [];
let afterwards = () => {};
let sayLine = () => {};

export function setUp(say, changed) {
  sayLine = say;
  afterwards = changed;
}

/** Select a node or let go of it; a third one takes the place of the first. */
export function toggle(name) {
  const at = selected.indexOf(name);
  if (at >= 0) selected.splice(at, 1);
  else selected.push(name);
  if (selected.length > 2) selected.shift();
  afterwards();
}

export function clear() {
  selected.length = 0;
  afterwards();
}

let drawn = "";

export function draw() {
  for (const gone of selected.filter((name) => !(name in store.nodes))) selected.splice(selected.indexOf(gone), 1);
  const now = JSON.stringify([selected, selected.map((name) => store.nodes[name].state), store.verbs.length]);
  if (now === drawn) return; // what is typed or focused there stays
  drawn = now;
  const bar = byId("actions");
  bar.dataset.count = String(selected.length);
  if (selected.length === 0) bar.replaceChildren(el("p", { class: "hint" }, "Nothing is selected."));
  else bar.replaceChildren(letGo(), ...(selected.length === 1 ? aboutOne(selected[0]) : aboutTwo(...selected)));
}

function aboutOne(name) {
  const { role, ip, state } = store.nodes[name];
  const who = el("p", { class: "who" }, el("b", {}, name), el("span", { class: "hint" }, ` ${role} · ${ip} · ${state}`));
  return [who, ...(ABOUT_ONE[state] ?? []).filter(known).map((verb) => verbButton(verb, `${verb} ${name}`))];
}

function aboutTwo(one, other) {
  const who = el("p", { class: "who" }, el("b", {}, one), el("span", { class: "hint" }, " and "), el("b", {}, other));
  const oneWay = el("input", { type: "checkbox", id: "one-way" });
  const way = () => (oneWay.checked ? " one-way" : "");
  const percent = numberField("loss-percent", 20, 0, 100, "%");
  const delay = numberField("delay-ms", 200, 0, 60000, "ms");
  return [
    who,
    el("label", { class: "switch", title: `only what ${one} sends to ${other}` }, oneWay, " one way →"),
    verbButton("cut", () => `cut ${one} ${other}${way()}`),
    el("span", { class: "pair" }, verbButton("loss", () => `loss ${percent.value()} ${one} ${other}${way()}`), percent.field),
    el("span", { class: "pair" }, verbButton("delay", () => `delay ${delay.value()} ${one} ${other}${way()}`), delay.field),
    known("diff") ? verbButton("diff", `diff ${one} ${other}`) : null,
  ].filter(Boolean);
}

function verbButton(verb, line) {
  const summary = store.verbs.find((it) => it.name === verb)?.summary;
  const text = IN_WORDS[verb] ?? verb[0].toUpperCase() + verb.slice(1);
  const act = () => sayLine(typeof line === "function" ? line() : line);
  return el("button", { type: "button", class: `verb verb-${verb}`, title: summary, "data-verb": verb, onclick: act }, text);
}

function numberField(id, value, min, max, unit) {
  const input = el("input", { id, type: "number", value, min, max, step: 1, "aria-label": `${id.split("-")[0]} in ${unit}` });
  return { field: el("span", { class: "number" }, input, unit), value: () => input.value };
}

function letGo() {
  return el("button", { type: "button", class: "quiet", title: "Deselect", "aria-label": "deselect", onclick: clear }, "✕");
}

function known(verb) {
  return store.verbs.some((it) => it.name === verb);
}
