/** Heads: every layer by every head, with what each one does, sortable; one click switches a head off. */

import { emptyState } from "./alignment.js";
import { shortSite, thumbnail } from "./picker.js";
import { axesOf, labels } from "./axes.js";
import { drawMatrix } from "./matrix.js";
import { figure, h, headTitle, s, sheet, siteTitle } from "./svg.js";
import { SANS, theme } from "./theme.js";

const SORTS = {
  layer: "layer", previous: "previous token", next: "next token", same: "same token", first: "first token", mark: "marks, such as the end", sharp: "sharpness", broad: "breadth",
};
let nodes = null, shown = [], large = null;

function build(root) {
  nodes = { toolbar: h("div", { class: "toolbar" }), grid: h("div", { class: "headgrid" }), large: h("aside", { class: "panel", id: "large" }) };
  root.append(nodes.toolbar, h("div", { class: "withside" }, nodes.grid, nodes.large));
}

const layerOf = (site) => site.split(".").slice(0, 2).join(".");

function isOff(off, site, number) {
  return off.includes(`${site}.${number}`) || off.includes(layerOf(site));
}

/** Switch a name on or off. */
function toggled(off, name) {
  return off.includes(name) ? off.filter((one) => one !== name) : [...off, name].sort();
}

async function draw(app) {
  const { scene, state } = app;
  const { sort, off } = state.get();
  if (!scene.sites.length) { nodes.toolbar.replaceChildren(); nodes.large.replaceChildren(); nodes.grid.replaceChildren(emptyState(app)); shown = []; return; }
  const wish = app.wish();
  const small = await app.source.thumbnails(wish);
  const pictures = Object.fromEntries(scene.sites.map((one, place) => [one.site, small[place]]));
  const switches = app.source.decoding && app.run().verbs.includes("switch");
  nodes.toolbar.replaceChildren(h("label", {}, "Sort by ", h("select", { onchange: (event) => state.set({ sort: event.target.value }) },
    Object.entries(SORTS).map(([value, text]) => h("option", { value, selected: value === sort }, text)))), h("span", { class: "space" }),
    h("span", { class: "hint" }, switches ? "Click a head to enlarge it; switch it off to see what it is for." : "Click a head to enlarge it."));
  const all = scene.sites.flatMap((one) => one.heads.map((head, place) => ({ ...head, site: one.site, place })));
  if (sort !== "layer") all.sort((a, b) => (b.measures[sort] ?? -1) - (a.measures[sort] ?? -1));
  /** What is off once this head is on (its whole layer with it, if that was off), or off. */
  const switched = ({ site, number }, on) => {
    const name = `${site}.${number}`, others = off.filter((one) => one !== layerOf(site) && one !== name);
    return on ? others : [...others, name].sort();
  };
  const card = (head) => {
    const current = head.site === app.site() && String(head.number) === app.head();
    const dead = isOff(off, head.site, head.number);
    const measure = sort !== "layer" ? head.measures[sort] : head.measures[head.label];
    return h("div", { class: "head", dataset: { off: dead ? "yes" : "", label: head.label, name: `${head.site}.${head.number}` } },
      h("button", { class: "thumb", "aria-pressed": String(current), title: `${siteTitle(head.site)}, head ${head.number}: ${head.why}`, "aria-label": `${siteTitle(head.site)}, head ${head.number}: ${head.why}`,
        onclick: () => state.set({ site: head.site, head: String(head.number), query: -1, key: -1 }) }, thumbnail(pictures[head.site], head.place, 78)),
      h("div", { class: "caption" }, h("span", { class: "number" }, sort === "layer" ? `head ${head.number}` : `${shortSite(head.site)} · ${head.number}`),
        switches ? h("button", { class: "switch", role: "switch", "aria-checked": String(!dead), "aria-label": `${siteTitle(head.site)}, head ${head.number}: ${dead ? "off" : "on"}`, title: dead ? "Switch on" : "Switch off",
          onclick: () => state.set({ off: switched(head, dead), forced: [] }) }) : ""),
      h("div", { class: "label", title: head.why }, head.label, measure !== undefined ? h("span", { class: "figure" }, ` ${figure(measure)}`) : ""));
  };
  shown = all.map((head) => ({ ...head, picture: pictures[head.site] }));
  nodes.grid.style.setProperty("--across", sort === "layer" ? Math.max(...scene.sites.map((one) => one.heads.length)) : 99);
  nodes.grid.replaceChildren(...(sort === "layer" ? scene.sites.map((one) => {
    const layer = layerOf(one.site);
    const layered = switches && /\.\d+$/.test(layer) && scene.sites.find((other) => layerOf(other.site) === layer) === one;
    return h("section", { class: "headrow" }, h("h3", {}, siteTitle(one.site), layered ? h("button", { class: "chip", "aria-pressed": String(off.includes(layer)),
      onclick: () => state.set({ off: toggled(off.filter((name) => !name.startsWith(`${layer}.`)), layer), forced: [] }) }, off.includes(layer) ? "layer off: switch on" : "layer off") : ""),
    h("div", { class: "row" }, all.filter((head) => head.site === one.site).map(card)));
  }) : [h("section", { class: "headrow" }, h("div", { class: "row" }, all.map(card)))]));
  await enlarge(app);
}

/** The chosen head, with its words. */
async function enlarge(app) {
  const site = app.site(), head = app.head(), { unit, scale } = app.state.get();
  const axes = axesOf(app.scene, site);
  const numbers = await app.source.matrix(app.wish(), site, head, unit);
  const told = axes.heads.find((one) => String(one.number) === head);
  nodes.large.replaceChildren();
  large = drawMatrix({ queries: labels(axes.queries, unit), keys: labels(axes.keys, unit), matrix: numbers, width: nodes.large.clientWidth || 360, most: 420, scale, hear: app.hear });
  nodes.large.replaceChildren(h("h2", {}, `${siteTitle(site)} · ${headTitle(head)}`), h("p", { class: "hint" }, told ? `${told.why[0].toUpperCase()}${told.why.slice(1)}.` : ""), large.node,
    h("button", { class: "link", onclick: () => app.state.set({ view: "alignment" }) }, "Show it on the sentence"));
}

export const heads = {
  title: "Heads", available: (app) => Boolean(app.source.thumbnails), build, draw, mark: (app) => large?.mark(app.selection()),
  exports: () => ({
    drawings: [multiples()],
    numbers: shown.map(({ site, number, label, why, measures }) => ({ site, head: number, label, why, measures })),
    table: () => [["site", "head", "label", ...Object.keys(SORTS).slice(1)], ...shown.map((head) => [head.site, head.number, head.label, ...Object.keys(SORTS).slice(1).map((name) => head.measures[name] ?? "")])],
  }),
};

/** All heads on one sheet, for export. */
function multiples() {
  const colours = theme(), side = 84, step = 108, across = 8;
  const parts = shown.map((head, place) => {
    const x = 16 + (place % across) * step, y = 16 + Math.floor(place / across) * (step + 26);
    const picture = thumbnail(head.picture, head.place, side);
    const [, rows, columns] = head.picture.shape, longer = Math.max(rows, columns);
    const text = (dy, words) => s("text", { x, y: y + side + dy, "font-family": SANS, "font-size": 10, fill: colours.text }, words);
    return s("g", {}, s("image", { href: picture.src, x, y, width: (side * columns) / longer, height: (side * rows) / longer, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
      text(13, `${shortSite(head.site)} · ${head.number}`), text(26, head.label));
  });
  return sheet(32 + across * step, 32 + Math.ceil(shown.length / across) * (step + 26), "All heads", parts);
}
