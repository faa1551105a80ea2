// Who owns which queue: for each group and topic, consumers by queues. Two owners or none are severe.

import { byId, count, el } from "./dom.js";
import { store } from "./store.js";

const MOVED_MS = 1600;
const movedAt = new Map();
const before = new Map();

export function draw() {
  const now = performance.now();
  for (const [key, queue] of Object.entries(store.queues)) {
    for (const owner of queue.owners) {
      const known = before.get(key);
      if (known && store.atMs === null && !known.includes(owner)) movedAt.set(`${key} ${owner}`, now);
    }
    before.set(key, queue.owners);
  }
  const blocks = new Map();
  for (const queue of Object.values(store.queues)) {
    const name = JSON.stringify([queue.group, queue.topic]);
    if (!blocks.has(name)) blocks.set(name, []);
    blocks.get(name).push(queue);
  }
  const box = byId("queues");
  const ordered = [...blocks.values()].sort((one, other) => isRetry(one[0]) - isRetry(other[0]));
  if (blocks.size === 0) box.replaceChildren(el("p", { class: "nothing" }, "No group consumes anything."));
  else box.replaceChildren(...ordered.map((queues) => block(queues, now)));
  const words = ownershipInWords();
  byId("queue-trouble").textContent = words || "every queue has one owner";
  byId("queue-trouble").dataset.severe = String(words !== "");
}

/** Which queues have two owners or none; empty: every queue has one. */
export function ownershipInWords() {
  const { two, none } = trouble();
  return [two && `${count(two, "queue")} with two owners`, none && `${count(none, "queue")} without an owner`].filter(Boolean).join(", ");
}

const isRetry = (queue) => Number(queue.topic.startsWith("%"));

const byPlace = (one, other) => one.broker.localeCompare(other.broker) || one.queue - other.queue;

/** How many queues have two owners, and how many none. */
function trouble() {
  const judged = Object.values(store.queues).filter((queue) => !store.broadcasting.includes(queue.group));
  return {
    two: judged.filter((queue) => queue.owners.length > 1).length,
    none: judged.filter((queue) => queue.owners.length === 0).length,
  };
}

function block(queues, now) {
  queues.sort(byPlace);
  const { group, topic } = queues[0];
  const others = queues.flatMap((queue) => queue.owners);
  const members = [...new Set([...(store.groups[group] ?? []), ...others])];
  const everybody = store.broadcasting.includes(group);
  const brokers = [...new Set(queues.map((queue) => queue.broker))];
  const title = el("p", { class: "topic" }, el("b", {}, topic), el("span", { class: "hint" }, ` ${topic.endsWith(group) ? "" : group}${everybody ? ", broadcasting" : ""}`));
  const tops = brokers.map((broker) => el("th", { scope: "colgroup", class: "first", colspan: queues.filter((queue) => queue.broker === broker).length }, broker));
  const numbers = queues.map((queue) => el("th", { scope: "col", class: edge(queue) }, String(queue.queue)));
  const rows = members.map((name) => el("tr", {}, el("th", { scope: "row" }, name), queues.map((queue) => cell(queue, name, now))));
  const sums = el("tr", { class: "sums" }, el("th", { scope: "row" }, "owners"), queues.map((queue) => sum(queue, everybody)));
  const table = el(
    "table",
    { class: "ownership", "aria-label": `owners of ${topic} in ${group}` },
    el("thead", {}, el("tr", {}, el("td", {}), tops), el("tr", { class: "numbers" }, el("td", {}), numbers)),
    el("tbody", {}, rows, everybody ? null : sums),
  );
  return el("div", {}, title, table);
}

const edge = (queue) => (queue.queue === 0 ? "first" : "");

function cell(queue, name, now) {
  if (!queue.owners.includes(name)) return el("td", { class: edge(queue) });
  const key = `${queue.group}/${queue.topic}/${queue.broker}/${queue.queue} ${name}`;
  const age = store.atMs === null ? now - (movedAt.get(key) ?? -Infinity) : Infinity;
  const mark = el("span", { class: age < MOVED_MS ? "own moved" : "own", title: `${name} owns ${queue.topic} ${queue.broker} q${queue.queue}` });
  // Drawn again while it moves, the animation goes on where it was.
  if (age < MOVED_MS) mark.style.setProperty("animation-delay", `${-age}ms`);
  mark.dataset.member = String((store.groups[queue.group] ?? []).indexOf(name) % 8);
  return el("td", { class: edge(queue) }, mark);
}

function sum(queue, everybody) {
  const owners = queue.owners.length;
  const severe = !everybody && owners !== 1;
  const title = owners === 0 ? "nobody owns it" : queue.owners.join(" and ");
  return el("td", { class: `${edge(queue)}${severe ? " severe" : ""}`, title }, severe ? String(owners) : "");
}
