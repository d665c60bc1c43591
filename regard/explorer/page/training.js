/** Training: the learning curves, and the attention of this sentence at each checkpoint that the run still has. */

import { axesOf, labels } from "./axes.js";
import { drawChart } from "./chart.js";
import { drawLines } from "./lines.js";
import { figure, h, headTitle, siteTitle } from "./svg.js";
import { segmented } from "./alignment.js";

let nodes = null, charts = [], told = null, timer = 0;

function build(root) {
  nodes = { state: h("p", { class: "hint" }), charts: h("div", { class: "charts" }), scores: h("div", { class: "scroll" }), replay: h("section", { class: "replay" }) };
  root.append(h("div", { class: "toolbar" }, nodes.state), nodes.charts, nodes.scores, nodes.replay);
}

async function draw(app) {
  clearTimeout(timer);
  try {
    told = await app.source.training(app.state.get().run);
  } catch (error) {
    charts = [];
    told = null;
    for (const name of ["state", "scores", "replay"]) nodes[name].replaceChildren();
    nodes.charts.replaceChildren(h("div", { class: "empty" }, h("h2", {}, "No learning curve"), h("p", {}, error.message)));
    return;
  }
  const { rows } = told;
  nodes.state.textContent = told.done ? `Trained for ${told.step.toLocaleString("en")} steps.` : `Still training: step ${told.step.toLocaleString("en")}${told.steps ? ` of ${told.steps.toLocaleString("en")}` : ""}. The curves follow.`;
  const points = (name) => rows.filter((row) => Number.isFinite(row[name])).map((row) => [row.step, row[name]]);
  const width = nodes.charts.clientWidth < 900 ? nodes.charts.clientWidth : (nodes.charts.clientWidth - 32) / 2;
  const wanted = [["loss per token", [["training", "loss"], ["validation", "valid_loss", true]]], ["validation score", [["score", "valid_score", true]]], ["learning rate", [["rate", "learning_rate"]]], ["tokens per second", [["speed", "tokens_per_second"]]]];
  charts = wanted.map(([title, series]) => ({ title, series: series.map(([name, key, strong]) => ({ name, points: points(key), strong })).filter((one) => one.points.length) }))
    .filter((one) => one.series.length).map((one) => drawChart({ ...one, width, height: one.title.includes("rate") || one.title.includes("second") ? 170 : 250 }));
  nodes.charts.replaceChildren(...(charts.length ? charts : [h("div", { class: "empty" }, h("h2", {}, "Nothing reported yet"), h("p", {}, "The first figures come after a few steps; this page looks again by itself."))]));
  const sets = Object.entries(told.scores);
  const measures = [...new Set(sets.flatMap(([, row]) => Object.keys(row)))].slice(0, 6);
  nodes.scores.replaceChildren(sets.length ? h("table", { class: "scores" }, h("thead", {}, h("tr", {}, h("th", {}, "held-out set"), measures.map((name) => h("th", {}, name.replaceAll("_", " "))))),
    h("tbody", {}, sets.map(([name, row]) => h("tr", {}, h("th", { scope: "row" }, name), measures.map((key) => h("td", { class: "figure" }, figure(row[key], 2))))))) : "");
  await replay(app);
  if (!told.done) timer = setTimeout(() => { if (nodes.state.isConnected) app.redraw(); }, 5000);
}

/** The same sentence, read by the weights of an earlier step. */
async function replay(app) {
  const { scene, state } = app;
  const axes = scene && axesOf(scene, app.site());
  if (!told.checkpoints.length || !axes) { nodes.replay.replaceChildren(); return; }
  const choices = { ...Object.fromEntries(told.checkpoints.map((step) => [step, `step ${Number(step).toLocaleString("en")}`])), "": "best weights" };
  const box = h("div", { class: "drawing" });
  nodes.replay.replaceChildren(h("h2", {}, "This sentence, at the checkpoints the run keeps"), h("div", { class: "toolbar" }, segmented("Checkpoint", choices, state.get().checkpoint, (step) => state.set({ checkpoint: step })),
    h("span", { class: "what" }, `${siteTitle(app.site())} · ${headTitle(app.head())}`)), box);
  const { unit } = state.get();
  const numbers = await app.source.matrix(app.wish(), app.site(), app.head(), unit);
  const lines = drawLines({ queries: labels(axes.queries, unit), keys: labels(axes.keys, unit), matrix: numbers, width: box.clientWidth, captions: null, hear: (kind, selection) => { if (kind === "hover") lines.mark(selection ?? { query: -1, key: -1 }); } });
  box.replaceChildren(lines.svg);
}

export const training = {
  title: "Training", available: (app) => Boolean(app.source.training), alone: true, build, draw,
  exports: () => {
    const names = told ? [...new Set(told.rows.flatMap((row) => Object.keys(row)))] : [];
    return charts.length ? { drawings: charts.map((one) => one.cloneNode(true)), numbers: told, table: () => [names, ...told.rows.map((row) => names.map((name) => row[name] ?? ""))] } : null;
  },
};
