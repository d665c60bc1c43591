/** Inside one head: the formula being computed for one pair of tokens, each line from the ones above it. */

import { emptyState } from "./alignment.js";
import { axesOf, moved } from "./axes.js";
import { steer } from "./lines.js";
import { drawStrip } from "./strip.js";
import { figure, h, s, sheet, siteTitle } from "./svg.js";
import { SANS, SERIF, theme } from "./theme.js";

let nodes = null, made = null, told = null;

function build(root) {
  nodes = { choose: h("div", { class: "choose" }), steps: h("div", { class: "steps" }) };
  root.append(nodes.choose, nodes.steps);
}

/** The pair that is shown: what is selected, as tokens; else what the middle of the output looked at most. */
async function pairOf(app, site, head, axes) {
  const { unit, query, key } = app.state.get();
  const asTokens = (axis, place) => (unit === "words" ? moved(axis, place, "tokens") : place);
  let row = asTokens(axes.queries, query), column = asTokens(axes.keys, key);
  const fresh = row < 0 || row >= axes.queries.tokens.length;
  if (fresh) row = Math.min(axes.queries.tokens.length - 1, axes.queries.tokens.length >> 1);
  if (fresh || column < 0 || column >= axes.keys.tokens.length) {
    const { data, shape } = await app.source.matrix(app.wish(), site, String(head), "tokens");
    column = 0;
    for (let k = 1; k < shape[1]; k++) if (data[row * shape[1] + k] > data[row * shape[1] + column]) column = k;
  }
  return { row, column };
}

async function draw(app) {
  const { scene, state } = app;
  const site = app.site(), axes = axesOf(scene, site);
  if (!axes) { nodes.choose.replaceChildren(emptyState(app)); nodes.steps.replaceChildren(); made = null; return; }
  const head = /^\d+$/.test(app.head()) ? Number(app.head()) : axes.heads[0].number;
  const { row, column } = await pairOf(app, site, head, axes);
  told = await app.source.inside(app.wish(), site, head, row, column);
  const pick = (query, key) => state.set({ query, key, unit: "tokens", head: String(head), site });
  nodes.choose.replaceChildren(
    h("div", { class: "toolbar" },
      h("label", {}, "Attention ", h("select", { onchange: (event) => state.set({ site: event.target.value, head: "0", query: -1, key: -1 }) }, scene.sites.map((one) => h("option", { value: one.site, selected: one.site === site }, siteTitle(one.site))))),
      axes.heads.length > 1 ? h("label", {}, "Head ", h("select", { onchange: (event) => state.set({ head: event.target.value }) }, axes.heads.map((one) => h("option", { value: one.number, selected: one.number === head }, one.number)))) : "",
      h("span", { class: "space" }), h("span", { class: "formula" }, "score = ", told.formula), h("span", { class: "hint" }, told.source)),
    chips("looks", axes.queries.tokens, row, (place) => pick(place, column), null),
    chips("at", axes.keys.tokens, column, (place) => pick(row, place), told.weights));

  const width = Math.max(180, Math.min(640, nodes.steps.clientWidth - (innerWidth < 760 ? 20 : 420)));
  const strips = [];
  const strip = (vector, label, top) => {
    const values = h("span", { class: "at figure" });
    const drawn = drawStrip(vector, { width, top, label, hover: (place) => strips.forEach((one) => one.show(place)) });
    strips.push({ show: (place) => { drawn.mark(place); values.textContent = place >= 0 && place < vector.length ? `[${place}] ${figure(vector[place], 3)}` : ""; } });
    return h("div", { class: "vector" }, drawn.svg, values);
  };
  const step = (name, of, body, result) => h("div", { class: "step" }, h("div", { class: "term" }, h("span", { class: "symbol" }, name), h("span", { class: "hint" }, of)), h("div", { class: "body" }, body ?? ""), h("div", { class: "result figure" }, result === null || result === undefined ? "" : figure(result, 4)));
  const query = axes.queries.tokens[row], key = axes.keys.tokens[column];
  const top = Math.max(...told.weighted.map(Math.abs), ...told.value.map(Math.abs), ...told.output.map(Math.abs));
  made = told.lines.map((line) => step(line.name, line.of, line.vector ? strip(line.vector, line.name) : null, line.number));
  made.push(step("softmax", "the scores of the whole row: e to the score, divided by the sum over the row", rowTable(axes.keys.tokens, column, (place) => pick(row, place)), told.weights[column]));
  made.push(step("v", `the value: what “${key}” passes on when it is looked at`, strip(told.value, "value", top)));
  made.push(step("weight · v", `its share of the sum, ${figure(told.weights[column], 4)} of v`, strip(told.weighted, "weighted value", top)));
  made.push(step("Σ weight · v", `added up over all tokens: what this head tells “${query}”`, strip(told.output, "output", top)));
  nodes.steps.replaceChildren(...made);
}

