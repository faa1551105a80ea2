// What is known of the cluster: the first message has all of it, later ones what changed.

const SECTIONS = ["nodes", "faults", "links", "views", "queues"];

export const store = {
  nowMs: 0,
  scenario: "",
  run: "",
  verbs: [],
  groups: {},
  broadcasting: [],
  nodes: {},
  faults: {},
  links: {},
  views: {},
  queues: {},
};

/** Take in a message; returns the names of the sections that changed. */
export function merge(message) {
  const whole = "scenario" in message;
  if (whole) {
    for (const name of SECTIONS) store[name] = {};
    for (const name of ["scenario", "run", "verbs", "groups", "broadcasting"]) store[name] = message[name];
  }
  if ("now_ms" in message) store.nowMs = message.now_ms;
  const changed = [];
  for (const name of SECTIONS) {
    for (const [key, entry] of Object.entries(message[name] ?? {})) {
      if (entry === null) delete store[name][key];
      else store[name][key] = entry;
    }
    if (whole || name in message) changed.push(name);
  }
  return changed;
}

/** 127.1.10.1@1401#22173 -> consumer-1: addresses and client ids as names of nodes. */
export function named(text) {
  const names = {};
  for (const [name, node] of Object.entries(store.nodes)) names[node.ip] ??= name;
  for (const [name, node] of Object.entries(store.nodes)) if (node.state === "outside") text = text.replaceAll(node.ip, name);
  return text.replace(/(127\.1\.\d+\.\d+)(@[0-9#]+|:\d+)?/g, (all, ip) => names[ip] ?? all);
}
