/** Decoding: the output step by step, the candidates of a step, and the beam as a tree. A click forces another token. */

import { emptyState } from "./alignment.js";
import { steer } from "./lines.js";
import { figure, fitted, h, measure, s, sheet } from "./svg.js";
import { SANS, SERIF, theme } from "./theme.js";

const MOST = 80; // steps of the tree that are drawn
let nodes = null, told = null, tree = null;

function build(root) {
  nodes = { steps: h("div", { class: "decodesteps" }), candidates: h("section", { class: "panel" }), tree: h("section", { class: "panel" }) };
  root.append(nodes.steps, h("div", { class: "decode" }, nodes.candidates, nodes.tree));
}

/** A piece as it is written: a dot before what goes on with a word. */
const piece = (token) => (/^▁./u.test(token) ? token.slice(1) : /^\p{L}/u.test(token) ? `·${token}` : token);

async function draw(app) {
  const { state } = app;
  told = await app.source.decoding(app.wish());
  if (!told.steps.length) { nodes.steps.replaceChildren(emptyState(app)); nodes.candidates.replaceChildren(); nodes.tree.replaceChildren(); tree = null; return; }
  const step = Math.min(Math.max(0, state.get().step), told.steps.length - 1);
  const go = (next) => state.set({ step: Math.min(told.steps.length - 1, Math.max(0, next)) });
  const buttons = told.steps.map((one, place) => h("button", {
    class: "token", dir: "auto", "aria-pressed": String(place === step), tabindex: place === step ? 0 : -1, title: `step ${place + 1}: ${figure(one.chosen.probability, 4)}`,
    onclick: () => go(place), onkeydown: (event) => { steer(event, buttons, place, () => go(place)); if (event.key.startsWith("Arrow")) go(place + (event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1)); },
    dataset: { forced: one.forced ? "yes" : "" },
  }, piece(one.chosen.token), h("small", { class: "figure" }, figure(one.chosen.probability))));
  nodes.steps.replaceChildren(h("div", { class: "stepper" },
    h("button", { class: "quiet", "aria-label": "Step back", onclick: () => go(step - 1), disabled: step === 0 }, "◀"), h("span", { class: "figure" }, `step ${step + 1} of ${told.steps.length}`),
    h("button", { class: "quiet", "aria-label": "Step on", onclick: () => go(step + 1), disabled: step === told.steps.length - 1 }, "▶")), h("div", { class: "tokens" }, buttons));

  const before = told.steps.slice(0, step).map((one) => one.chosen.id);
  const force = (ids) => state.set({ forced: ids, step: ids.length });
  const now = told.steps[step];
  nodes.candidates.replaceChildren(h("h2", {}, "What could come here"), h("div", { class: "bars" }, now.candidates.map((one) => {
    const taken = one.id === now.chosen.id;
    return h("button", { class: "bar candidate", dataset: { lit: taken ? "yes" : "" }, title: taken ? "This is what was chosen" : "Force this token and go on from here", onclick: () => { if (!taken) force([...before, one.id]); } },
      h("bdi", { class: "name" }, piece(one.token)), h("span", { class: "track" }, Object.assign(h("span", { class: "fill" }), { style: `width:${(100 * one.probability).toFixed(1)}%` })), h("span", { class: "figure" }, figure(one.probability, 4)));
  })), h("p", { class: "hint" }, "Click another token to force it; the model goes on from there."));

  tree = drawTree(step, (ids) => force(ids));
  const scroll = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The beam as a tree" }, tree.svg);
  nodes.tree.replaceChildren(h("h2", {}, "The beam"), scroll, h("p", { class: "hint" }, "Each column is a step: the kept hypotheses in ink, those that were dropped pale, what was chosen in the accent. Numbers are scores: log-probability per token. ",
    told.tree.length > MOST ? `The first ${MOST} of ${told.tree.length} steps are drawn.` : ""));
  scroll.scrollLeft = Math.max(0, tree.x(step) - scroll.clientWidth / 2);
}

/** What the search answered with, as places in the tree: the branches of the chosen tokens, one from the other. */
function winner(steps, chosen) {
  const path = new Map();
  for (let step = 0; step < Math.min(steps.length, chosen.length); step += 1) {
    const place = steps[step].findIndex((branch) => branch.id === chosen[step] && branch.kept && (step === 0 || goingOn(steps[step - 1])[branch.parent] === path.get(step - 1)));
    if (place < 0) break;
    path.set(step, place);
  }
  return path;
}

