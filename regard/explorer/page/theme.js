/** Colours: one hue from paper to ink, one accent for the selection; the same page by day and by night. */

const DAY = ["#fffdf8", "#e4e9f1", "#c9d5ea", "#afc1e1", "#97aed7", "#809acb", "#6b87bc", "#5874aa", "#476297", "#385182",
  "#2b406c", "#1e3056", "#112042"];
const NIGHT = ["#12161d", "#1a2436", "#1e3452", "#23456f", "#2b5689", "#3b68a1", "#507ab4", "#698cc4", "#839fcf", "#9fb2d8",
  "#b9c5e0", "#d3d9e8", "#e9eef9"];
const PALETTES = {
  light: { stops: DAY, paper: "#fffdf8", text: "#0d1426", soft: "#5b6275", rule: "#d9d5cb", accent: "#b8400e" },
  dark: { stops: NIGHT, paper: "#12161d", text: "#e9edf6", soft: "#98a1b5", rule: "#2c3342", accent: "#ff9f5a" },
};

export const SERIF = '"Iowan Old Style", "Palatino Linotype", Palatino, Charter, "Bitstream Charter", "Source Serif 4", ' +
  '"Noto Serif", "Noto Naskh Arabic", "Noto Serif CJK SC", "Songti SC", Georgia, serif';
export const SANS = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "Liberation Sans", Arial, sans-serif';

/** 256 colours from stops that are even in lightness. */
function ramp(stops) {
  const table = new Uint8ClampedArray(256 * 3);
  const parts = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) table[3 * i + c] = parts[low][c] + (parts[low + 1][c] - parts[low][c]) * (place - low);
  }
  return table;
}

const RAMPS = { light: ramp(DAY), dark: ramp(NIGHT) };

/** "light" or "dark": what the reader chose, else what the system prefers. */
export function mode() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** The colours to draw with now. `ink(share)` is the colour of a weight between 0 and 1. */
export function theme() {
  const name = mode();
  const table = RAMPS[name];
  const ink = (share) => {
    const at = 3 * Math.round(255 * Math.min(1, Math.max(0, share)));
    return `rgb(${table[at]},${table[at + 1]},${table[at + 2]})`;
  };
  return { ...PALETTES[name], name, table, ink };
}
