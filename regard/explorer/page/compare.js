/** Compare: two runs on the same input, side by side. Words are matched by what they say, so vocabularies may differ. */

import { emptyState, rowsOf } from "./alignment.js";
import { axesOf, labels } from "./axes.js";
import { drawLines } from "./lines.js";
import { drawMatrix } from "./matrix.js";
import { figure, h, headTitle, siteTitle } from "./svg.js";

let nodes = null, sides = [];

function build(root) {
  nodes = { both: h("div", { class: "two compare" }) };
  root.append(nodes.both);
}

/** The runs that this one can be compared with: all that read text. */
function likes(app) {
  return app.runs.map((_, i) => i).filter((i) => i !== app.state.get().run && app.runs[i].task !== "image");
}

async function draw(app) {
  const { run, other, scale } = app.state.get();
  const numbers = [run, likes(app).includes(other) ? other : likes(app)[0]];
  const columns = numbers.map(() => h("section", { class: "panel" }));
  nodes.both.replaceChildren(...columns);
  const found = await Promise.all(numbers.map(async (number) => {
    try {
      const wish = app.wish(number === run ? {} : { run: number, off: [], forced: [], checkpoint: "" });
      const scene = number === run ? app.scene : await app.source.look(wish);
      const same = number === run ? null : scene.sites.find((one) => one.site === app.site());
      const site = number === run || same ? app.site() : scene.alignment;
      const head = number === run || same?.heads.some((one) => String(one.number) === app.head()) || (same && !/^\d+$/.test(app.head())) ? app.head() : "mean";
      return { number, scene, site, head, matrix: site ? await app.source.matrix(wish, site, head, "words") : null };
    } catch (error) { return { number, error }; }
  }));
  sides = [];
  found.forEach((one, place) => {
    const about = app.runs[one.number];
    const title = h("div", { class: "toolbar" }, place ? h("select", { "aria-label": "Compare with", onchange: (event) => app.state.set({ other: Number(event.target.value) }) }, likes(app).map((i) => h("option", { value: i, selected: i === one.number }, app.runs[i].name))) : h("strong", {}, about.name), h("span", { class: "hint" }, about.model));
    if (one.error) { columns[place].replaceChildren(title, h("div", { class: "failure" }, one.error.message)); return; }
    const answer = h("p", { class: "comparison" }, h("bdi", { class: "output" }, one.scene.output || "nothing"), h("span", { class: "score figure" }, figure(one.scene.score, 3)));
    if (!one.site) { columns[place].replaceChildren(title, answer, emptyState(app)); return; }
    const axes = axesOf(one.scene, one.site);
    const named = { queries: labels(axes.queries, "words"), keys: labels(axes.keys, "words") };
    const side = { named, run: about.name, site: one.site, matrix: one.matrix };
    const hear = (kind, at) => { if (kind === "hover") sides.forEach((each) => each.light(side, at)); };
    const box = h("div", { class: "drawing" }), grid = h("div", { class: "panel wide" });
    columns[place].replaceChildren(title, answer, h("p", { class: "hint" }, siteTitle(one.site) + (axes.heads.length > 1 || one.head === "rollout" ? ` · ${headTitle(one.head)}` : "")), box, grid);
    side.lines = drawLines({ ...named, matrix: one.matrix, width: box.clientWidth, captions: null, hear });
    side.grid = drawMatrix({ ...named, matrix: one.matrix, width: grid.clientWidth, most: 420, scale, hear });
    box.append(side.lines.svg);
    grid.append(side.grid.node);
    side.light = (from, at) => {
      const moved = at && from !== side ? { query: twin(from.named.queries, at.query, named.queries), key: twin(from.named.keys, at.key, named.keys) } : at ?? { query: -1, key: -1 };
      side.lines.mark(moved);
      side.grid.mark(moved);
    };
    sides.push(side);
  });
}

/** The same word on the other side, the one of several that is as far along. */
function twin(words, place, others) {
  if (place < 0) return -1;
  const before = words.slice(0, place).filter((word) => word === words[place]).length;
  let seen = 0;
  return others.findIndex((word) => word === words[place] && seen++ === before);
}

export const compare = {
  title: "Compare", available: (app) => app.run().task !== "image" && likes(app).length > 0, redraws: true, build, draw,
  exports: () => (sides.length ? {
    drawings: sides.flatMap((side) => [side.lines.svg.cloneNode(true), side.grid.whole()]),
    numbers: sides.map((side) => ({ run: side.run, site: side.site, ...side.named, weights: rowsOf(side.matrix) })),
    table: () => sides.flatMap((side) => [[side.run, ...side.named.keys], ...rowsOf(side.matrix).map((weights, row) => [side.named.queries[row], ...weights])]),
  } : null),
};
