/** The sentence, large: what is looked at above, what looks below, and between them lines whose ink is the weight. */

import { SANS, SERIF, theme } from "./theme.js";
import { figure, fitted, measure, rightToLeft, s, sheet } from "./svg.js";

const LEAST = 0.04; // weights below this are not drawn unless their word is selected
const MOST = 1200; // lines drawn at once

/** Lay words out in lines no wider than `width`: [{x, y, w}], and the height. */
function flow(words, width, size) {
  const font = `${size}px ${SERIF}`;
  const gap = Math.max(6, size * 0.55);
  const leading = Math.round(size * 1.75);
  const backwards = rightToLeft(words.join(" "));
  const boxes = words.map((word) => {
    const shown = fitted(word, width - 8, font);
    return { text: shown, w: measure(shown, font), x: 0, y: 0, line: 0 };
  });
  const rows = [[]];
  let room = 0;
  for (const box of boxes) {
    if (rows.at(-1).length && room + box.w > width) { rows.push([]); room = 0; }
    rows.at(-1).push(box);
    room += box.w + gap;
  }
  rows.forEach((row, line) => {
    const total = row.reduce((sum, box) => sum + box.w + gap, -gap);
    let x = rows.length === 1 ? (width - total) / 2 : backwards ? width - total : 0;
    for (const box of backwards ? [...row].reverse() : row) {
      Object.assign(box, { x, y: (line + 0.5) * leading, line });
      x += box.w + gap;
    }
  });
  return { boxes, size, font, height: rows.length * leading, lines: rows.length };
}

/** The largest size at which both sentences stand in one line each; else a reading size, in several lines. */
function fittingSize(above, below, width) {
  const total = (words, size) => words.reduce((sum, word) => sum + measure(word, `${size}px ${SERIF}`) + Math.max(6, size * 0.55), 0);
  for (const size of [30, 27, 24, 22, 20, 18, 16]) {
    if (Math.max(total(above, size), total(below, size)) <= width) return size;
  }
  return above.length + below.length > 200 ? 14 : 17;
}

/**
 * Draw `matrix` ({shape: [queries, keys], data}) between its words. Returns {svg, mark}: `mark(selection)` lights up what
 * belongs to {query, key} (-1 for none). `hear(kind, selection)` is told of "hover" and "pick".
 */
