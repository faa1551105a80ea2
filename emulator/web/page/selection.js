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
  const found = offersOf(selected);
  const now = JSON.stringify([selected, selected.map((name) => store.nodes[name].state), found, store.verbs.length, store.atMs !== null]);
  if (now === drawn) return; // what is typed or focused there stays
  drawn = now;
  const bar = byId("actions");
  const focused = bar.contains(document.activeElement) ? document.activeElement.dataset.verb : undefined;
  bar.dataset.count = String(selected.length);
  if (selected.length === 0) bar.replaceChildren(el("p", { class: "hint" }, "Nothing is selected."));
  else bar.replaceChildren(letGo(), ...(selected.length === 1 ? aboutOne(selected[0], found) : aboutTwo(...selected, found)));
  // Whoever works with the keyboard is led from a verb to what undoes it.
  if (focused) (bar.querySelector(".offer") ?? bar.querySelector(`[data-verb="${focused}"]`))?.focus();
}

/** What undoes the faults that hit the selected node, or the link between two. */
function offersOf(names) {
  if (names.length === 0 || store.atMs !== null) return [];
  const link = names.length === 2 ? (store.offers["*"] ?? []) : [];
  return [...(store.offers[[...names].sort().join(" ")] ?? []), ...link].filter((offer) => known(offer.line.split(" ")[0]));
}

function offerButton({ fault, line, text }, name) {
  const [verb, target] = line.split(" ");
  const words = target === name ? text.slice(0, verb.length) : text;
  return el("button", { type: "button", class: "offer", "data-verb": verb, "data-fault": fault, title: line, onclick: () => sayLine(line) }, words);
}

const inThePast = () => el("p", { class: "hint" }, "Go back to live to act.");

function aboutOne(name, found) {
  const { role, ip, state } = store.nodes[name];
  const who = el("p", { class: "who" }, el("b", {}, name), el("span", { class: "hint" }, ` ${role} · ${ip} · ${state}`));
  if (store.atMs !== null) return [who, inThePast()];
  const offered = found.map((offer) => offer.line);
  const verbs = (ABOUT_ONE[state] ?? []).filter((verb) => known(verb) && !offered.includes(`${verb} ${name}`));
  return [who, ...found.map((offer) => offerButton(offer, name)), ...verbs.map((verb) => verbButton(verb, `${verb} ${name}`))];
}

function aboutTwo(one, other, found) {
  const who = el("p", { class: "who" }, el("b", {}, one), el("span", { class: "hint" }, " and "), el("b", {}, other));
  if (store.atMs !== null) return [who, inThePast()];
  const oneWay = el("input", { type: "checkbox", id: "one-way" });
  const way = () => (oneWay.checked ? " one-way" : "");
  const percent = numberField("loss-percent", 20, 0, 100, "%");
  const delay = numberField("delay-ms", 200, 0, 60000, "ms");
  return [
    who,
    ...found.map((offer) => offerButton(offer)),
    el("label", { class: "switch", title: `only what ${one} sends to ${other}` }, oneWay, " one way →"),
    found.some((offer) => offer.kind === "cut") ? null : verbButton("cut", () => `cut ${one} ${other}${way()}`),
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
