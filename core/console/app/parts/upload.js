// Files on their way to become textures.
import { batch, effect, signal } from "@preact/signals";
import { APIError, pause, refreshUser, request, site, user } from "../session.js";
import { bytes, number, oneOf, t } from "../words.js";
import { isLively, sentence } from "./basics.js";
import { shown3D } from "./viewer.js";

/** @typedef {"steve" | "alex" | "cape"} Type */

/** @param {File} file */
export function nameOf(file) {
  return [...file.name.replace(/\.[^.]*$/, "").trim()].slice(0, 64).join("");
}

/**
 * @param {{file: File, name: string, type: Type | "skin"}} fields
 * @param {Record<string, string>} [others]
 */
function formOf({ file, name, type }, others = {}) {
  const form = new FormData();
  for (const [field, value] of Object.entries({ file, name, type, ...others })) form.set(field, value);
  return form;
}

/**
 * Returns what an upload costs, in score, the type of the arms, and which texture has this picture already, 0 for none.
 * @param {File} file
 * @param {string} name
 * @param {"skin" | "cape"} type
 * @param {AbortSignal} [signal]
 * @returns {Promise<{type: Type, public_price: number, private_price: number, duplicate: number}>}
 */
export const priceOf = (file, name, type, signal) => request("POST", "/api/price", formOf({ file, name, type }), signal);

/**
 * Uploads a file, unless its picture is there already.
 * @param {{file: File, name: string, type: Type | "skin", isPublic: boolean}} fields
 * @param {AbortSignal} [signal]
 * @param {import("../session.js").OnProgress} [onProgress]
 * @returns {Promise<{tid: number, isNew: boolean}>}
 */
export async function sendTexture(fields, signal, onProgress) {
  try {
    const { data } = await request("POST", "/api/textures", formOf(fields, { public: String(fields.isPublic) }), signal, onProgress);
    return { tid: data.tid, isNew: true };
  } catch (error) {
    if (error instanceof APIError && error.status === 409 && error.data?.tid) return { tid: error.data.tid, isNew: false };
    throw error;
  }
}

/**
 * What is wrong with a file, as the page finds without the server.
 * @typedef {{what: "size", most: number} | {what: "kind"} | {what: "pixels", width: number, height: number}} Flaw
 */

/** What an upload would cost, in score. @typedef {{public: number, private: number}} Price */

/**
 * A file on its way. Its state is "new" until it is examined; then it is "wrong" for good, or "ready". It is
 * "waiting" for its turn, then "sending", and "done" or, with a reason, ready again.
 * @typedef {object} Upload
 * @property {number} id
 * @property {File} file
 * @property {import("@preact/signals").Signal<"new" | "wrong" | "ready" | "waiting" | "sending" | "done">} state
 * @property {AbortController} leaving ends what is under way when the file is removed
 * @property {import("@preact/signals").Signal<ImageBitmap | undefined>} picture
 * @property {import("@preact/signals").Signal<string>} name
 * @property {import("@preact/signals").Signal<Type>} type
 * @property {import("@preact/signals").Signal<Type[]>} types those that a picture of this size can have
 * @property {import("@preact/signals").Signal<boolean>} isPublic
 * @property {import("@preact/signals").Signal<Partial<Record<"skin" | "cape", Price>>>} prices
 * @property {import("@preact/signals").Signal<number>} progress from 0 to 1
 * @property {import("@preact/signals").Signal<number>} pause in seconds, while the server asks for it
 * @property {import("@preact/signals").Signal<Flaw | undefined>} flaw
 * @property {import("@preact/signals").Signal<string>} failure a sentence
 * @property {import("@preact/signals").Signal<Record<string, string[]>>} errors of fields
 * @property {import("@preact/signals").Signal<{tid: number, isNew: boolean} | undefined>} texture
 */

/** All files, in the order in which they came. They stay while other pages are shown. */
export const uploads = signal(/** @type {Upload[]} */ ([]));

let last = 0;

/**
 * Adds files.
 * @param {Iterable<File>} files
 */
export function add(files) {
  const added = [...files].map((file) => /** @type {Upload} */ ({
    id: ++last, file, leaving: new AbortController(), state: signal("new"), picture: signal(undefined), name: signal(nameOf(file)), type: signal("steve"), types: signal([]), isPublic: signal(true),
    prices: signal({}), progress: signal(0), pause: signal(0), flaw: signal(undefined), failure: signal(""), errors: signal({}), texture: signal(undefined),
  }));
  uploads.value = [...uploads.value, ...added];
}

