/** Tokens and words: the labels of an axis, and how places in one become places in the other. */

/** The labels shown for an axis. */
export function labels(axis, unit) {
  if (unit === "tokens") return axis.tokens;
  return axis.words.map((group) => spelled(group.map((place) => axis.tokens[place]).join("")));
}

/** Letters that the vocabulary did not have are tokens of their bytes: as a word they are letters again, without the mark of the space before them. */
function spelled(word) {
  return word.replace(/^▁(?=.)/u, "").replace(/(<0x[0-9A-F]{2}>)+/g, (bytes) => new TextDecoder().decode(Uint8Array.from(bytes.match(/[0-9A-F]{2}(?=>)/g), (hex) => parseInt(hex, 16))));
}

/** The word that a token is in, or the first token of a word. */
export function moved(axis, place, unit) {
  if (place < 0) return -1;
  if (unit === "tokens") return axis.words[place]?.[0] ?? -1;
  return axis.words.findIndex((group) => group.includes(place));
}

/** The axes of a site of a scene. */
export function axesOf(scene, site) {
  const found = scene.sites.find((one) => one.site === site);
  return found ? { queries: scene.axes[found.queries], keys: scene.axes[found.keys], heads: found.heads } : null;
}
