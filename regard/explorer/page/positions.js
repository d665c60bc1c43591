/** Positions: what the model is told about places, and how alike any two places are. */

import { drawMatrix } from "./matrix.js";
import { rowsOf } from "./alignment.js";
import { figure, h } from "./svg.js";

let nodes = null, drawn = [], table = null;

function build(root) {
  nodes = { panels: h("div", { class: "two" }), reading: h("p", { class: "hint figure", "aria-live": "polite" }) };
  root.append(h("div", { class: "toolbar" }, h("span", { class: "hint" }, "Each token is told its place by a vector that is added to it. Left: those vectors, one a row. Right: how alike two places are (their cosine).")), nodes.panels, nodes.reading);
}

/** Values of any sign on the scale of ink, least to most. */
function spread({ shape, data }) {
  let low = Infinity, high = -Infinity;
  for (const value of data) { low = Math.min(low, value); high = Math.max(high, value); }
  return { low, high, matrix: { shape, data: data.map((value) => (value - low) / (high - low || 1)) } };
}

async function draw(app) {
  const { run } = app.state.get();
  const parts = await Promise.all([app.source.positions(run, "table"), app.source.positions(run, "similarity")]);
  table = parts[0];
  nodes.panels.replaceChildren();
  const titles = ["Encoding: place × width", "Similarity: place × place"];
  const boxes = titles.map((title) => h("section", { class: "panel" }, h("h2", {}, title)));
  nodes.panels.replaceChildren(...boxes);
  drawn = parts.map((part, i) => {
    const { low, high, matrix } = spread(part);
    const [rows, columns] = part.shape;
    const name = (count) => Array.from({ length: count }, (_, place) => String(place));
    const one = drawMatrix({ queries: name(rows), keys: name(columns), matrix, every: 16, ends: [figure(low), figure(high)], width: boxes[i].clientWidth, most: 520, label: titles[i], hear: (kind, at) => {
      one.mark(at ?? { query: -1, key: -1 });
      nodes.reading.textContent = at ? (i === 0 ? `place ${at.query}, dimension ${at.key}: ${figure(part.data[at.query * columns + at.key], 4)}` : `places ${at.query} and ${at.key}: cosine ${figure(part.data[at.query * columns + at.key], 4)}`) : "";
    } });
    boxes[i].append(one.node);
    return one;
  });
}

export const positions = {
  title: "Positions", available: (app) => Boolean(app.source.positions) && app.run().positions, alone: true, build, draw,
  exports: () => (drawn.length ? { drawings: drawn.map((one) => one.whole()), numbers: { positions: rowsOf(table) }, table: () => rowsOf(table) } : null),
};
