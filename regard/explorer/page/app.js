/** The page: the sentence at its centre, the views around it, one selection for all of them. */

import { createState } from "./state.js";
import { mode } from "./theme.js";
import { axesOf, moved } from "./axes.js";
import { h } from "./svg.js";
import { createSentence } from "./sentence.js";
import { exportMenu } from "./export.js";
import { alignment } from "./alignment.js";
import { pictures } from "./pictures.js";
import { heads } from "./heads.js";
import { inside } from "./inside.js";
import { decoding } from "./decoding.js";
import { positions } from "./positions.js";
import { training } from "./training.js";
import { compare } from "./compare.js";

const VIEWS = { alignment, pictures, heads, inside, decoding, compare, positions, training };
const RELOOK = ["run", "text", "off", "forced", "checkpoint"];

/** Open the page in `root`, with numbers from `source`. */
export async function open(root, source, { inAddress = true } = {}) {
  let runs;
  try {
    ({ runs } = await source.about());
  } catch (error) {
    root.replaceChildren(h("div", { class: "failure", role: "alert" }, h("h1", {}, "Nothing to show"), h("p", {}, error.message)));
    return null;
  }
  const state = createState(inAddress);
  const app = { root, source, runs, state, scene: null, error: null, failure: null, hovered: null, milliseconds: 0 };
  if (state.get().run >= runs.length || state.get().run < 0) state.set({ run: 0 });
  app.run = () => runs[state.get().run] ?? runs[0];
  if (state.get().text === null) state.set({ text: app.run().examples[0] ?? "" });

  /** What the numbers are asked for: all that decides them. */
  app.wish = (changes = {}) => {
    const { run, text, off, forced, checkpoint } = { ...state.get(), ...changes };
    return { run, text: text ?? "", off, forced, checkpoint };
  };
  /** What is selected: what is hovered, else what was kept. In the unit of the view. */
  app.selection = () => app.hovered ?? { query: state.get().query, key: state.get().key };
  app.hear = (kind, selection) => {
    if (kind === "hover") {
      app.hovered = selection;
      view().mark?.(app);
      return;
    }
    const { query, key } = state.get();
    const again = query === selection.query && key === selection.key;
    state.set(again ? { query: -1, key: -1 } : selection);
  };
  /** The site and head that are shown, or the scene's own alignment where none was chosen. */
  app.site = () => {
    const { site } = state.get();
    const known = app.scene?.sites.some((one) => one.site === site);
    return known ? site : app.scene?.alignment ?? "";
  };
  app.head = () => {
    const { head } = state.get();
    const found = app.scene && axesOf(app.scene, app.site());
    if (found && /^\d+$/.test(head) && !found.heads.some((one) => String(one.number) === head)) return "mean";
    return found?.heads.length === 1 && head !== "rollout" ? String(found.heads[0].number) : head;
  };

  const page = frame(app);
  root.replaceChildren(page.node);
  const view = () => VIEWS[available(app).includes(state.get().view) ? state.get().view : available(app)[0]];
  let shown = null;

  /** One drawing at a time, and the latest: what changed meanwhile is drawn when this one is done. The page is `ready`
   *  while it shows all that it was asked for. */
  let drawing = null, stale = false, wanted = 0, answered = 0, drawings = 0;
  function draw() {
    stale = true;
    delete root.dataset.ready;
    drawing ??= (async () => {
      let drawn = false;
      while (stale) { stale = false; drawn = await drawOnce(); }
      drawing = null;
      if (drawn && answered === wanted) root.dataset.ready = ++drawings;
    })();
    return drawing;
  }

  async function drawOnce() {
    const focus = focused(root);
    app.failure = null;
    try {
      const current = view();
      if (shown !== current) {
        shown = current;
        app.hovered = null;
        page.body.replaceChildren();
        page.body.dataset.view = Object.keys(VIEWS).find((name) => VIEWS[name] === current);
        current.build(page.body, app);
      }
      page.tell();
      if (!app.scene && !current.alone) return false;
      await current.draw(app);
      current.mark?.(app);
      focus();
      return true;
    } catch (error) {
      page.fail(error);
      return false;
    }
  }

  /** One question at a time, and the latest: what was typed meanwhile is asked for when the answer is there. */
  let asking = false;
  async function look() {
    wanted += 1;
    delete root.dataset.ready;
    if (asking) return;
    asking = true;
    page.busy(true);
    while (answered < wanted) {
      const question = wanted, began = performance.now();
      try {
        const answer = source.look(app.wish());
        if (app.scene) view().ahead?.(app);
        app.scene = await answer;
        app.error = null;
      } catch (error) {
        app.error = error;
      }
      app.milliseconds = performance.now() - began;
      answered = question;
      if (answered === wanted) await draw();
    }
    asking = false;
    page.busy(false);
  }

  state.subscribe((changed) => {
    if (changed.includes("unit") && !changed.includes("query") && !changed.includes("key") && app.scene) {
      const axes = axesOf(app.scene, app.site());
      const { unit, query, key } = state.get();
      if (axes) {
        const next = { query: moved(axes.queries, query, unit), key: moved(axes.keys, key, unit) };
        if (next.query !== query || next.key !== key) state.set(next);
      }
    }
    if (changed.includes("text")) page.sentence.show(state.get().text);
    if (changed.some((name) => RELOOK.includes(name))) { look(); return; }
    if (changed.every((name) => name === "query" || name === "key") && view().mark && !view().redraws) { view().mark(app); return; }
    draw();
  });
  app.redraw = draw;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(root.clientWidth - width) > 4) { width = root.clientWidth; draw(); }
  }).observe(root);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") state.set({ query: -1, key: -1 });
  });
  await look();
  return app;
}

