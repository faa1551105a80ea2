// The command line: completion from the registry of verbs, history, and the answers.

import { byId, el } from "./dom.js";
import { store } from "./store.js";
import { say } from "./wire.js";

const ANSWERS_MAX = 30;
const HINTS_MAX = 12;
const history = [];
let at = 0;

export function setUp() {
  const input = byId("command");
  byId("command-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const line = input.value.trim();
    input.value = "";
    if (line) sayAndShow(line);
    hint();
  });
  input.addEventListener("input", hint);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Tab" && !event.shiftKey && complete()) event.preventDefault();
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      recall(event.key === "ArrowUp" ? -1 : 1);
    }
  });
}

/** Say a line, and show it with its answer. */
export async function sayAndShow(line) {
  if (history.at(-1) !== line) history.push(line);
  at = history.length;
  const entry = el("div", { class: "answer" }, el("p", { class: "said" }, line));
  const box = byId("answers");
  box.append(entry);
  while (box.childElementCount > ANSWERS_MAX) box.firstElementChild.remove();
  box.scrollTop = box.scrollHeight;
  const { ok, lines, offers } = await say(line);
  const isProse = ok && line.split(" ")[0] === "why"; // the other answers are tables, whose columns a break would spoil
  const text = isProse ? lines.map(wrapping) : lines.join("\n");
  entry.append(el("pre", { class: ok ? (isProse ? "answer prose" : "answer") : "refused", tabIndex: 0, role: ok ? null : "alert" }, text));
  for (const offer of offers) entry.append(offerButton(offer));
  drawOffers(); // the fault may have come over the stream before this answer
  showNewest(box, entry);
}

/** A line that breaks where its box ends, and goes on below its own first word. */
function wrapping(line) {
  const made = el("span", { class: "line-of-answer" }, line.trimStart() || " ");
  made.style.setProperty("--indent", `${line.length - line.trimStart().length}ch`);
  return made;
}

/** The end of the newest answer; of one that is longer than the box its begin. */
function showNewest(box, entry) {
  const top = entry.offsetTop - box.offsetTop;
  box.scrollTop = entry.offsetHeight > box.clientHeight ? top : box.scrollHeight;
}

function offerButton({ fault, line, text }) {
  return el("button", { type: "button", class: "offer", "data-fault": fault, onclick: () => sayAndShow(line) }, text);
}

/** Offers of faults that have ended are gone. */
export function drawOffers() {
  for (const button of byId("answers").querySelectorAll(".offer")) {
    if (button.dataset.fault in store.live.faults) button.dataset.begun = "true";
    else if (button.dataset.begun) button.remove();
  }
}

function recall(step) {
  const input = byId("command");
  at = Math.max(0, Math.min(history.length, at + step));
  input.value = history[at] ?? "";
  input.setSelectionRange(input.value.length, input.value.length);
  hint();
}

function split(line) {
  const words = line.trimStart().split(/\s+/);
  return { before: words.slice(0, -1), word: words.at(-1) };
}

/** What the word under way can become: first a verb, then what its usage asks for. */
function candidates() {
  const { before, word } = split(byId("command").value);
  if (before.length === 0) return store.verbs.map((verb) => verb.name).filter((name) => name.startsWith(word));
  const usage = store.verbs.find((verb) => verb.name === before[0])?.usage ?? "";
  const known = [];
  if (/\bNODES?\b|\bA\b|\bB\b/.test(usage)) known.push(...Object.keys(store.live.nodes));
  if (/FAULT/.test(usage)) known.push("all", ...Object.keys(store.live.faults));
  if (/\bGROUP\b/.test(usage)) known.push(...new Set(Object.values(store.live.queues).map((queue) => queue.group)));
  if (/SUBJECT/.test(usage)) known.push(...new Set(Object.values(store.live.views).map((view) => view.subject)));
  known.push(...(usage.match(/\b[a-z][a-z-]+\b/g) ?? []).filter((literal) => !known.includes(literal)));
  return known.filter((name) => name.startsWith(word) && !before.slice(1).includes(name));
}

/** Before anything was said, the answers' place reports what can be. */
export function drawVerbs() {
  const rows = store.verbs.map((verb) =>
    el("li", {}, el("button", { type: "button", class: "quiet", onclick: () => choose(verb.name) }, `${verb.name} ${verb.usage}`.trim()), el("span", { class: "hint" }, verb.summary)),
  );
  byId("verbs").replaceChildren(...rows);
}

/** Make the word longer as far as it is clear; returns whether it did. */
function complete() {
  const input = byId("command");
  const { before, word } = split(input.value);
  const found = candidates();
  if (input.value.trim() === "" || found.length === 0) return false;
  let longer = found[0];
  while (!found.every((name) => name.startsWith(longer))) longer = longer.slice(0, -1);
  const whole = found.length === 1;
  if (longer === word && !whole) return true;
  input.value = [...before, longer].join(" ") + (whole ? " " : "");
  hint();
  return true;
}

function hint() {
  const input = byId("command");
  const { before } = split(input.value);
  const verb = store.verbs.find((it) => it.name === before[0]);
  const parts = [];
  if (verb) parts.push(el("span", { class: "usage" }, el("b", {}, `${verb.name} ${verb.usage}`.trim()), ` ${verb.summary}`));
  if (input.value.trim() !== "") {
    for (const name of candidates().slice(0, HINTS_MAX)) parts.push(el("button", { type: "button", class: "quiet", onclick: () => choose(name) }, name));
  }
  byId("command-hint").replaceChildren(...parts);
}

function choose(name) {
  const input = byId("command");
  input.value = `${[...split(input.value).before, name].join(" ")} `;
  input.focus();
  hint();
}
