/** Alignment: the sentence with its lines, the matrix, and the pair that is selected. */

import { axesOf, labels } from "./axes.js";
import { drawLines } from "./lines.js";
import { drawMatrix } from "./matrix.js";
import { picker } from "./picker.js";
import { figure, h, headTitle, siteTitle } from "./svg.js";

let lines = null, matrix = null, numbers = null, named = null;
let nodes = null;

function build(root) {
  nodes = {
    toolbar: h("div", { class: "toolbar" }), drawing: h("div", { class: "drawing", id: "lines" }), picker: h("div", { class: "panel", id: "picker" }),
    matrix: h("div", { class: "panel wide", id: "matrix" }), pair: h("div", { class: "panel", id: "pair" }),
  };
  root.append(nodes.toolbar, nodes.drawing, h("div", { class: "panels" }, nodes.picker, nodes.matrix, nodes.pair));
}

/** Two choices side by side. */
export function segmented(label, options, chosen, choose) {
  return h("div", { class: "segmented", role: "group", "aria-label": label }, Object.entries(options).map(([value, text]) =>
    h("button", { "aria-pressed": String(value === chosen), onclick: () => choose(value) }, text)));
}

export function emptyState(app) {
  const typed = (app.state.get().text ?? "").trim();
  if (typed && app.scene?.output) {
    return h("div", { class: "empty" }, h("h2", {}, "No attention in here"),
      h("p", {}, "This model squeezes the whole input through one vector; there is nothing it looks back at. The other views still work."));
  }
  return h("div", { class: "empty" }, h("h2", {}, "Nothing to look at yet"), h("p", {}, "Type a sentence above, or take one of the examples."));
}

/** What the next scene will most likely be asked for, if it resembles this one: asked at once, not after its answer. */
function ahead(app) {
  if (!app.site()) return;
  const never = () => {}; // should it be wrong, nobody asks for it
  app.source.matrix(app.wish(), app.site(), app.head(), app.state.get().unit).catch(never);
  app.source.thumbnails(app.wish()).catch(never);
}

async function draw(app) {
  const { scene, state } = app;
  const site = app.site(), head = app.head(), { unit, scale } = state.get();
  const axes = axesOf(scene, site);
  if (!axes) {
    lines = matrix = null;
    nodes.toolbar.replaceChildren();
    nodes.drawing.replaceChildren(emptyState(app));
    for (const name of ["picker", "matrix", "pair"]) nodes[name].replaceChildren();
    return;
  }
  const several = scene.sites.length > 1 || axes.heads.length > 1;
  const [received, parts] = await Promise.all([app.source.matrix(app.wish(), site, head, unit), several ? picker(app) : null]);
  numbers = received;
  named = { queries: labels(axes.queries, unit), keys: labels(axes.keys, unit), heads: axes.heads };
  nodes.toolbar.replaceChildren(
    h("span", { class: "what" }, h("strong", {}, siteTitle(site)), axes.heads.length > 1 || head === "rollout" ? ` · ${headTitle(head)}` : ""),
    h("span", { class: "space" }),
    segmented("Unit", { words: "words", tokens: "subwords" }, unit, (value) => state.set({ unit: value })),
    segmented("Scale", { global: "one scale", row: "each row" }, scale, (value) => state.set({ scale: value })));
  const same = axes.queries === axes.keys;
  const captions = same ? ["looked at", "looking"] : ["input", "output"];
  lines = drawLines({ ...named, matrix: numbers, width: nodes.drawing.clientWidth, captions, hear: app.hear });
  nodes.drawing.replaceChildren(lines.svg);
  nodes.picker.hidden = !several;
  nodes.picker.replaceChildren(...(several ? [h("h2", {}, "Layers and heads"), parts] : []));
  nodes.matrix.replaceChildren();
  matrix = drawMatrix({ ...named, matrix: numbers, width: nodes.matrix.clientWidth, scale, hear: app.hear, label: `${siteTitle(site)}, ${headTitle(head)}` });
  nodes.matrix.replaceChildren(matrix.node);
}

function mark(app) {
  if (!lines) return;
  const selection = app.selection();
  lines.mark(selection);
  matrix.mark(selection);
  nodes.pair.replaceChildren(...pairPanel(app, selection));
}

/** The numbers of what is selected. */
function pairPanel(app, { query, key }) {
  const [rows, columns] = numbers.shape;
  const weight = (row, column) => numbers.data[row * columns + column];
  if (query < 0 && key < 0) {
    const head = named.heads.find((one) => String(one.number) === app.head());
    return [h("h2", {}, "This head"), h("p", { class: "hint" }, head && named.heads.length > 1 ? `Head ${head.number} ${head.why}.` : ""),
      h("p", { class: "hint" }, "Hover a word to see what it looked at. Click to keep it."),];
  }
  const across = query >= 0;
  if ((across && query >= rows) || (!across && key >= columns)) return [];
  const title = across && key >= 0 && key < columns
    ? [h("p", { class: "pairing" }, h("bdi", {}, named.queries[query]), h("span", { class: "to" }, " looks at "), h("bdi", {}, named.keys[key])), h("p", { class: "big figure", id: "weight" }, figure(weight(query, key), 4))]
    : [h("p", { class: "pairing" }, h("bdi", {}, across ? named.queries[query] : named.keys[key]), h("span", { class: "to" }, across ? " looks at" : " is looked at by"))];
  const list = across
    ? named.keys.map((word, place) => [weight(query, place), word, place])
    : named.queries.map((word, place) => [weight(place, key), word, place]);
  list.sort((a, b) => b[0] - a[0]);
  const bars = list.slice(0, 8).map(([value, word, place]) => h("div", { class: "bar", dataset: { lit: across && place === key ? "yes" : "" } },
    h("bdi", { class: "name", title: word }, word), h("span", { class: "track" }, Object.assign(h("span", { class: "fill" }), { style: `width:${(100 * Math.min(1, value)).toFixed(1)}%` })),
    h("span", { class: "figure" }, figure(value, 3))));
  const inside = app.source.inside && /^\d+$/.test(app.head()) && across
    ? h("button", { class: "link", onclick: () => app.state.set({ view: "inside", query, key: key >= 0 ? key : list[0][2] }) }, "How is this computed?") : "";
  return [...title, h("div", { class: "bars" }, bars), list.length > 8 ? h("p", { class: "hint" }, `and ${list.length - 8} more`) : "", inside];
}

export const alignment = {
  title: "Alignment", available: (app) => app.run().task !== "image", build, ahead, draw, mark,
  exports: (app) => (lines ? {
    drawings: [lines.svg.cloneNode(true), matrix.whole()],
    numbers: { site: app.site(), head: app.head(), unit: app.state.get().unit, queries: named.queries, keys: named.keys, weights: rowsOf(numbers) },
    table: () => [["", ...named.keys], ...rowsOf(numbers).map((weights, row) => [named.queries[row], ...weights])],
  } : null),
};

/** A matrix as a list of rows. */
export function rowsOf({ shape: [rows, columns], data }) {
  return Array.from({ length: rows }, (_, row) => Array.from(data.subarray(row * columns, (row + 1) * columns)));
}
