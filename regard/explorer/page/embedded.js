/** Where the numbers come from in a single file: they are in the page itself, as the server would have sent them. */

function numbers({ shape, bytes }) {
  const raw = atob(bytes);
  const buffer = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) buffer[i] = raw.charCodeAt(i);
  return { shape, data: new Float32Array(buffer.buffer) };
}

export function embedded(held) {
  const find = (name) => {
    if (!(name in held.matrices)) throw new Error(`This file does not hold ${name}.`);
    return numbers(held.matrices[name]);
  };
  return {
    about: async () => ({ runs: held.runs }),
    look: async (wish) => held.looks[wish.run],
    matrix: async (wish, site, head, unit) => find(`${wish.run}/${site}/${head}/${unit}`),
    thumbnails: async (wish) => held.looks[wish.run].sites.map(({ site }) => find(`${wish.run}/${site}/thumbnails`)),
  };
}