export function drawLines({ keys, queries, matrix, width, captions: wanted, hear }) {
  let captions = wanted;
  const colours = theme();
  const [rows, columns] = matrix.shape;
  const weight = (query, key) => matrix.data[query * columns + key];
  const size = fittingSize(keys, queries, width - 8);
  const top = flow(keys, width - 8, size);
  const bottom = flow(queries, width - 8, size);
  const one = top.lines === 1 && bottom.lines === 1;
  const between = one ? Math.max(92, Math.min(130, width / 8)) : 72;
  const beside = Math.min(...[top, bottom].map((row) => row.boxes.reduce((least, box) => Math.min(least, box.x), width))) > 110;
  if (one && !beside) captions = null;
  const head = captions && !one ? 20 : 14;
  const low = head + top.height + between;
  const height = low + bottom.height + (captions && !one ? 24 : 16);
  const start = (key) => ({ x: 4 + top.boxes[key].x + top.boxes[key].w / 2, y: head + top.boxes[key].y + size * 0.62 });
  const end = (query) => ({ x: 4 + bottom.boxes[query].x + bottom.boxes[query].w / 2, y: low + bottom.boxes[query].y - size * 0.68 });

  const path = (query, key) => {
    const from = start(key), to = end(query);
    const middle = (from.y + to.y) / 2;
    return `M${from.x.toFixed(1)} ${from.y.toFixed(1)}C${from.x.toFixed(1)} ${middle.toFixed(1)} ${to.x.toFixed(1)} ${middle.toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`;
  };
  const stroke = (query, key, colour, boost = 1) => {
    const w = Math.min(1, weight(query, key));
    return s("path", {
      d: path(query, key), fill: "none", stroke: colour, "stroke-linecap": "round",
      "stroke-width": (0.6 + 4.4 * w).toFixed(2), "stroke-opacity": Math.min(1, (0.08 + 0.92 * w) * boost).toFixed(3),
    });
  };

  const strongest = [];
  for (let query = 0; query < rows; query++) {
    for (let key = 0; key < columns; key++) if (weight(query, key) >= LEAST) strongest.push([weight(query, key), query, key]);
  }
  strongest.sort((a, b) => a[0] - b[0]);
  const all = s("g", { "aria-hidden": "true" });
  // Where text stands in several lines, lines across it would hide it: they come with the word that is selected.
  if (one || rows * columns <= 64) all.append(...strongest.slice(-MOST).map(([, query, key]) => stroke(query, key, colours.stops.at(-3))));
  const lit = s("g", { "aria-hidden": "true" });
  const shades = s("g", { "aria-hidden": "true" });
  const figures = s("g", { "aria-hidden": "true", "font-family": SANS, "font-size": 11, "text-anchor": "middle" });

  const wordGroup = (layout, offset, side) => {
    const group = s("g", { "font-family": SERIF, "font-size": size, "text-anchor": "middle" });
    const nodes = layout.boxes.map((box, place) => {
      const word = side === "key" ? keys[place] : queries[place];
      const hit = s("rect", { x: 4 + box.x - 5, y: offset + box.y - size * 0.85, width: box.w + 10, height: size * 1.6, rx: 4, fill: "transparent" });
      const label = s("text", { x: 4 + box.x + box.w / 2, y: offset + box.y + size * 0.33, fill: colours.text, direction: rightToLeft(word) ? "rtl" : "ltr" }, box.text);
      const pick = side === "key" ? { query: -1, key: place } : { query: place, key: -1 };
      const node = s("g", {
        class: "word", role: "button", tabindex: place ? -1 : 0, "aria-label": `${word}, ${side === "key" ? "looked at" : "looks"}`,
        dataset: { side, place },
        onpointerenter: () => hear("hover", pick), onfocus: () => hear("hover", pick),
        onpointerleave: () => hear("hover", null), onblur: () => hear("hover", null),
        onclick: () => hear("pick", pick),
        onkeydown: (event) => steer(event, nodes, place, () => hear("pick", pick)),
      }, hit, label);
      if (box.text !== word) node.append(s("title", {}, word));
      return Object.assign(node, { label, hit });
    });
    group.append(...nodes);
    return { group, nodes };
  };
  const above = wordGroup(top, head, "key");
  const below = wordGroup(bottom, low, "query");

  const notes = captions ? s("g", { "font-family": SANS, "font-size": 11, fill: colours.soft },
    s("text", { x: 4, y: one ? head + top.height / 2 + 4 : 11 }, captions[0]), s("text", { x: 4, y: one ? low + bottom.height / 2 + 4 : height - 4 }, captions[1])) : null;
  const svg = sheet(width, height, "Lines between the words", shades, all, lit, above.group, below.group, figures, notes);

  let touched = [];
  /** Only what changes is touched, so that a hover stays cheap for any length: the other words fade by their group. */
  function mark({ query, key }) {
    lit.replaceChildren();
    figures.replaceChildren();
    shades.replaceChildren();
    const chosen = query >= 0 && query < rows ? "query" : key >= 0 && key < columns ? "key" : null;
    all.setAttribute("opacity", chosen ? 0.16 : 1);
    for (const label of touched) { label.setAttribute("fill", colours.text); label.removeAttribute("fill-opacity"); }
    touched = [];
    const light = (label, fill, opacity) => {
      label.setAttribute("fill", fill);
      label.setAttribute("fill-opacity", opacity);
      touched.push(label);
    };
    for (const [side, layout, words, offset] of [["key", top, above, head], ["query", bottom, below, low]]) {
      words.group.setAttribute("fill-opacity", chosen ? (chosen === side ? 0.45 : 0.35) : 1);
      if (!chosen) continue;
      if (chosen === side) { light(words.nodes[side === "query" ? query : key].label, colours.accent, 1); continue; }
      layout.boxes.forEach((box, place) => {
        const given = chosen === "query" ? weight(query, place) : weight(place, key);
        if (given < 0.02) return;
        light(words.nodes[place].label, colours.text, (0.35 + 0.65 * Math.min(1, given * 2.5)).toFixed(2));
        shades.append(s("rect", {
          x: 4 + box.x - 5, y: offset + box.y - size * 0.8, width: box.w + 10, height: size * 1.5, rx: 4,
          fill: colours.accent, "fill-opacity": (0.26 * Math.min(1, given)).toFixed(3),
        }));
        if (given < 0.05) return;
        const y = side === "key" ? offset + box.y - size * 0.9 : offset + box.y + size * 1.02;
        figures.append(s("text", { x: 4 + box.x + box.w / 2, y, fill: colours.accent, class: "figure" }, figure(given)));
      });
    }
    if (chosen === "query") for (let k = 0; k < columns; k++) if (weight(query, k) >= 0.02) lit.append(stroke(query, k, colours.accent, 1.1));
    if (chosen === "key") for (let q = 0; q < rows; q++) if (weight(q, key) >= 0.02) lit.append(stroke(q, key, colours.accent, 1.1));
  }
  return { svg, mark };
}

/** Arrow keys walk along a row of words, Enter and Space pick, Escape lets go. */
export function steer(event, nodes, place, pick) {
  const next = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: nodes.length - 1 }[event.key];
  if (next !== undefined && nodes[next]) {
    nodes.forEach((node, i) => node.setAttribute("tabindex", i === next ? 0 : -1));
    nodes[next].focus();
    event.preventDefault();
  } else if (event.key === "Enter" || event.key === " ") {
    pick();
    event.preventDefault();
  }
}
