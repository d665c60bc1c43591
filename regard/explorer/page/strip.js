/** A vector as a strip of bars, up for positive, down for negative: signs stay readable without colours. */

import { s, sheet } from "./svg.js";
import { theme } from "./theme.js";

/** Draw `vector` in `width` x `height`; bars reach the edge at `top`. `hover(place)` hears which bar is under the pointer. */
export function drawStrip(vector, { width, height = 34, top, label, hover }) {
  const colours = theme();
  const most = top ?? Math.max(1e-9, ...vector.map(Math.abs));
  const step = width / vector.length, middle = height / 2;
  const thick = Math.max(0.8, step - (step > 4 ? 1.5 : step > 2 ? 0.5 : 0));
  const path = vector.map((value, i) => {
    const high = (Math.abs(value) / most) * (middle - 1);
    return `M${(i * step).toFixed(2)} ${(value > 0 ? middle - high : middle).toFixed(2)}h${thick.toFixed(2)}v${Math.max(0.4, high).toFixed(2)}h${(-thick).toFixed(2)}z`;
  }).join("");
  const lit = s("rect", { y: 0, width: Math.max(thick, 2), height, fill: colours.accent, "fill-opacity": 0.35, visibility: "hidden" });
  const svg = sheet(width, height, label, s("line", { x1: 0, x2: width, y1: middle, y2: middle, stroke: colours.rule }), s("path", { d: path, fill: colours.stops.at(-4) }), lit);
  svg.setAttribute("class", "strip");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    hover?.(Math.min(vector.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * vector.length))));
  });
  svg.addEventListener("pointerleave", () => hover?.(-1));
  const mark = (place) => {
    lit.setAttribute("visibility", place >= 0 && place < vector.length ? "visible" : "hidden");
    lit.setAttribute("x", place * step);
  };
  return { svg, mark };
}
