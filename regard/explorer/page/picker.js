/** Which head is shown: every layer and head as a thumbnail, to choose from. */

import { fullInk, paint } from "./matrix.js";
import { h, headTitle, siteTitle } from "./svg.js";

/** A thumbnail of one head of a site. */
export function thumbnail(pictures, place, side) {
  const [, rows, columns] = pictures.shape;
  const part = pictures.data.subarray(place * rows * columns, (place + 1) * rows * columns);
  const full = fullInk(part);
  const canvas = paint(h("canvas", { "aria-hidden": "true" }), rows, columns, (row, column) => part[row * columns + column] / full);
  const longer = Math.max(rows, columns);
  // As an image: a page composes each canvas by itself, and there can be hundreds.
  const style = `width:${Math.max(4, (side * columns) / longer)}px;height:${Math.max(4, (side * rows) / longer)}px`;
  return Object.assign(h("img", { alt: "", decoding: "sync", src: canvas.toDataURL() }), { style });
}

/** "encoder · layer 0 · self-attention", short. */
export const shortSite = (site) => site.replace(/\.(\d+)\./, " $1 ").replace(".", " ");

/** A grid of all heads; the chosen one is marked, a click chooses another. */
export async function picker(app) {
  const { scene, state } = app;
  const most = Math.max(...scene.sites.map((site) => site.heads.length));
  const side = Math.max(14, Math.min(34, Math.floor(210 / most) - 6));
  const wish = app.wish();
  const all = await app.source.thumbnails(wish);
  const rows = scene.sites.map((one, place) => {
    const pictures = all[place];
    const chosen = (head) => one.site === app.site() && String(head) === app.head();
    const button = (head, inner, title) => h("button", {
      class: "thumb", title, "aria-label": `${siteTitle(one.site)}, ${headTitle(String(head))}`, "aria-pressed": String(chosen(head)),
      onclick: () => state.set({ site: one.site, head: String(head) }),
      dataset: { off: state.get().off.includes(`${one.site}.${head}`) || state.get().off.includes(one.site.split(".").slice(0, 2).join(".")) ? "yes" : "" },
    }, inner);
    const thumbs = one.heads.map((head, number) => button(head.number, thumbnail(pictures, number, side), `head ${head.number} ${head.why}`));
    const ways = [...(one.heads.length > 1 ? ["mean", "max"] : []), ...(scene.rollout === false ? [] : ["rollout"])];
    const summary = ways.map((kind) => button(kind, h("span", { class: "word" }, kind), headTitle(kind)));
    const current = one.site === app.site() ? "yes" : "";
    return h("div", { class: "siterow", dataset: { current } }, h("div", { class: "sitename" }, shortSite(one.site)), h("div", { class: "thumbs" }, thumbs),
      h("div", { class: "ways" }, summary));
  });
  return h("div", { class: "picker", role: "group", "aria-label": "Layers and heads" }, rows);
}
