// Making elements. Text is set as text everywhere: nothing that a cluster says is ever HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, data-* and aria-* attributes, listeners (onclick: ...) and children. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function fill(made, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "scope" || name === "colspan") made.setAttribute(name, value);
    else if (name === "class") made.className = value;
    else made[name] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

export const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** 83456 -> "1:23.4" */
export function clock(ms) {
  const tenths = Math.floor(ms / 100);
  const seconds = Math.floor(tenths / 10) % 60;
  const minutes = Math.floor(tenths / 600) % 60;
  const hours = Math.floor(tenths / 36000);
  const two = (number) => String(number).padStart(2, "0");
  const head = hours ? `${hours}:${two(minutes)}` : `${minutes}`;
  return `${head}:${two(seconds)}.${tenths % 10}`;
}
