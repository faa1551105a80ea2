// What is known of the cluster: the first message has all of it, later ones what changed. Whoever looks back sees
// the sections of PAST as they were; `store.live` has them as they are.

const PAST = ["nodes", "faults", "links", "views", "queues", "nameservers", "heard"];
const ALWAYS_LIVE = ["offers", "marks", "seconds"];

export const store = {
  nowMs: 0,
  fromMs: 0,
  atMs: null, // the instant that is looked at; null: live
  scenario: "",
  run: "",
  verbs: [],
  groups: {},
  broadcasting: [],
  live: {},
};
forget();

function forget() {
  for (const name of [...PAST, ...ALWAYS_LIVE]) store.live[name] = {};
  showLive();
}

/** Take in a message; returns the names of the shown sections that changed. */
export function merge(message) {
  const whole = "scenario" in message;
  if (whole) {
    forget();
    for (const name of ["scenario", "run", "verbs", "groups", "broadcasting"]) store[name] = message[name];
  }
  if ("now_ms" in message) store.nowMs = message.now_ms;
  if ("from_ms" in message) store.fromMs = message.from_ms;
  const changed = [];
  for (const name of [...PAST, ...ALWAYS_LIVE]) {
    for (const [key, entry] of Object.entries(message[name] ?? {})) {
      if (entry === null) delete store.live[name][key];
      else store.live[name][key] = entry;
    }
    if (whole || (name in message && store[name] === store.live[name])) changed.push(name);
  }
  return changed;
}

/** Show the sections as they were; returns their names. */
export function showPast(past) {
  store.atMs = past.at_ms;
  for (const name of PAST) store[name] = past[name];
  return PAST;
}

/** Show the sections as they are; returns their names. */
export function showLive() {
  store.atMs = null;
  Object.assign(store, Object.fromEntries([...PAST, ...ALWAYS_LIVE].map((name) => [name, store.live[name]])));
  return PAST;
}

export const shownMs = () => store.atMs ?? store.nowMs;

/** 127.1.10.1@1401#22173 -> consumer-1: addresses and client ids as names of nodes. */
export function named(text) {
  const names = {};
  for (const [name, node] of Object.entries(store.live.nodes)) names[node.ip] ??= name;
  for (const [name, node] of Object.entries(store.live.nodes)) if (node.state === "outside") text = text.replaceAll(node.ip, name);
  return text.replace(/(127\.1\.\d+\.\d+)(@[0-9#]+|:\d+)?/g, (all, ip) => names[ip] ?? all);
}
