/** The selection: one for all views, and all of it in the address, so that a link restores it. */

const DEFAULTS = {
  view: "alignment", run: 0, text: null, site: "", head: "mean", unit: "words", scale: "global",
  query: -1, key: -1, off: [], forced: [], checkpoint: "", sort: "layer", step: 0, other: 1,
};

function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS, off: [], forced: [] };
  for (const [name, value] of given) {
    if (!(name in DEFAULTS)) continue;
    const before = DEFAULTS[name];
    if (name === "forced") state.forced = value.split(".").filter(Boolean).map(Number).filter(Number.isInteger);
    else if (Array.isArray(before)) state[name] = value.split(",").filter(Boolean);
    else if (typeof before === "number") state[name] = Number.isInteger(Number(value)) ? Number(value) : before;
    else state[name] = value;
  }
  return state;
}

function write(state) {
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (!(name in DEFAULTS) || JSON.stringify(value) === JSON.stringify(DEFAULTS[name]) || value === null) continue;
    if (name === "text" && value.startsWith("data:")) continue; // a picture of one's own is too long for an address
    told.set(name, Array.isArray(value) ? value.join(name === "forced" ? "." : ",") : String(value));
  }
  return "#" + told.toString();
}

/** The state, with `set(changes)`, `subscribe(listener)`; the listener hears which names changed. */
export function createState(inAddress = true) {
  let state = read(inAddress ? location.hash : "");
  const listeners = [];
  const tell = (changed) => { if (changed.length) listeners.forEach((listener) => listener(changed)); };
  const differing = (next) => Object.keys(next).filter((name) => JSON.stringify(next[name]) !== JSON.stringify(state[name]));

  const set = (changes) => {
    const changed = differing(changes);
    state = { ...state, ...changes };
    if (changed.length && inAddress) history.replaceState(null, "", write(state));
    tell(changed);
  };
  if (inAddress) {
    addEventListener("hashchange", () => {
      const next = read(location.hash);
      const changed = differing(next);
      state = next;
      tell(changed);
    });
  }
  return { get: () => state, set, subscribe: (listener) => listeners.push(listener), link: () => write(state) };
}
