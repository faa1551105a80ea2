// The way to the cluster: the token, one stream of what happens, and verbs.

const TOKEN_KEY = "rmqemu-token";

/** The token from the address, which is then shown without it, or of this tab before it was reloaded. */
export function findToken() {
  const given = decodeURIComponent(location.hash.slice(1));
  if (given) {
    keepToken(given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY);
}

export class Refused extends Error {
  constructor(status, problem) {
    super(problem);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN_KEY) ?? "";
  // What a header cannot hold is no token of ours, but shall be refused by the cluster, not by the browser.
  const headers = { Authorization: `Bearer ${encodeURIComponent(token)}` };
  const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
    throw new Refused(answer.status, problem.error);
  }
  return answer;
}

/** Hand every message of the stream to `take`; returns when the stream ends. */
export async function follow(take) {
  const answer = await ask("/events");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) take(JSON.parse(line));
  }
}

/** What was at an instant; null: the cluster does not answer. */
export async function past(atMs) {
  try {
    const answer = await ask(`/past?at_ms=${Math.round(atMs)}`);
    return await answer.json();
  } catch {
    return null;
  }
}

/** Run a verb; returns {ok, lines, offers}. */
export async function say(line) {
  try {
    const answer = await ask("/verb", { method: "POST", body: JSON.stringify({ line }) });
    return await answer.json();
  } catch (error) {
    return { ok: false, offers: [], lines: [error instanceof Refused ? error.message : "the cluster does not answer"] };
  }
}
