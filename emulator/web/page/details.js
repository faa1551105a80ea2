// What the selected node knows: a nameserver its brokers, a broker its clients, a client whom it asks.

import { byId, count, el } from "./dom.js";
import { selected } from "./selection.js";
import { named, shownMs, store } from "./store.js";

let drawn = "";

const OF_ROLE = { nameserver: ofNameserver, broker: ofBroker, consumer: ofClient, producer: ofClient };

export function draw() {
  const box = byId("node-detail");
  const name = selected.length === 1 ? selected[0] : null;
  const known = name in store.nodes ? OF_ROLE[store.nodes[name].role]?.(name) : null;
  box.hidden = !known;
  const parts = known ?? [];
  const now = parts.map((part) => part.outerHTML).join("");
  if (now === drawn) return; // what is scrolled or marked there stays
  drawn = now;
  box.replaceChildren(...parts);
}

function ofNameserver(name) {
  const knows = store.nameservers[name];
  if (!knows) return [words("It knows no broker.")];
  const rows = Object.entries(knows.brokers).flatMap(([broker, addresses]) =>
    Object.entries(addresses).map(([id, address]) => [broker, id, address, named(address), age(name, named(address))]),
  );
  const brokers = rows.length ? `${count(rows.length, "broker")}, ${count(knows.topics, "topic")}` : "no broker";
  const follow = knows.followers.length ? `${count(knows.followers.length, "node")} ${knows.followers.length === 1 ? "asks" : "ask"} it: ${knows.followers.join(", ")}` : "nobody asks it";
  return [words(`It knows ${brokers}; ${follow}.`), rows.length ? table(["broker", "id", "address", "node", "last heartbeat"], rows) : null].filter(Boolean);
}

function ofBroker(name) {
  const address = store.nodes[name].ip;
  const lists = Object.entries(store.nameservers).flatMap(([server, knows]) =>
    Object.values(knows.brokers).flatMap((ids) => Object.entries(ids).filter(([, at]) => at.split(":")[0] === address).map(([id]) => [server, `id ${id}`, age(server, name)])),
  );
  const groups = beliefs(name, "consumer_ids").flatMap(({ subject, value }) => value.map((client) => [named(client), subject, age(name, named(client))]));
  return [
    lists.length ? table(["nameserver", "lists it as", "last heartbeat"], lists) : words("No nameserver lists it."),
    groups.length ? table(["client", "group", "last heartbeat"], groups) : words("No client of a group is here."),
  ];
}

function ofClient(name) {
  const asked = Object.entries(store.nameservers).filter(([, knows]) => knows.followers.includes(name)).map(([server]) => server);
  const owned = Object.values(store.queues).filter((queue) => queue.owners.includes(name));
  const views = beliefs(name, "view").map(({ subject, value }) => [subject, String(value.cids.length), value.cids.map(named).join(", "), String(Object.values(value.queues).reduce((sum, n) => sum + n, 0))]);
  const brokers = Object.entries(store.nodes).filter(([broker, node]) => node.role === "broker" && `${broker} ${name}` in store.heard).map(([broker]) => [broker, age(broker, name)]);
  const owns = store.nodes[name].role === "consumer" ? `, owns ${count(owned.length, "queue")}` : "";
  return [
    words(`It ${asked.length ? `asks ${asked.join(", ")}` : "asks no nameserver"}${owns}.`),
    views.length ? table(["allocates", "members", "who they are", "queues"], views) : null,
    brokers.length ? table(["broker", "last heartbeat there"], brokers) : null,
  ].filter(Boolean);
}

/** What a node believes, of one kind; a value that was too long to send is left out. */
function beliefs(name, kind) {
  return Object.values(store.views).filter((view) => view.kind === kind).flatMap((view) => {
    const holders = Object.values(view.roles).flat().find((one) => one.nodes.includes(name));
    try {
      return holders ? [{ subject: view.subject, value: JSON.parse(holders.value) }] : [];
    } catch {
      return [];
    }
  });
}

function age(server, sender) {
  const heardMs = store.heard[`${server} ${sender}`];
  return heardMs === undefined ? "none yet" : `${Math.max(0, Math.round((shownMs() - heardMs) / 1000))} s ago`;
}

const words = (text) => el("p", { class: "hint" }, text);

function table(heads, rows) {
  const head = el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)));
  return el("table", { class: "facts" }, el("thead", {}, head), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text) => el("td", {}, text))))));
}
