/** Export: the drawing as SVG or PNG, its numbers as JSON or CSV, and a link that restores the view. */

import { h, s, sheet } from "./svg.js";
import { theme } from "./theme.js";

/** Several drawings below each other on one sheet, on paper. */
export function joined(drawings) {
  const margin = 20, gap = 18;
  const sizes = drawings.map((one) => [Number(one.getAttribute("width")), Number(one.getAttribute("height"))]);
  const width = Math.max(...sizes.map(([wide]) => wide)) + 2 * margin;
  const height = sizes.reduce((sum, [, high]) => sum + high + gap, 2 * margin - gap);
  let y = margin;
  const whole = sheet(Math.ceil(width), Math.ceil(height), "Regard", s("rect", { width: "100%", height: "100%", fill: theme().paper }));
  drawings.forEach((one, i) => {
    one.setAttribute("x", margin);
    one.setAttribute("y", y);
    y += sizes[i][1] + gap;
    whole.append(one);
  });
  for (const node of whole.querySelectorAll("[tabindex],[role]")) { node.removeAttribute("tabindex"); node.removeAttribute("role"); }
  return whole;
}

const markup = (svg) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}`;

async function pixels(svg, scale = 2) {
  const picture = new Image();
  await new Promise((loaded, failed) => { // not decode(), which waits for a frame that a page in the background never draws
    picture.onload = loaded;
    picture.onerror = () => failed(new Error("the drawing could not be turned into a picture"));
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup(svg))}`;
  });
  const canvas = h("canvas", { width: picture.width * scale, height: picture.height * scale });
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(picture, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** A cell of a CSV file; what a spreadsheet would take for a formula is kept as text. */
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const MAKERS = {
  svg: async ({ drawings }) => new Blob([markup(joined(drawings))], { type: "image/svg+xml" }),
  png: async ({ drawings }) => pixels(joined(drawings)),
  json: async ({ numbers }) => new Blob([JSON.stringify(numbers)], { type: "application/json" }),
  csv: async ({ table }) => new Blob(["\ufeff", table().map((row) => row.map(cell).join(",")).join("\r\n"), "\r\n"], { type: "text/csv" }),
};

function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The menu in the header. `view()` is the view that is shown. */
export function exportMenu(app, view) {
  const note = h("p", { class: "hint", "aria-live": "polite" });
  const run = async (kind) => {
    const made = view().exports?.(app);
    if (!made) { note.textContent = "There is nothing to export here yet."; return; }
    save(await MAKERS[kind](made), `regard-${document.querySelector("#view").dataset.view}.${kind}`);
    details.open = false;
  };
  const copy = async () => {
    const link = location.href.split("#")[0] + app.state.link();
    try { await navigator.clipboard.writeText(link); note.textContent = "Copied: it restores this very view."; } catch { note.textContent = link; }
  };
  const details = h("details", { class: "menu" }, h("summary", { class: "quiet", title: "Export" }, "Export"),
    h("div", { class: "sheet" },
      h("button", { onclick: () => run("svg") }, "Drawing, SVG"), h("button", { onclick: () => run("png") }, "Drawing, PNG"),
      h("button", { onclick: () => run("json") }, "Numbers, JSON"), h("button", { onclick: () => run("csv") }, "Numbers, CSV"),
      location.protocol.startsWith("http") ? h("button", { onclick: copy }, "Copy a link to this view") : "", note));
  details.addEventListener("toggle", () => { note.textContent = ""; });
  document.addEventListener("click", (event) => { if (!details.contains(event.target)) details.open = false; });
  details.addEventListener("keydown", (event) => { if (event.key === "Escape") { details.open = false; details.firstChild.focus(); } });
  return details;
}
