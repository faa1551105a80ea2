// Nodes in bands by role, the links between them behind, those with a fault in front.

import { byId, count, el, svg } from "./dom.js";
import { selected, toggle } from "./selection.js";
import { store } from "./store.js";

const BANDS = [
  ["nameserver", "nameservers"],
  ["container", "containers"],
  ["broker", "brokers"],
  ["consumer", "consumers"],
  ["producer", "producers"],
  ["apiserver", "API servers"],
  ["scaler", "scalers"],
  ["lease-service", "lease services"],
];
const TOWARDS = {
  container: ["nameserver"],
  broker: ["nameserver"],
  consumer: ["broker", "nameserver", "lease-service"],
  producer: ["broker", "nameserver"],
  apiserver: ["consumer"],
  scaler: ["apiserver", "consumer"],
};
const HEALTHY_LINES_MAX = 90;
const SMALL_FROM = 36;

const buttons = new Map();
let shape = "";

/** Bring nodes, their states and all links up to date. */
export function draw() {
  const names = Object.keys(store.nodes);
  const wanted = JSON.stringify(names);
  if (wanted !== shape) {
    shape = wanted;
    build(names);
  }
  for (const name of names) label(name);
  drawWires();
}

function build(names) {
  buttons.clear();
  const bands = BANDS.map(([role, title]) => band(title, names.filter((name) => store.nodes[name].role === role)));
  byId("bands").replaceChildren(...bands.filter(Boolean));
}

function band(title, names) {
  if (names.length === 0) return null;
  const groups = {};
  for (const name of names) (groups[store.nodes[name].group] ??= []).push(name);
  const many = names.length > SMALL_FROM;
  return el(
    "div",
    { class: many ? "band small" : "band", role: "group", "aria-label": title },
    el("span", { class: "band-title" }, title),
    el("div", { class: "groups" }, Object.entries(groups).map(([group, members]) => groupBox(group, members))),
  );
}

function groupBox(group, members) {
  const lone = members.length === 1 && (group === members[0] || group === "");
  const title = group && !lone ? el("span", { class: "group-title" }, group) : null;
  return el("div", { class: title ? "group titled" : "group" }, title, el("div", { class: "members" }, members.map(nodeButton)));
}

function nodeButton(name) {
  const made = el(
    "button",
    { type: "button", class: "node", "data-node": name, onclick: () => toggle(name) },
    el("span", { class: "glyph", "aria-hidden": "true" }),
    el("span", { class: "name" }, name),
    el("span", { class: "state" }),
  );
  buttons.set(name, made);
  return made;
}

function label(name) {
  const { state, role } = store.nodes[name];
  const made = buttons.get(name);
  made.dataset.state = state;
  made.querySelector(".state").textContent = state === "running" ? "" : state;
  made.setAttribute("aria-pressed", String(selected.includes(name)));
  made.setAttribute("aria-label", `${name}, ${role}, ${state}`);
  made.title = `${name} · ${role} · ${state}`;
}

/** All links again; also when the window has another size. */
export function drawWires() {
  const stage = byId("scene").getBoundingClientRect();
  const places = new Map();
  for (const [name, button] of buttons) places.set(name, place(button, stage));
  const wires = byId("wires");
  wires.setAttribute("viewBox", `0 0 ${stage.width} ${stage.height}`);
  const faulted = faultedLinks();
  const drawn = [...faulted.values()].map((link) => faultedWire(link, places)).filter(Boolean);
  wires.replaceChildren(markers(), ...healthyWires(places, faulted), ...drawn.map((it) => it.path), ...selectedWire(places));
  byId("wire-labels").replaceChildren(...drawn.map((it) => it.label), ...everywhere());
  const words = [...faulted.values()].map((link) => `${link.src} ${link.both ? "and" : "to"} ${link.dst}: ${link.labels.join(", ")}`);
  byId("wires-in-words").textContent = words.length ? `Links with a fault: ${words.join("; ")}.` : "No single link has a fault.";
}

function place(button, stage) {
  const box = button.getBoundingClientRect();
  const x = box.left - stage.left + box.width / 2;
  const y = box.top - stage.top + box.height / 2;
  return { x, y, top: box.top - stage.top, bottom: box.bottom - stage.top };
}

