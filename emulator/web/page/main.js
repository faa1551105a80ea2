// Puts the page together: asks for the token, follows the stream, draws what changed.

import { byId, clock, count, el } from "./dom.js";
import * as details from "./details.js";
import * as events from "./events.js";
import * as prompt from "./prompt.js";
import * as queues from "./queues.js";
import * as selection from "./selection.js";
import { merge, store } from "./store.js";
import * as timeline from "./timeline.js";
import * as topology from "./topology.js";
import * as views from "./views.js";
import { findToken, follow, forgetToken, keepToken, Refused } from "./wire.js";

const AGAIN_MS = 1500;
const dirty = new Set();
let leaving = false;

function connection(state, words) {
  const badge = byId("connection");
  badge.dataset.state = state;
  badge.textContent = words;
  document.body.dataset.connection = state;
}

/** Draw at the next frame, everything that changed until then at once. */
function soon(...sections) {
  if (dirty.size === 0) requestAnimationFrame(render);
  for (const section of sections) dirty.add(section);
}

function render() {
  const has = (...names) => names.some((name) => dirty.has(name));
  byId("clock").textContent = clock(store.nowMs);
  if (has("nodes", "links", "offers", "selection")) {
    selection.draw();
    topology.draw();
  }
  details.draw();
  if (has("nodes", "views")) views.draw();
  if (has("queues")) queues.draw();
  if (has("faults")) drawFaults();
  if (has("offers")) prompt.drawOffers();
  if (has("marks", "seconds")) timeline.redraw();
  else timeline.draw();
  if (has("verbs")) prompt.drawVerbs();
  drawCounts();
  dirty.clear();
}

function drawCounts() {
  const faults = Object.keys(store.faults).length;
  byId("fault-count").textContent = `${count(faults, "fault")} active`;
  byId("fault-count").dataset.severe = String(faults > 0);
  const differing = views.differing().length;
  byId("differ-count").textContent = differing ? `${count(differing, "view")} differ${differing === 1 ? "s" : ""}` : "all views agree";
  byId("differ-count").dataset.severe = String(differing > 0);
  const trouble = queues.ownershipInWords();
  byId("owner-count").textContent = trouble || "one owner per queue";
  byId("owner-count").dataset.severe = String(trouble !== "");
  document.title = `${faults ? `(${faults}) ` : ""}${store.scenario} · rmqemu`;
  byId("scenario").textContent = store.scenario;
  byId("scenario").title = store.run;
}

function drawFaults() {
  const chips = Object.entries(store.faults).map(([id, fault]) =>
    el(
      "li",
      { class: "chip", "data-fault": id },
      el("b", {}, id),
      el("span", {}, fault.what.replaceAll("<->", "↔").replaceAll("->", "→")),
      el("span", { class: "hint" }, `since ${clock(fault.since_ms)}`),
      store.atMs === null ? el("button", { type: "button", class: "quiet", "aria-label": `heal ${id}`, onclick: () => prompt.sayAndShow(`heal ${id}`) }, "Heal") : null,
    ),
  );
  byId("faults").replaceChildren(...(chips.length ? chips : [el("li", { class: "nothing" }, `Nothing ${store.atMs === null ? "is" : "was"} broken.`)]));
  byId("heal-all").hidden = chips.length === 0 || store.atMs !== null;
}

/** Draw the sections of another instant. */
function lookAt(...sections) {
  events.look();
  soon("clock", ...sections);
}

function take(message) {
  if (message.leaving) leaving = true;
  if ("scenario" in message) {
    connection("live", "live");
    showBoard();
  }
  const changed = merge(message);
  if ("scenario" in message) {
    events.begin();
    timeline.backToLive();
    changed.push("verbs");
  }
  if (message.lines) events.take(message.lines);
  soon("clock", ...changed);
}

function showBoard() {
  byId("token-form").hidden = true;
  byId("board").hidden = false;
}

function askForToken(problem) {
  connection("waiting", "token needed");
  byId("board").hidden = true;
  byId("token-form").hidden = false;
  byId("token-problem").textContent = problem;
  byId("token").focus();
}

async function stay() {
  for (;;) {
    try {
      await follow(take);
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        forgetToken();
        askForToken("That is not the token of this run.");
        return;
      }
      if (error instanceof Refused) connection("lost", error.message);
    }
    if (leaving) {
      connection("over", "the run is over");
      return;
    }
    connection("lost", "connection lost, trying again");
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  stay();
});
byId("heal-all").addEventListener("click", () => prompt.sayAndShow("heal all"));
timeline.setUp(lookAt);
new ResizeObserver(() => topology.drawWires()).observe(byId("scene"));
selection.setUp(prompt.sayAndShow, () => soon("selection"));
views.setUp();
events.setUp();
prompt.setUp();
if (findToken()) stay();
else askForToken("");
