/** A line chart: steps across, values up, a reading under the pointer. */

import { figure, s, sheet } from "./svg.js";
import { SANS, theme } from "./theme.js";

/** Round steps for an axis. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * unit).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(10)));
  return found;
}

/** `series`: [{name, points: [[x, y]], strong}]. */
export function drawChart({ title, series, width, height = 240 }) {
  const colours = theme();
  const all = series.flatMap((one) => one.points);
  const left = 46, right = 84, top = 30, bottom = 28;
  const xs = all.map(([x]) => x), ys = all.map(([, y]) => y).filter(Number.isFinite);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
  const spare = (Math.max(...ys) - Math.min(...ys)) * 0.06 || 1;
  const low = Math.min(...ys);
  const [y0, y1] = [low < 0 ? low - spare : Math.max(0, low - spare), Math.max(...ys) + spare];
  const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const y = (value) => top + (1 - (value - y0) / (y1 - y0)) * (height - top - bottom);
  const text = (at, up, words, anchor, fill = colours.soft, size = 11) => s("text", { x: at, y: up, "text-anchor": anchor, fill, "font-size": size }, words);
  const grid = s("g", {}, ticks(y0, y1, 4).map((value) => [s("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: colours.rule }), text(left - 8, y(value) + 4, value.toLocaleString("en", { maximumFractionDigits: 8 }), "end")]).flat(),
    ticks(x0, x1, Math.max(2, Math.floor(width / 130))).map((value) => text(x(value), height - 8, value.toLocaleString("en"), "middle")));
  const lines = series.map((one) => {
    const colour = one.strong ? colours.stops.at(-2) : colours.stops[5];
    const path = one.points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
    const [lx, ly] = one.points.at(-1);
    const dots = one.points.length < 12 ? one.points.map(([px, py]) => s("circle", { cx: x(px), cy: y(py), r: 3, fill: colour })) : [];
    return s("g", {}, s("path", { d: path, fill: "none", stroke: colour, "stroke-width": one.strong ? 2.2 : 1.6, "stroke-linejoin": "round" }), dots, text(x(lx) + 8, y(ly) + 4, one.name, "start", colour, 12));
  });
  const rule = s("line", { y1: top, y2: height - bottom, stroke: colours.accent, visibility: "hidden" });
  const reading = s("text", { x: width - right, y: 16, "text-anchor": "end", fill: colours.accent, "font-size": 12, class: "figure" });
  const svg = sheet(width, height, title, s("g", { "font-family": SANS }, text(left, 16, title, "start", colours.text, 13), grid, lines, rule, reading));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = x0 + ((event.clientX - box.left - left) / (width - left - right)) * (x1 - x0);
    const near = all.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best));
    rule.setAttribute("visibility", "visible");
    rule.setAttribute("x1", x(near[0]));
    rule.setAttribute("x2", x(near[0]));
    const values = series.map((one) => [one.name, one.points.find(([px]) => px === near[0])]).filter(([, point]) => point);
    reading.textContent = `step ${near[0].toLocaleString("en")}: ${values.map(([name, [, value]]) => `${name} ${figure(value, 3)}`).join(", ")}`;
  });
  svg.addEventListener("pointerleave", () => { rule.setAttribute("visibility", "hidden"); reading.textContent = ""; });
  return svg;
}