/** The places of the hypotheses that a step kept to go on with, in their order. */
const goingOn = (branches) => branches.map((branch, place) => (branch.kept && !branch.ended ? place : -1)).filter((place) => place >= 0);

function drawTree(current, force) {
  const colours = theme();
  const steps = told.tree.slice(0, MOST);
  const font = `14px ${SERIF}`, high = 30, top = 24;
  const widths = steps.map((branches) => Math.min(120, Math.max(44, ...branches.map((branch) => measure(piece(branch.token), font)))) + 62);
  const x = (step) => 14 + widths.slice(0, step).reduce((sum, wide) => sum + wide, 0);
  const rows = Math.max(...steps.map((branches) => branches.length));
  const best = winner(told.tree, told.steps.map((one) => one.chosen.id));
  const y = (place) => top + place * high + high / 2;
  const edges = s("g", { fill: "none" }), labels = s("g", { "font-family": SERIF, "font-size": 14 }), figures = s("g", { "font-family": SANS, "font-size": 10, class: "figure" });
  const band = s("rect", { x: x(Math.min(current, steps.length - 1)) - 8, y: 4, width: widths[Math.min(current, steps.length - 1)] - 10, height: rows * high + top, fill: colours.stops[1], "fill-opacity": 0.5, rx: 6 });
  const paths = [];
  steps.forEach((branches, step) => {
    paths[step] = [];
    const before = step > 0 ? goingOn(steps[step - 1]) : [];
    figures.append(s("text", { x: x(step), y: 16, fill: colours.soft }, String(step + 1)));
    branches.forEach((branch, place) => {
      const from = step > 0 ? before[branch.parent] : -1;
      paths[step][place] = [...(from >= 0 ? paths[step - 1][from] : []), branch.id];
      const won = best.get(step) === place;
      const colour = won ? colours.accent : colours.stops.at(-3), opacity = won ? 1 : branch.kept ? 0.85 : 0.3;
      if (from >= 0) {
        const x1 = x(step) - 12, x0 = x1 - 16, y0 = y(from), y1 = y(place);
        edges.append(s("path", { d: `M${x0} ${y0}C${x0 + 9} ${y0} ${x1 - 9} ${y1} ${x1 + 8} ${y1}`, stroke: colour, "stroke-opacity": opacity, "stroke-width": (0.6 + 3 * Math.exp(branch.log_prob)).toFixed(2) }));
      }
      const shown = fitted(piece(branch.token), 120, font);
      const node = s("g", { class: "branch", tabindex: branch.kept ? 0 : -1, role: "button", "aria-label": `${piece(branch.token)}, ${branch.kept ? "kept" : "dropped"}, score ${figure(branch.score, 3)}`, opacity,
        onclick: () => force(branch.ended ? paths[step][place].slice(0, -1) : paths[step][place]),
        onkeydown: (event) => { if (event.key === "Enter") force(branch.ended ? paths[step][place].slice(0, -1) : paths[step][place]); } },
      s("rect", { x: x(step) - 2, y: y(place) - 13, width: widths[step] - 30, height: 26, rx: 4, fill: "transparent" }),
      s("text", { x: x(step) + 2, y: y(place) + 5, fill: won ? colours.accent : colours.text, "font-style": branch.kept ? "normal" : "italic" }, shown),
      s("text", { x: x(step) + 7 + measure(shown, font), y: y(place) + 5, "font-size": 10, "font-family": SANS, fill: colours.soft, class: "figure" }, figure(branch.score)));
      labels.append(node);
    });
  });
  const width = x(steps.length) + 10;
  return { svg: sheet(width, top + rows * high + 8, "The beam as a tree", band, edges, labels, figures), x };
}

export const decoding = {
  title: "Decoding", available: (app) => Boolean(app.source.decoding) && app.run().verbs.includes("decode"), build, draw,
  exports: () => (tree ? {
    drawings: [tree.svg.cloneNode(true)], numbers: told,
    table: () => [["step", "token", "log_prob", "score", "kept", "ended", "parent"], ...told.tree.flatMap((branches, step) => branches.map((one) => [step + 1, one.token, one.log_prob, one.score, one.kept, one.ended, one.parent]))],
  } : null),
};
