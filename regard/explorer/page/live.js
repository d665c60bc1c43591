/** Where the numbers come from when a server answers: one request for what is shown, kept while it is likely to be shown again. */

const KEPT_BYTES = 64 * 2 ** 20;

async function answer(response) {
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try { message = (await response.json()).error ?? message; } catch { /* no JSON: the status has to do */ }
  throw new Error(message);
}

async function ask(path, body) {
  try {
    const init = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    return await answer(await fetch(path, init));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("The server does not answer. Is `regard explore` still running?");
    throw error;
  }
}

async function numbers(response) {
  const shape = response.headers.get("X-Shape").split(",").map(Number);
  return { shape, data: new Float32Array(await response.arrayBuffer()) };
}

/** Several matrices that came one after the other. */
async function several(response) {
  const data = new Float32Array(await response.arrayBuffer());
  let at = 0;
  return response.headers.get("X-Shape").split(";").map((text) => {
    const shape = text.split(",").map(Number), size = shape.reduce((product, one) => product * one, 1);
    at += size;
    return { shape, data: data.subarray(at - size, at) };
  });
}

/** Bytes of an answer: a matrix, several, or JSON. */
function weight(value) {
  if (value.data) return value.data.byteLength;
  return Array.isArray(value) ? value.reduce((sum, one) => sum + weight(one), 0) : 2 * JSON.stringify(value).length;
}

export function live() {
  const kept = new Map();
  let bytes = 0;

  /** The answer of `make`, kept under its question; the oldest are let go when they grow too many. */
  function once(question, make) {
    const key = JSON.stringify(question);
    if (kept.has(key)) {
      const found = kept.get(key);
      kept.delete(key);
      kept.set(key, found);
      return found.promise;
    }
    const entry = { size: 0 };
    entry.promise = make().then((value) => {
      if (kept.get(key) !== entry) return value; // let go while it was on its way
      entry.size = 2 * key.length + weight(value);
      bytes += entry.size;
      for (const [old, other] of kept) {
        if (bytes < KEPT_BYTES || other === entry) break;
        kept.delete(old);
        bytes -= other.size;
      }
      return value;
    }, (error) => { kept.delete(key); throw error; });
    kept.set(key, entry);
    return entry.promise;
  }

  const json = (path, body) => once([path, body], async () => (await ask(path, body)).json());
  const matrix = (path, body) => once([path, body], async () => numbers(await ask(path, body)));
  return {
    about: async () => (await ask("/api/about")).json(),
    look: (wish) => json("/api/look", wish),
    matrix: (wish, site, head, unit) => matrix("/api/matrix", { ...wish, site, head: String(head), unit }),
    thumbnails: (wish) => once(["thumbnails", wish], async () => several(await ask("/api/thumbnails", wish))),
    inside: (wish, site, head, query, key) => json("/api/inside", { ...wish, site, head, query, key }),
    decoding: (wish) => json("/api/decoding", wish),
    positions: (run, part) => matrix(`/api/positions?run=${run}&part=${part}`),
    training: async (run) => (await ask(`/api/training?run=${run}`)).json(),
  };
}
