// Who believes what: subjects by nodes. Where all agree there are dots, and the value; values that differ have letters and colours.

import { byId, count, el } from "./dom.js";
import { named, store } from "./store.js";

const IN_WORDS = {
  view: "allocates from",
  consumer_ids: "members of",
  route: "route of",
  live_brokers: "live brokers of",
  member_group: "broker group",
  min_broker: "lowest broker of",
};
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

let open = null;
let detailDrawn = "";

export function setUp() {
  byId("only-differing").addEventListener("change", draw);
}

export const differing = () => Object.values(store.views).filter((view) => view.differs);

export function draw() {
  const only = byId("only-differing").checked;
  const keys = Object.keys(store.views)
    .filter((key) => !only || store.views[key].differs)
    .sort((one, other) => Number(store.views[other].differs) - Number(store.views[one].differs) || rank(one) - rank(other) || one.localeCompare(other));
  // Also nodes that are down: a column that comes and goes would move all others.
  const roles = new Set(keys.flatMap((key) => Object.keys(store.views[key].roles)));
  const nodes = Object.keys(store.nodes).filter((name) => roles.has(store.nodes[name].role));
  const box = byId("views");
  if (keys.length === 0) box.replaceChildren(el("p", { class: "nothing" }, nothing(only)));
  else box.replaceChildren(el("table", { class: "matrix" }, head(nodes), el("tbody", {}, keys.map((key) => row(key, nodes)))));
  drawDetail();
}

function nothing(only) {
  const known = Object.keys(store.views).length;
  return only && known ? `Nodes of one role agree about all ${known} subjects.` : "Nobody believes anything yet.";
}

const rank = (key) => Object.keys(IN_WORDS).indexOf(store.views[key].kind);

function head(nodes) {
  const cells = nodes.map((name, i) => {
    const first = i === 0 || store.nodes[nodes[i - 1]].role !== store.nodes[name].role;
    return el("th", { scope: "col", class: first ? "first" : "", title: name }, el("span", {}, name));
  });
  return el("thead", {}, el("tr", {}, el("th", { class: "corner" }), cells));
}

function row(key, nodes) {
  const view = store.views[key];
  const title = el(
    "button",
    { type: "button", class: "subject", "aria-expanded": String(open === key), onclick: () => show(key) },
    el("span", { class: "kind" }, IN_WORDS[view.kind] ?? view.kind),
    " ",
    el("span", { class: "what" }, view.subject),
    view.differs ? null : el("span", { class: "value" }, inShort(view)),
  );
  const cells = nodes.map((name, i) => {
    const first = i === 0 || store.nodes[nodes[i - 1]].role !== store.nodes[name].role;
    return cell(view, name, first);
  });
  return el("tr", { class: view.differs ? "differs" : "", "data-view": key }, el("th", { scope: "row" }, title), cells);
}

function cell(view, name, first) {
  const allHolders = view.roles[store.nodes[name].role] ?? [];
  const at = allHolders.findIndex((holders) => holders.nodes.includes(name));
  const edge = first ? " first" : "";
  if (at < 0) return el("td", { class: `none${edge}` });
  const severe = allHolders.length > 1;
  const mark = el("span", { class: "mark", "data-holders": severe ? at % 6 : null, title: `${name}: ${named(allHolders[at].value)}` }, severe ? letter(at) : "•");
  return el("td", { class: edge }, mark);
}

/** What all nodes of a role believe, on one line; of several roles, the value of the first. */
function inShort(view) {
  const holders = Object.values(view.roles).flat()[0];
  if (!holders) return "";
  try {
    return shortValue(JSON.parse(holders.value));
  } catch {
    return named(holders.value); // it was too long to send
  }
}

function shortValue(value) {
  if (Array.isArray(value)) return value.length ? value.map((item) => named(String(item))).join(", ") : "none";
  if (value === null || typeof value !== "object") return named(String(value));
  if (Array.isArray(value.cids)) {
    const queues = Object.values(value.queues ?? {}).reduce((sum, number) => sum + number, 0);
    return `${count(queues, "queue")} for ${value.cids.map(named).join(", ")}`;
  }
  return Object.entries(value).filter(([, item]) => item !== null).map(shortEntry).join(", ") || "none";
}

function shortEntry([key, item]) {
  if (typeof item !== "object") return `${key}: ${named(String(item))}`;
  if (!Array.isArray(item.queues)) return `${key}: ${named(JSON.stringify(item))}`;
  const [, write, permission] = item.queues; // as the events write a route
  return `${key} (${count(write, "queue")}, perm ${permission})`;
}

const letter = (at) => LETTERS[at] ?? String(at);

function show(key) {
  open = open === key ? null : key;
  draw();
  for (const row of byId("views").querySelectorAll("tr")) if (row.dataset.view === open) row.scrollIntoView({ block: "nearest" });
}

function drawDetail() {
  const box = byId("view-detail");
  const view = store.views[open];
  box.hidden = !view;
  const now = JSON.stringify([open, view]);
  if (!view || now === detailDrawn) return;
  detailDrawn = now;
  const allHolders = Object.entries(view.roles).flatMap(([role, all]) =>
    all.map((holders, at) =>
      el(
        "div",
        { class: "holders" },
        el("span", { class: "mark", "data-holders": all.length > 1 ? at % 6 : null }, all.length > 1 ? letter(at) : "•"),
        el("p", {}, el("b", {}, holders.nodes.join(", ")), el("span", { class: "hint" }, ` ${count(holders.nodes.length, role)}`)),
        el("code", {}, named(holders.value)),
      ),
    ),
  );
  const close = el("button", { type: "button", class: "quiet", onclick: () => show(open) }, "Close");
  box.replaceChildren(el("div", { class: "card-head" }, el("h3", {}, `${IN_WORDS[view.kind] ?? view.kind} ${view.subject}`), close), ...allHolders);
}
