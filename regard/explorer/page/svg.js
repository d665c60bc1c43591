/** Small tools to build HTML and SVG. Text always goes in as text, never as markup. */

const NS = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: h("p", {class: "hint"}, "text"). */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** An SVG element. */
export const s = (name, attributes, ...children) => fill(document.createElementNS(NS, name), attributes, children);

/** A drawing of its own size. */
export function sheet(width, height, label, ...children) {
  const view = `0 0 ${width} ${height}`;
  return s("svg", { xmlns: NS, width, height, viewBox: view, role: "group", "aria-label": label }, ...children);
}

const pen = document.createElement("canvas").getContext("2d");

/** The width of a text in a CSS font. */
export function measure(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** A text that fits into `room`, cut with an ellipsis if it must. */
export function fitted(text, room, font) {
  if (measure(text, font) <= room) return text;
  const letters = [...text];
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(letters.slice(0, middle).join("") + "…", font) <= room) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

/** True when a text is written from right to left, by its first letter that has a direction. */
export function rightToLeft(text) {
  const found = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]|\p{L}/u.exec(text);
  return found !== null && /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(found[0]);
}

/** A number as the page writes it: 0.91, -1.2e-7. */
export function figure(value, digits = 2) {
  if (value === null || value === undefined) return "";
  if (value !== 0 && Math.abs(value) < 10 ** -digits / 2 && digits > 2) return value.toExponential(1).replaceAll("-", "−");
  return value.toFixed(digits).replace(/^-(0\.0*)$/, "$1").replace("-", "−");
}

/** `decoder.1.cross` as people say it. */
export function siteTitle(site) {
  const kinds = { self: "self-attention", cross: "cross-attention" };
  return site.split(".").map((part) => (/^\d+$/.test(part) ? `layer ${part}` : kinds[part] ?? part)).join(" · ");
}

/** What a choice of head is called. */
export const headTitle = (head) => (/^\d+$/.test(head) ? `head ${head}` : { mean: "mean of the heads", max: "strongest head", rollout: "rollout through the layers" }[head]);