/** "a b" -> one line for both directions where both have the same faults. */
function faultedLinks() {
  const directed = new Map();
  for (const [id, fault] of Object.entries(store.links)) {
    for (const [src, dst] of fault.pairs) {
      const key = JSON.stringify([src, dst]);
      if (!directed.has(key)) directed.set(key, { src, dst, ids: [], labels: [], effects: [] });
      const link = directed.get(key);
      link.ids.push(id);
      link.labels.push(fault.label);
      link.effects.push(fault.effect);
    }
  }
  const links = new Map();
  for (const [key, link] of directed) {
    const back = JSON.stringify([link.dst, link.src]);
    const other = directed.get(back);
    const both = other !== undefined && other.ids.join() === link.ids.join();
    if (both && links.has(back)) continue;
    links.set(key, { ...link, both });
  }
  return links;
}

function healthyWires(places, faulted) {
  const pairs = [];
  for (const [src, node] of Object.entries(store.nodes)) {
    const towards = TOWARDS[node.role] ?? [];
    for (const [dst, other] of Object.entries(store.nodes)) if (towards.includes(other.role)) pairs.push([src, dst]);
  }
  if (pairs.length > HEALTHY_LINES_MAX) return [];
  const broken = (src, dst) => faulted.has(JSON.stringify([src, dst])) || faulted.has(JSON.stringify([dst, src]));
  return pairs
    .filter(([src, dst]) => !broken(src, dst) && places.has(src) && places.has(dst))
    .map(([src, dst]) => svg("path", { class: "wire", d: curve(places.get(src), places.get(dst)).d }));
}

function faultedWire(link, places) {
  const [from, to] = [places.get(link.src), places.get(link.dst)];
  if (!from || !to) return null;
  const { d, middle } = curve(from, to);
  const attributes = { class: "wire faulted", "data-link": `${link.src} ${link.dst}`, "data-effect": link.effects[0], d };
  const arrow = link.effects[0] === "delay" ? "url(#arrow-delay)" : "url(#arrow)";
  attributes["marker-end"] = arrow;
  if (link.both) attributes["marker-start"] = arrow;
  const text = el("span", { class: "wire-label", "data-effect": link.effects[0] }, link.labels.join(", "));
  text.style.setProperty("--x", `${middle.x}px`);
  text.style.setProperty("--y", `${middle.y}px`);
  return { path: svg("path", attributes), label: text };
}

function selectedWire(places) {
  const [from, to] = selected.map((name) => places.get(name));
  return from && to ? [svg("path", { class: "wire chosen", d: curve(from, to).d })] : [];
}

function everywhere() {
  return Object.values(store.links)
    .filter((fault) => fault.everywhere || fault.pairs.length < fault.count)
    .map((fault) => {
      const where = fault.everywhere ? "all links" : count(fault.count, "link");
      return el("span", { class: "everywhere", "data-effect": fault.effect }, `${where}: ${fault.label}`);
    });
}

/** From edge to edge between bands; bowed within one. */
function curve(from, to) {
  const apart = Math.abs(from.y - to.y) > 30;
  const [y1, y2] = apart ? (from.y < to.y ? [from.bottom, to.top] : [from.top, to.bottom]) : [from.bottom, to.bottom];
  if (!apart) {
    const dip = Math.min(70, 26 + Math.abs(to.x - from.x) * 0.08);
    const d = `M${from.x},${y1} C${from.x},${y1 + dip} ${to.x},${y2 + dip} ${to.x},${y2}`;
    return { d, middle: { x: (from.x + to.x) / 2, y: (y1 + y2) / 2 + dip * 0.75 } };
  }
  const pull = (y2 - y1) * 0.42;
  const d = `M${from.x},${y1} C${from.x},${y1 + pull} ${to.x},${y2 - pull} ${to.x},${y2}`;
  return { d, middle: { x: (from.x + to.x) / 2, y: (y1 + y2) / 2 } };
}

function markers() {
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" };
  const arrow = (id) => svg("marker", { id, ...size }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: id }));
  return svg("defs", {}, arrow("arrow"), arrow("arrow-delay"));
}