/**
 * Removes a file, also while it is on its way.
 * @param {Upload} upload
 */
export function remove(upload) {
  uploads.value = uploads.value.filter((other) => other !== upload);
  upload.leaving.abort();
  upload.picture.peek()?.close();
}

/**
 * Waits, unless a file is removed meanwhile.
 * @param {Upload} upload
 * @param {number} milliseconds
 */
const wait = (upload, milliseconds) => Promise.race([pause(milliseconds), new Promise((resolve) => { upload.leaving.signal.addEventListener("abort", resolve, { once: true }); })]);

// Files of a user are not shown to the next one in the same page.
let owner = 0;
effect(() => {
  const uid = user.value?.uid;
  if (!uid) return;
  if (owner && owner !== uid) uploads.peek().forEach(remove);
  owner = uid;
});

/** @param {Type} type */
export const classOf = (type) => (type === "cape" ? "cape" : "skin");

/**
 * Sends a request for a file, again while the server has had too many of them.
 * @template T
 * @param {Upload} upload
 * @param {() => Promise<T>} ask
 * @returns {Promise<T>}
 */
async function inTurn(upload, ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof APIError) || error.status !== 429 || !error.retryAfter || error.retryAfter > 60) throw error;
      for (upload.pause.value = error.retryAfter; upload.pause.value > 0; upload.pause.value--) {
        await wait(upload, 1000);
        if (upload.leaving.signal.aborted) throw error;
      }
    }
  }
}

const signature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/**
 * Reads a file, and says what is wrong with it. Its header is checked before the browser decodes it, as a
 * small file may be of a large picture.
 * @param {File} file
 * @param {import("../session.js").Site["upload"]} limits
 * @returns {Promise<{flaw: Flaw} | {flaw?: undefined, types: Type[], picture: ImageBitmap}>} types: those that a picture of this size can have
 */
export async function flawOf(file, limits) {
  if (limits.max_bytes && file.size > limits.max_bytes) return { flaw: { what: "size", most: limits.max_bytes } };
  const header = new DataView(await file.slice(0, 24).arrayBuffer());
  if (header.byteLength < 24 || signature.some((byte, i) => header.getUint8(i) !== byte)) return { flaw: { what: "kind" } };
  const width = header.getUint32(16);
  const height = header.getUint32(20);
  const types = [...new Set(limits.sizes.filter((size) => {
    const scale = width / size.width;
    return Number.isInteger(scale) && scale <= limits.max_scale && height === scale * size.height;
  }).map(({ type }) => type))];
  if (types.length === 0) return { flaw: { what: "pixels", width, height } };
  try {
    return { types, picture: await createImageBitmap(file, { colorSpaceConversion: "none" }) };
  } catch {
    return { flaw: { what: "kind" } };
  }
}

/**
 * Returns the sizes of a picture that are accepted, in words.
 * @param {import("../session.js").Site["upload"]["sizes"]} sizes
 * @param {"skin" | "cape"} kind
 */
function sizesOf(sizes, kind) {
  const texts = sizes.filter(({ type }) => classOf(type) === kind).map(({ width, height }) => `${number(width)}\u00a0×\u00a0${number(height)}`);
  return oneOf(new Set(texts));
}

/**
 * Returns what is wrong with a file, as a sentence.
 * @param {Flaw} flaw
 * @param {import("../session.js").Site["upload"]} limits
 */
export function flawSentence(flaw, limits) {
  switch (flaw.what) {
    case "size":
      return t("upload.tooLarge", { most: bytes(flaw.most) });
    case "kind":
      return t("upload.noPNG");
    default:
      return t("upload.pixels", { width: flaw.width, height: flaw.height }) + " " + sizesSentence(limits);
  }
}

/**
 * Returns which sizes files may have, as sentences.
 * @param {import("../session.js").Site["upload"]} limits
 */
export function sizesSentence({ sizes, max_scale: scale }) {
  return t("upload.sizes", { skin: sizesOf(sizes, "skin"), cape: sizesOf(sizes, "cape") }) + (scale > 1 ? " " + t("upload.scale", { n: scale }) : "");
}

/**
 * Reports whether a sheet of half height is a cape: it has no legs.
 * @param {ImageBitmap} sheet
 */