/** Drawing replaces buttons: a function that gives the focus back to the one in the same place. */
function focused(root) {
  const held = document.activeElement, all = () => [...root.querySelectorAll("button, select")];
  const place = all().indexOf(held);
  return () => { if (place >= 0 && !held.isConnected && document.activeElement === document.body) all()[place]?.focus(); };
}

/** The views that this run, and this page, can show. */
function available(app) {
  return Object.keys(VIEWS).filter((name) => VIEWS[name].available(app));
}

/** Everything around the views. */
function frame(app) {
  const { state } = app;
  const body = h("main", { id: "view", tabindex: -1 });
  const sentence = createSentence(app);
  const nav = h("nav", { "aria-label": "Views" });
  const name = h("div", { class: "run" });
  const failure = h("div", { class: "failure", role: "alert", hidden: true });
  const theme = h("button", { class: "quiet", title: "Day or night", "aria-label": "Switch between day and night", onclick: () => {
    document.documentElement.dataset.theme = mode() === "dark" ? "light" : "dark";
    app.redraw();
  } }, "◐");
  const tools = h("div", { class: "tools" }, exportMenu(app, () => VIEWS[body.dataset.view]), theme);
  const brand = h("a", { class: "brand", href: "#", title: "Regard", onclick: (event) => event.preventDefault() }, "Regard");
  const node = h("div", { class: "page" }, h("header", {}, brand, name, nav, tools), sentence.node, failure, body);

  function tell() {
    const run = app.run();
    nav.replaceChildren(...available(app).map((key) => h("button", {
      class: "tab", "aria-current": body.dataset.view === key ? "page" : null, onclick: () => state.set({ view: key }),
    }, VIEWS[key].title)));
    const current = nav.querySelector("[aria-current]"); // on a narrow screen the row is longer than the page
    if (current) nav.scrollLeft = current.offsetLeft + current.offsetWidth - nav.offsetLeft - nav.clientWidth;
    const choice = app.runs.length > 1 ? h("select", { "aria-label": "Run", onchange: (event) => {
      const next = app.runs[Number(event.target.value)];
      const text = next.task === run.task ? state.get().text : next.examples[0] ?? ""; // another kind of input needs another example
      state.set({ run: Number(event.target.value), text, off: [], forced: [], checkpoint: "", query: -1, key: -1 });
    } },
      app.runs.map((one, i) => h("option", { value: i, selected: i === state.get().run }, one.name))) : h("strong", {}, run.name);
    name.replaceChildren(choice, h("span", {}, run.model), state.get().checkpoint ? h("button", { class: "chip", title: "Back to the best weights", onclick: () => state.set({ checkpoint: "" }) }, `step ${Number(state.get().checkpoint).toLocaleString("en")} ×`) : "");
    sentence.tell();
    const wrong = app.error ?? app.failure;
    failure.hidden = !wrong;
    if (wrong) failure.replaceChildren(h("strong", {}, "That did not work. "), wrong.message);
    body.classList.toggle("stale", Boolean(wrong) && !VIEWS[body.dataset.view]?.alone);
  }
  let waiting = 0;
  const busy = (on) => {
    clearTimeout(waiting);
    if (on) waiting = setTimeout(() => node.classList.add("busy"), 250);
    else node.classList.remove("busy");
  };
  const fail = (error) => { app.failure = error; tell(); };
  return { node, body, sentence, tell, busy, fail };
}