/** A row of tokens to choose from. */
function chips(caption, tokens, chosen, pick, weights) {
  const buttons = tokens.map((token, place) => h("button", {
    class: "token", dir: "auto", tabindex: place === chosen ? 0 : -1, "aria-pressed": String(place === chosen), onclick: () => pick(place),
    onkeydown: (event) => steer(event, buttons, place, () => pick(place)),
  }, token, weights ? h("small", { class: "figure" }, figure(weights[place])) : ""));
  return h("div", { class: "chips", role: "group", "aria-label": caption }, h("span", { class: "hint" }, caption), h("div", { class: "tokens" }, buttons));
}

/** Score, exponent and weight of every key of the row. */
function rowTable(tokens, chosen, pick) {
  const best = Math.max(...told.scores.filter((_, place) => told.allowed[place]));
  const order = tokens.map((_, place) => place).sort((a, b) => told.weights[b] - told.weights[a]);
  const shown = order.slice(0, 8);
  if (!shown.includes(chosen)) shown.push(chosen);
  const rows = shown.sort((a, b) => a - b).map((place) => h("tr", { dataset: { lit: place === chosen ? "yes" : "" }, onclick: () => pick(place) },
    h("th", { scope: "row" }, h("bdi", {}, tokens[place])),
    h("td", { class: "figure" }, told.allowed[place] ? figure(told.scores[place], 3) : "masked"),
    h("td", { class: "figure" }, told.allowed[place] ? figure(Math.exp(told.scores[place] - best), 4) : "0"),
    h("td", {}, h("span", { class: "track" }, Object.assign(h("span", { class: "fill" }), { style: `width:${(100 * told.weights[place]).toFixed(1)}%` }))),
    h("td", { class: "figure" }, figure(told.weights[place], 4))));
  return h("table", { class: "softmax" }, h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, "score"), h("th", { title: "less the largest score of the row, which changes nothing in the end" }, "e^(score − max)"), h("th", {}, ""), h("th", {}, "weight"))), h("tbody", {}, rows),
    tokens.length > shown.length ? h("caption", { class: "hint" }, `the ${shown.length} strongest of ${tokens.length}`) : "");
}

/** The same lines on one sheet, for export. */
function poster() {
  const colours = theme(), width = 860;
  let y = 30;
  const parts = [];
  const text = (x, at, words, size, fill, family = SANS, anchor = "start") => s("text", { x, y: at, "font-size": size, fill, "font-family": family, "text-anchor": anchor }, words);
  const add = (name, vector, number) => {
    parts.push(text(10, y + 20, name, 16, colours.text, SERIF));
    if (vector) {
      const { svg } = drawStrip(vector, { width: 520, label: name });
      svg.setAttribute("x", 200);
      svg.setAttribute("y", y);
      parts.push(svg);
    }
    if (number !== null && number !== undefined) parts.push(text(width - 10, y + 20, figure(number, 4), 15, colours.accent, SANS, "end"));
    y += 44;
  };
  told.lines.forEach((line) => add(line.name, line.vector, line.number));
  add("softmax(scores)", told.weights, null);
  add("v", told.value, null);
  add("weight · v", told.weighted, null);
  add("Σ weight · v", told.output, null);
  return sheet(width, y + 10, "Inside one head", parts);
}

export const inside = {
  title: "Inside", available: (app) => Boolean(app.source.inside) && (app.scene === null || app.scene.sites.length > 0), redraws: true, build, draw,
  exports: () => (made ? {
    drawings: [poster()], numbers: told,
    table: () => [["line", "number", "vector"], ...told.lines.map((line) => [line.name, line.number ?? "", ...(line.vector ?? [])]), ["scores", "", ...told.scores], ["weights", "", ...told.weights], ["value", "", ...told.value], ["output", "", ...told.output]],
  } : null),
};