function isCape(sheet) {
  const canvas = Object.assign(document.createElement("canvas"), { width: sheet.width, height: sheet.height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.drawImage(sheet, 0, 0);
  const scale = sheet.width / 64;
  const { data } = context.getImageData(4 * scale, 22 * scale, 4 * scale, 10 * scale);
  return data.every((value, i) => i % 4 !== 3 || value === 0);
}

/**
 * Asks what an upload costs. The answer has the type of the arms, and whether the picture is there already.
 * @param {Upload} upload
 * @param {"skin" | "cape"} kind
 */
async function ask(upload, kind) {
  const { file } = upload;
  const answer = await inTurn(upload, () => priceOf(file, upload.name.peek().trim() || kind, kind, upload.leaving.signal));
  batch(() => {
    upload.prices.value = { ...upload.prices.value, [kind]: { public: answer.public_price, private: answer.private_price } };
    if (answer.duplicate) {
      upload.texture.value = { tid: answer.duplicate, isNew: false };
      upload.state.value = "done";
    }
  });
  return answer.type;
}

/**
 * Keeps why a request was refused.
 * @param {Upload} upload
 * @param {unknown} error
 */
function refuse(upload, error) {
  const { name, ...others } = error instanceof APIError ? error.fields : {};
  batch(() => {
    upload.errors.value = name ? { name } : {};
    const rest = Object.values(others).flat();
    upload.failure.value = name && rest.length === 0 ? "" : rest.join(" ") || sentence(error);
  });
}

/** @param {Upload} upload */
async function examine(upload) {
  try {
    const found = await flawOf(upload.file, (await site()).upload);
    if (found.flaw) {
      upload.flaw.value = found.flaw;
      upload.state.value = "wrong";
      return;
    }
    const sheet = found.picture;
    if (upload.leaving.signal.aborted) {
      sheet.close();
      return;
    }
    upload.types.value = found.types;
    upload.picture.value = sheet;
    const [first] = upload.types.value;
    upload.type.value = upload.types.value.includes("cape") && (first === "cape" || isCape(sheet)) ? "cape" : first;
    const type = await ask(upload, classOf(upload.type.value));
    if (upload.state.value !== "new") return;
    batch(() => {
      upload.type.value = type;
      upload.state.value = "ready";
      if (!shown3D.peek() && isLively()) shown3D.value = "upload-" + upload.id;
    });
  } catch (error) {
    if (!user.peek() || upload.leaving.signal.aborted) return; // it is examined once the user has signed in again
    refuse(upload, error);
    upload.state.value = error instanceof APIError && error.fields.file ? "wrong" : "ready";
  }
}

let isExamining = false;

/** Examines the new files, one after the other, as checks have a limit. */
export async function examineNew() {
  if (isExamining) return;
  isExamining = true;
  try {
    for (;;) {
      const next = uploads.peek().find(({ state }) => state.peek() === "new");
      if (!next || !user.peek()) return;
      await examine(next);
    }
  } finally {
    isExamining = false;
  }
}

/**
 * Takes another type. A skin that becomes a cape may cost something else.
 * @param {Upload} upload
 * @param {Type} type
 */
export async function choose(upload, type) {
  upload.type.value = type;
  if (upload.prices.value[classOf(type)]) return;
  try {
    await ask(upload, classOf(type));
  } catch (error) {
    refuse(upload, error);
  }
}

let isSending = false;

/**
 * Uploads files, one after the other.
 * @param {Upload[]} files that are ready
 */
export async function sendAll(files) {
  batch(() => {
    for (const upload of files) {
      upload.state.value = "waiting";
      upload.failure.value = "";
      upload.errors.value = {};
    }
  });
  if (isSending) return;
  isSending = true;
  try {
    for (;;) {
      const next = uploads.peek().find(({ state }) => state.peek() === "waiting");
      if (!next || !user.peek()) return;
      await sendOne(next);
    }
  } finally {
    isSending = false;
    for (const { state } of uploads.peek()) if (state.peek() === "waiting") state.value = "ready"; // the session has ended
    await refreshUser();
  }
}

/** @param {Upload} upload */
async function sendOne(upload) {
  batch(() => {
    upload.progress.value = 0;
    upload.state.value = "sending";
  });
  try {
    const fields = { file: upload.file, name: upload.name.peek(), type: upload.type.peek(), isPublic: upload.isPublic.peek() };
    upload.texture.value = await inTurn(upload, () => sendTexture(fields, upload.leaving.signal, (part) => { upload.progress.value = part; }));
    upload.state.value = "done";
  } catch (error) {
    if (user.peek() && !upload.leaving.signal.aborted) refuse(upload, error);
    upload.state.value = "ready";
  }
}
