/** The matrix: queries are rows, keys are columns, ink is weight. Cells are painted on a canvas, words stay text. */

import { SANS, theme } from "./theme.js";
import { figure, fitted, measure, s, sheet, h } from "./svg.js";

/** Where full ink stands: at 1, or where no weight reaches 0.5, at the next round number above the largest. */
export function fullInk(data) {
  let top = 0;
  for (const value of data) if (value > top) top = value;
  if (top <= 0 || top >= 0.5) return 1;
  const unit = 10 ** Math.floor(Math.log10(top));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * unit).find((step) => step >= top * (1 - 1e-6));
}

/** How much ink each weight gets: on one scale for all, or each row on its own. */
export function inkOf(matrix, scale) {
  const [rows, columns] = matrix.shape;
  const full = fullInk(matrix.data);
  if (scale !== "row") return { full, ink: (row, column) => matrix.data[row * columns + column] / full };
  const tops = Array.from({ length: rows }, (_, row) => {
    let top = 0;
    for (let column = 0; column < columns; column++) top = Math.max(top, matrix.data[row * columns + column]);
    return top || 1;
  });
  return { full: null, ink: (row, column) => matrix.data[row * columns + column] / tops[row] };
}

/** One pixel for each weight. */
export function paint(canvas, rows, columns, ink) {
  const { table } = theme();
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at += 4) {
      const value = ink(row, column);
      const colour = 3 * Math.round(255 * (value > 1 ? 1 : value > 0 ? value : 0));
      image.data[at] = table[colour];
      image.data[at + 1] = table[colour + 1];
      image.data[at + 2] = table[colour + 2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Draw a matrix no wider than `width` (and, for its cells, no higher than `most`). Returns {node, mark, whole}: the node to
 * put in the page, `mark(selection)`, and `whole()`, the same drawing as one SVG for export. `every`: name one label in so
 * many; `ends`: what paper and ink stand for, where it is not a weight.
 */
export function drawMatrix({ keys, queries, matrix, width: room, most = 560, scale = "global", hear, label = "Attention matrix", every: wanted = 0, ends = null }) {
  const width = Math.max(120, room);
  const colours = theme();
  const [rows, columns] = matrix.shape;
  const { full, ink } = inkOf(matrix, scale);
  const size = (cell) => (wanted ? 11 : Math.max(7, Math.min(13, cell * 0.62)));
  const longest = (words, font) => Math.max(0, ...words.map((word) => measure(word, font)));

  const guess = `13px ${SANS}`;
  const side = Math.min(150, longest(queries, guess) + 12, width * 0.34);
  const cell = Math.min(38, (width - side - 8) / columns, most / rows);
  const font = `${size(cell)}px ${SANS}`;
  const left = Math.min(side, longest(queries, font) + 12);
  const every = wanted || (cell >= 9 ? 1 : Math.ceil(10 / cell));
  const flat = keys.every((word) => measure(word, font) <= cell * every - 4);
  const deep = Math.min(120, longest(keys, font));
  const top = flat ? size(cell) + 12 : Math.round(deep * 0.74 + size(cell) + 8);
  const lean = flat ? 0 : Math.round(Math.min(deep, 110) * 0.72);
  const wide = columns * cell, high = rows * cell;
  const total = Math.ceil(Math.min(width, left + wide + Math.max(4, lean))), bottom = 34;
  const height = Math.ceil(top + high + bottom);

  const canvas = paint(h("canvas", { "aria-hidden": "true" }), rows, columns, ink);
  const style = `left:${left}px;top:${top}px;width:${wide}px;height:${high}px`;
  canvas.style.cssText = style;

  const texts = s("g", { "font-family": SANS, "font-size": size(cell).toFixed(1), fill: colours.text });
  const names = { row: [], column: [] };
  queries.forEach((word, row) => {
    if (row % every) return;
    const shown = fitted(word, left - 10, font);
    const node = s("text", { x: left - 7, y: top + (row + 0.5) * cell + size(cell) * 0.35, "text-anchor": "end", dataset: { place: row } }, shown);
    texts.append(node);
    names.row[row] = node;
  });
  keys.forEach((word, column) => {
    if (column % every) return;
    const x = left + (column + 0.5) * cell;
    const shown = fitted(word, flat ? cell * every - 2 : 118, font);
    const place = flat
      ? { x, y: top - 7, "text-anchor": "middle" }
      : { transform: `translate(${(x + 2).toFixed(1)} ${top - 6}) rotate(-45)`, "text-anchor": "start", direction: "ltr" };
    const node = s("text", { ...place, dataset: { place: column } }, shown);
    texts.append(node);
    names.column[column] = node;
  });
  const written = s("g", { "font-family": SANS, "font-size": Math.min(11, cell * 0.36).toFixed(1), "text-anchor": "middle", class: "figure" });
  if (cell >= 25 && rows * columns <= 400) {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const value = matrix.data[row * columns + column];
        if (value < 0.05) continue;
        const fill = ink(row, column) > 0.5 ? colours.paper : colours.text;
        written.append(s("text", { x: left + (column + 0.5) * cell, y: top + (row + 0.5) * cell + Math.min(11, cell * 0.36) * 0.36, fill }, figure(value).replace(/^0/, "")));
      }
    }
  }
  const frame = s("rect", { x: left, y: top, width: wide, height: high, fill: "none", stroke: colours.rule });
  const cross = s("g", { fill: "none", stroke: colours.accent, "stroke-width": 1.5, "pointer-events": "none" });
  const hit = s("rect", {
    x: left, y: top, width: wide, height: high, fill: "transparent", class: "cells", tabindex: 0, role: "application",
    "aria-label": `${label}: ${rows} rows, ${columns} columns; arrow keys walk, Enter keeps`,
  });
  const svg = sheet(total, height, label, texts, frame, written, cross, hit, legend(left, top + high + 12, ends ?? ["0", full === null ? "most of its row" : `${Number(full.toPrecision(3))}  weight`], colours));
  const node = h("div", { class: "matrix" }, canvas, svg);
  node.style.width = `${total}px`;
  node.style.height = `${height}px`;

  let at = { query: 0, key: 0 };
  const under = (event) => {
    const box = hit.getBoundingClientRect();
    const query = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const key = Math.floor(((event.clientX - box.left) / box.width) * columns);
    return query >= 0 && query < rows && key >= 0 && key < columns ? { query, key } : null;
  };
  hit.addEventListener("pointermove", (event) => { const found = under(event); if (found) hear("hover", found); });
  hit.addEventListener("pointerleave", () => hear("hover", null));
  hit.addEventListener("click", (event) => { const found = under(event); if (found) hear("pick", (at = found)); });
  hit.addEventListener("focus", () => { if (hit.matches(":focus-visible")) hear("hover", at); });
  hit.addEventListener("blur", () => hear("hover", null));
  hit.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) {
      at = { query: Math.min(rows - 1, Math.max(0, at.query + step[0])), key: Math.min(columns - 1, Math.max(0, at.key + step[1])) };
      hear("hover", at);
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") { hear("pick", at); event.preventDefault(); }
  });

  let lit = [];
  function mark({ query, key }) {
    if (query >= 0 && key >= 0) at = { query: Math.min(query, rows - 1), key: Math.min(key, columns - 1) };
    cross.replaceChildren();
    lit.forEach((one) => { one.setAttribute("fill", colours.text); one.removeAttribute("font-weight"); });
    lit = [];
    const light = (kind, place, fallback) => {
      let name = names[kind][place];
      if (!name && place >= 0) cross.append((name = fallback()));
      if (name) { name.setAttribute("fill", colours.accent); name.setAttribute("font-weight", 600); lit.push(name); }
    };
    if (query >= 0 && query < rows) {
      cross.append(s("rect", { x: left, y: top + query * cell, width: wide, height: cell }));
      light("row", query, () => s("text", { x: left - 7, y: top + (query + 0.5) * cell + 4, "text-anchor": "end", "font-size": 12, "font-family": SANS, stroke: "none" }, fitted(queries[query], left - 10, `12px ${SANS}`)));
    }
    if (key >= 0 && key < columns) {
      cross.append(s("rect", { x: left + key * cell, y: top, width: cell, height: high }));
      light("column", key, () => s("text", { x: left + key * cell, y: top - 4, "text-anchor": key > columns / 2 ? "end" : "start", "font-size": 12, "font-family": SANS, stroke: "none" }, keys[key]));
    }
  }

  /** The cells as shapes where there are few, as one picture where there are many. */
  function whole() {
    const copy = svg.cloneNode(true);
    copy.querySelector(".cells").remove();
    const cells = s("g", { "shape-rendering": "crispEdges" });
    if (rows * columns <= 4096) {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          cells.append(s("rect", { x: left + column * cell, y: top + row * cell, width: cell + 0.2, height: cell + 0.2, fill: colours.ink(ink(row, column)) }));
        }
      }
    } else {
      cells.append(s("image", { href: canvas.toDataURL(), x: left, y: top, width: wide, height: high, preserveAspectRatio: "none", "image-rendering": "pixelated" }));
    }
    copy.prepend(cells);
    return copy;
  }
  return { node, mark, whole };
}

/** What ink means. */
function legend(x, y, [low, high], colours) {
  const wide = 96, from = x + 4 + measure(low, `10.5px ${SANS}`) + 6;
  const steps = 24;
  const bar = s("g", { "shape-rendering": "crispEdges" });
  for (let i = 0; i < steps; i++) bar.append(s("rect", { x: from + (i * wide) / steps, y, width: wide / steps + 0.5, height: 7, fill: colours.ink(i / (steps - 1)) }));
  bar.append(s("rect", { x: from, y, width: wide, height: 7, fill: "none", stroke: colours.rule }));
  const text = (at, words, anchor) => s("text", { x: at, y: y + 7, "font-family": SANS, "font-size": 10.5, fill: colours.soft, "text-anchor": anchor }, words);
  return s("g", { "aria-hidden": "true" }, bar, text(from - 6, low, "end"), text(from + wide + 6, high, "start"));
}
