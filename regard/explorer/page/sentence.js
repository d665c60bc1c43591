/** The sentence: typed here, answered below it. Where something is switched off or forced, the answer before and after. */

import { figure, h } from "./svg.js";

/** A picture of one's own, made small before it is sent: models see no more than a few hundred pixels. */
async function shrunk(file) {
  const picture = await createImageBitmap(file).catch(() => null);
  if (!picture) return "data:image/png;base64,";
  const scale = Math.min(1, 384 / Math.min(picture.width, picture.height));
  const canvas = h("canvas", { width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}

export function createSentence(app) {
  const { state } = app;
  const fixed = !app.source.decoding; // a file shows one finished sentence
  const field = h("textarea", {
    rows: 1, dir: "auto", spellcheck: "false", "aria-label": "Input", placeholder: "Type a sentence …", readonly: fixed, maxlength: 20000,
    oninput: () => { grow(); state.set({ text: field.value, query: -1, key: -1, forced: [], step: 0 }); },
    onkeydown: (event) => { if (event.key === "Enter") event.preventDefault(); event.stopPropagation(); },
  });
  field.value = state.get().text ?? "";
  const examples = h("div", { class: "examples" });
  const own = h("input", { type: "file", accept: "image/*", hidden: true, onchange: async () => { if (own.files[0]) state.set({ text: await shrunk(own.files[0]), query: -1, key: -1 }); } });
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const node = h("section", { class: "sentence" }, field, answer, examples);

  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 160)}px`;
  }

  const line = (text, score, kind) => h("p", { class: kind, dir: "auto" },
    h("span", { class: "output" }, text || "nothing"), h("span", { class: "score figure", title: "log-probability per token" }, figure(score, 3)));

  async function tell() {
    grow();
    const run = app.run();
    const seen = run.about?.pictures;
    field.hidden = Boolean(seen);
    if (seen) {
      examples.replaceChildren(...Object.entries(seen).map(([name, source]) => h("button", { class: "photo", title: name, "aria-label": name, "aria-pressed": String(state.get().text === name), onclick: () => state.set({ text: name, query: -1, key: -1 }) }, h("img", { src: source, alt: "" }))),
        h("button", { class: "link", onclick: () => own.click() }, "Open a picture of your own"), own);
      if (!state.get().text && run.examples.length) state.set({ text: run.examples[0] });
    } else {
    const others = run.examples.filter((text) => text !== state.get().text);
    examples.replaceChildren(...(fixed || !others.length ? [] : ["Try ", ...others.slice(0, 4).map((text) =>
      h("button", { class: "link", dir: "auto", onclick: () => state.set({ text, query: -1, key: -1, forced: [], step: 0 }) }, text))]));
    }
    const { scene } = app;
    if (!scene) return;
    const changed = state.get().off.length || state.get().forced.length;
    const parts = [];
    if (changed && !fixed) {
      const before = await app.source.look(app.wish({ off: [], forced: [] })).catch(() => null);
      if (scene !== app.scene) return; // another sentence has been read meanwhile
      const difference = before?.score !== null && scene.score !== null ? scene.score - (before?.score ?? 0) : null;
      const off = state.get().off.length;
      parts.push(h("div", { class: "changes" },
        h("div", { class: "pair" }, h("span", { class: "when" }, "before"), before ? line(before.output, before.score, "before") : ""),
        h("div", { class: "pair" }, h("span", { class: "when" }, "now"), compared(before?.output ?? "", scene, difference)),
        h("div", { class: "undo" },
          off ? h("button", { class: "chip", onclick: () => state.set({ off: [] }) }, `${off} off: switch ${off > 1 ? "all" : "it"} on ×`) : "",
          state.get().forced.length ? h("button", { class: "chip", onclick: () => state.set({ forced: [] }) }, "own choice of tokens: let go ×") : "")));
    }
    if (scene.answers?.length) parts.push(h("p", { class: "classes" }, scene.answers.map(([name, share]) =>
      h("span", { class: "class" }, name, " ", h("span", { class: "figure" }, figure(share))))));
    if (scene.note) parts.push(h("p", { class: "note" }, scene.note));
    answer.replaceChildren(...parts);
  }

  /** The new output, its new words marked. */
  function compared(before, scene, difference) {
    const old = new Set(before.split(/\s+/));
    const words = scene.output.split(/(\s+)/).map((word) => (word.trim() && !old.has(word) ? h("mark", {}, word) : word));
    return h("p", { class: "now", dir: "auto" }, h("span", { class: "output" }, words.length ? words : "nothing"),
      h("span", { class: "score figure" }, figure(scene.score, 3), difference === null ? "" : h("small", {}, ` (${difference > 0 ? "+" : ""}${figure(difference, 3)})`)));
  }
  return { node, tell, show: (text) => { if (field.value !== text) { field.value = text ?? ""; } grow(); } };
}
