/** Pictures: where each head looks, drawn over the image. The query is the class token, or the patch under the pointer. */

import { rowsOf, segmented } from "./alignment.js";
import { axesOf } from "./axes.js";
import { picker } from "./picker.js";
import { figure, h, headTitle, s, sheet, siteTitle } from "./svg.js";
import { theme } from "./theme.js";

const SIDE = 440, SMALL = 116;
let nodes = null, parts = null, numbers = null, each = [];

function build(root) {
  nodes = { toolbar: h("div", { class: "toolbar" }), large: h("section", { class: "panel" }), side: h("section", { class: "panel" }), heads: h("div", { class: "overlays" }), picker: h("div", {}) };
  nodes.side.append(nodes.heads, nodes.picker);
  root.append(nodes.toolbar, h("div", { class: "picture" }, nodes.large, nodes.side));
}

/** The image with the weights of one query over it: what is not looked at is veiled. */
function overlay(image, size, label) {
  const colours = theme(), { rows, columns, source, extra } = image;
  const wide = size / columns, high = size / rows;
  const veil = s("g", { "shape-rendering": "crispEdges" });
  const cells = [];
  for (let patch = 0; patch < rows * columns; patch++) {
    const cell = s("rect", { x: (patch % columns) * wide, y: Math.floor(patch / columns) * high, width: wide + 0.3, height: high + 0.3, fill: colours.paper });
    cells.push(cell);
    veil.append(cell);
  }
  const frame = s("rect", { width: wide, height: high, fill: "none", stroke: colours.accent, "stroke-width": 2, visibility: "hidden" });
  const svg = sheet(size, size, label, s("image", { href: source, width: size, height: size, preserveAspectRatio: "none", "image-rendering": columns * 8 > size ? "auto" : "pixelated" }), veil, frame);
  /** `row`: the weights of one query over all tokens; `query`: its place. */
  const show = (row, query) => {
    const full = Math.max(1e-9, ...row.slice(extra));
    cells.forEach((cell, patch) => cell.setAttribute("fill-opacity", (0.88 * (1 - Math.sqrt(row[extra + patch] / full))).toFixed(3)));
    const patch = query - extra;
    frame.setAttribute("visibility", patch >= 0 ? "visible" : "hidden");
    frame.setAttribute("x", (patch % columns) * wide);
    frame.setAttribute("y", Math.floor(patch / columns) * high);
  };
  return { svg, show };
}

async function draw(app) {
  const { scene, state } = app;
  const site = app.site(), head = app.head(), axes = axesOf(scene, site);
  if (!axes || !scene.image) { nodes.large.replaceChildren(h("div", { class: "empty" }, h("h2", {}, "No picture yet"), h("p", {}, "Choose one above, or open one of your own."))); parts = null; return; }
  const wish = app.wish();
  numbers = await app.source.matrix(wish, site, head, "tokens");
  each = await Promise.all(axes.heads.map(async (one) => ({ number: one.number, why: one.why, weights: await app.source.matrix(wish, site, String(one.number), "tokens") })));
  nodes.toolbar.replaceChildren(h("span", { class: "what" }, h("strong", {}, siteTitle(site)), ` · ${headTitle(head)}`), h("span", { class: "space" }),
    segmented("Way", { mean: "mean", max: "strongest", rollout: "rollout" }, head, (value) => state.set({ head: value })));
  const size = Math.min(SIDE, nodes.large.clientWidth || SIDE);
  const large = overlay(scene.image, size, "The picture, by what is looked at");
  large.svg.classList.add("photoview");
  const under = (event) => {
    const box = large.svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * scene.image.columns), row = Math.floor(((event.clientY - box.top) / box.height) * scene.image.rows);
    return { query: scene.image.extra + Math.min(scene.image.rows - 1, Math.max(0, row)) * scene.image.columns + Math.min(scene.image.columns - 1, Math.max(0, column)), key: -1 };
  };
  large.svg.addEventListener("pointermove", (event) => app.hear("hover", under(event)));
  large.svg.addEventListener("pointerleave", () => app.hear("hover", null));
  large.svg.addEventListener("click", (event) => app.hear("pick", under(event)));
  const reading = h("p", { class: "hint figure", id: "reading" });
  nodes.large.replaceChildren(large.svg, reading, h("p", { class: "hint" }, "Hover a patch to see what it looks at; without one, what the whole is judged by."));
  const small = each.map((one) => {
    const drawn = overlay(scene.image, SMALL, `head ${one.number}`);
    return { ...one, ...drawn, node: h("button", { class: "thumb", "aria-pressed": String(String(one.number) === head), title: `head ${one.number} ${one.why}`, onclick: () => state.set({ head: String(one.number) }) }, drawn.svg, h("span", { class: "word" }, `head ${one.number}`)) };
  });
  nodes.heads.replaceChildren(...small.map((one) => one.node));
  nodes.picker.replaceChildren(h("h2", {}, "Layers and heads"), await picker(app));
  parts = { large, small, reading, names: axes.queries.tokens };
}

function mark(app) {
  if (!parts) return;
  const [rows, columns] = numbers.shape, { extra } = app.scene.image;
  const chosen = app.selection().query;
  const query = chosen >= 0 && chosen < rows ? chosen : parts.names[0] === "[class]" ? 0 : -1;
  // Without a class token a picture is judged by the mean of its patches: their mean is what looks.
  const [first, last] = query >= 0 ? [query, query + 1] : [extra, rows];
  const row = (matrix) => Array.from({ length: columns }, (_, column) => {
    let sum = 0;
    for (let one = first; one < last; one++) sum += matrix.data[one * columns + column];
    return sum / (last - first);
  });
  const shown = row(numbers);
  parts.large.show(shown, query);
  parts.small.forEach((one) => one.show(row(one.weights), query));
  const best = shown.slice(extra).reduce((most, value, place, all) => (value > all[most] ? place : most), 0) + extra;
  parts.reading.textContent = `${query >= 0 ? parts.names[query] : "The whole"} looks most at ${parts.names[best]}: ${figure(shown[best], 4)}.`;
}

export const pictures = {
  title: "Picture", available: (app) => app.run().task === "image", build, draw, mark,
  exports: (app) => (parts ? {
    drawings: [parts.large.svg.cloneNode(true), ...parts.small.map((one) => one.svg.cloneNode(true))],
    numbers: { site: app.site(), head: app.head(), tokens: parts.names, weights: rowsOf(numbers) },
    table: () => [["", ...parts.names], ...rowsOf(numbers).map((values, row) => [parts.names[row], ...values])],
  } : null),
};
