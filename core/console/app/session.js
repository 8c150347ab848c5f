// Requests to the API. The bearer token lies in this module's memory only; an HttpOnly cookie, which
// the routes under /console/session get and set, brings it back after a reload.
import { effect, signal } from "@preact/signals";
import { fetchInTime, patience, remember, sessionURL, takeFirst } from "./start.js";

/**
 * @typedef {object} User
 * @property {number} uid
 * @property {string} email
 * @property {string} nickname
 * @property {number} avatar
 * @property {number} score
 * @property {number} permission
 * @property {string} last_sign_at
 * @property {string} next_sign_at
 * @property {boolean} verified
 * @property {number} [unread] notifications, up to 99
 */

/** The user that is signed in; null without one, undefined as long as it is not known. */
export const user = signal(/** @type {User | null | undefined} */ (undefined));

// The pages for visitors show it.
effect(() => { if (user.value !== undefined) remember("veneer.user", user.value?.nickname ?? ""); });

/** The user whose session ended without being asked to; 0 for none. */
export const ended = signal(0);

/** A request that failed. */
export class APIError extends Error {
  /**
   * @param {number} status 0 without a response
   * @param {{code?: number, message?: string, errors?: Record<string, string[]>, data?: any}} body
   * @param {number} [retryAfter] seconds, 0 for none
   */
  constructor(status, body, retryAfter = 0) {
    super(body.message || "");
    this.status = status;
    this.code = body.code ?? 0;
    this.fields = body.errors ?? {};
    this.data = body.data;
    this.retryAfter = retryAfter;
  }
}

/** Why the user is banned, and until when; null for a user that is not. */
export const ban = signal(/** @type {{reason?: string, until?: string} | null} */ (null));

const banned = -1; // code of the API

let token = "";
let expiresAt = 0; // in milliseconds, as Date.now
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Promise<boolean> | undefined} */
let renewing;

// The server replaces a token that has less than 10 minutes left.
const renewBefore = 5 * 60_000;

/** @param {{token: string, expires_in: number, user: User}} answer */
function keep(answer) {
  token = answer.token;
  ended.value = 0;
  user.value = answer.user;
  expiresAt = Date.now() + answer.expires_in * 1000;
  clearTimeout(timer);
  timer = setTimeout(wake, Math.max(answer.expires_in * 1000 - renewBefore, 30_000));
}

/** @param {boolean} [isWanted] whether the user has signed out */
function forget(isWanted = false) {
  ended.value = isWanted ? 0 : user.peek()?.uid || ended.peek();
  token = "";
  expiresAt = 0;
  clearTimeout(timer);
  user.value = null;
}

// Timers do not run while a machine sleeps.
function wake() {
  if (token && document.visibilityState === "visible" && expiresAt - Date.now() <= renewBefore) renew().catch(() => {});
}
document.addEventListener("visibilitychange", wake);
addEventListener("pageshow", wake);
addEventListener("online", wake);

// Other tabs follow when one of them signs in or out.
const tabs = new BroadcastChannel("veneer");
tabs.onmessage = (/** @type {MessageEvent<"in" | "out">} */ { data }) => {
  ban.value = null;
  if (data === "out") forget();
  else start().catch(() => {}); // it is asked for again with the next request
};

/** @param {number} milliseconds */
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// A request is sent again if it changes nothing, or nothing more than it did: for 15 seconds, or for as
// long as the server asks to wait.
const attempts = 5;

/** @typedef {(part: number) => void} OnProgress part: how much is sent, from 0 to 1 */

/**
 * Sends a form like fetch, which cannot tell how much of it is sent.
 * @param {string} url
 * @param {RequestInit} init
 * @param {OnProgress} onProgress
 * @returns {Promise<Response>}
 */
function fetchWithProgress(url, { method, headers, body, signal }, onProgress) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let silence;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => sending.abort(), patience);
    };
    sending.onloadend = () => clearTimeout(silence);
    sending.open(method ?? "GET", url);
    sending.responseType = "blob";
    new Headers(headers).forEach((value, name) => sending.setRequestHeader(name, value));
    sending.upload.onprogress = ({ loaded, total }) => {
      listen();
      onProgress(total ? loaded / total : 0);
    };
    sending.onload = () => {
      /** @type {Record<string, string>} */
      const received = {};
      for (const name of ["Content-Type", "Retry-After"]) received[name] = sending.getResponseHeader(name) ?? "";
      resolve(new Response(sending.response, { status: sending.status, headers: received }));
    };
    sending.onerror = () => reject(new TypeError("there is no answer"));
    sending.onabort = () => reject(signal?.reason ?? new DOMException("there is no answer", "TimeoutError"));
    signal?.addEventListener("abort", () => sending.abort(), { once: true });
    listen();
    sending.send(/** @type {FormData} */ (body));
  });
}

/**
 * Sends a request once, or several times while there is no answer or the server asks to wait.
 * @param {string} url
 * @param {RequestInit} init
 * @param {boolean} repeatable
 * @param {OnProgress} [onProgress]
 * @returns {Promise<any>} the decoded body, null for none
 */
async function send(url, init, repeatable, onProgress) {
  for (let attempt = 1; ; attempt++) {
    init.signal?.throwIfAborted(); // during the pause
    /** @type {APIError} */
    let failure;
    let isSilent = false;
    try {
      const response = await (onProgress ? fetchWithProgress(url, init, onProgress) : attempt === 1 && takeFirst(url) || fetchInTime(url, init));
      const isJSON = response.headers.get("Content-Type")?.startsWith("application/json");
      const body = isJSON ? await response.json() : null;
      if (response.ok) return body;
      failure = new APIError(response.status, body ?? {}, Number(response.headers.get("Retry-After")) || 0);
      if (failure.code === banned) {
        ban.value = failure.data ?? {};
        forget(true);
      }
    } catch (error) {
      if (init.signal?.aborted) throw error;
      isSilent = error instanceof DOMException && error.name === "TimeoutError";
      failure = new APIError(0, {});
    }
    const isTemporary = failure.status === 0 || failure.status === 502 || failure.status === 503 || failure.status === 504;
    // A change that may have been made is not asked for again: it would be refused the second time.
    const isPostponed = failure.status === 503 && failure.retryAfter > 0 && (init.method === "PUT" || init.method === "DELETE");
    if (!(repeatable && isTemporary) && !isPostponed || isSilent || attempt === attempts) throw failure;
    await pause(1000 * Math.min(Math.max(failure.retryAfter, 2 ** (attempt - 1)), 30));
  }
}

/**
 * @param {string} method
 * @param {object} [body]
 * @returns {RequestInit}
 */
function jsonRequest(method, body) {
  return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) };
}

/**
 * Gets the session's current token. It reports whether there is a session. If another user has signed in in
 * this browser, the page is loaded again: what it shows, and what it was about to change, is the former user's.
 * @returns {Promise<boolean>}
 */
function renew() {
  renewing ??= send(sessionURL + "/token", jsonRequest("POST"), true)
    .then((answer) => {
      const isOther = answer && user.peek() && user.peek()?.uid !== answer.user.uid;
      if (isOther) location.reload();
      if (!answer || isOther) forget();
      else keep(answer);
      return Boolean(token);
    }, (error) => {
      if (!(error instanceof APIError) || error.status !== 401) throw error;
      forget();
      return false;
    })
    .finally(() => {
      renewing = undefined;
    });
  return renewing;
}

/** Continues the session of this browser, if there is one, and sets user. That of a banned user is none. */
export async function start() {
  await renew();
}

/**
 * Signs in, by password or by the token of a new session. The e-mail address may be the name of a player.
 * @param {{email: string, password: string} | {token: string}} proof
 */
export async function signIn(proof) {
  keep(await send(sessionURL, jsonRequest("POST", proof), false));
  tabs.postMessage("in");
}

/** Ends the session. */
export async function signOut() {
  await send(sessionURL, jsonRequest("DELETE"), true);
  forget(true);
  ban.value = null;
  tabs.postMessage("out");
}

/**
 * Shows the user as the API has it now, unless another one is signed in by now, or none.
 * @param {User} answer
 */
export function update(answer) {
  if (user.value?.uid === answer.uid) user.value = { ...user.value, ...answer }; // only some answers have what is unread
}

/** Reads the user anew, after a change of the score for example. It never throws: what changed is done all the same. */
export async function refreshUser() {
  try {
    update(await request("GET", "/api/user"));
  } catch {} // the next change reads it again
}

/**
 * Sends a request to the API, with the token if the user is signed in.
 * @param {string} method
 * @param {string} path
 * @param {object | FormData} [body] fields, which are sent as JSON, or a form
 * @param {AbortSignal} [signal]
 * @param {OnProgress} [onProgress] of a form
 * @returns {Promise<any>} the decoded body
 */
export async function request(method, path, body, signal, onProgress) {
  const isForm = body instanceof FormData;
  const repeatable = method === "GET" || isForm; // a file that is sent twice is one texture
  for (let isSecond = false; ; isSecond = true) {
    if (token && expiresAt - Date.now() < 5000) await renew();
    const sent = token;
    /** @type {Record<string, string>} */
    const headers = {};
    if (sent) headers.Authorization = "Bearer " + sent;
    if (body && !isForm) headers["Content-Type"] = "application/json";
    try {
      const content = isForm ? body : body && JSON.stringify(body);
      return await send(path, { method, headers, body: content, signal }, repeatable, onProgress);
    } catch (error) {
      if (!(error instanceof APIError) || error.status !== 401 || !sent) throw error;
      // Another tab may have replaced the token.
      const isNew = token !== sent || ((await renew()) && token !== sent);
      if (isSecond || !isNew) {
        forget();
        throw error;
      }
    }
  }
}

/** How many reports are open, for administrators. */
export const openReports = signal(0);

/** Counts the open reports anew. It never throws: the number is shown in the menu only. */
export async function countReports() {
  try {
    openReports.value = (await request("GET", "/api/admin/reports?state=open&perPage=1")).total;
  } catch {} // the next page of administrators counts again
}

/**
 * What the API says of the site. A quota of 0 is none, and so is a limit of bytes.
 * @typedef {object} Site
 * @property {string} terms_version empty without terms
 * @property {"open" | "confirm" | "closed"} registration
 * @property {boolean} mail
 * @property {string} [launchers] path of the API of launchers
 * @property {string} [textures_url] origin of pictures, if it is another one
 * @property {{min: number, max: number, rule: string}} player_name in characters; rule: a sentence
 * @property {{min: number, max: number}} nickname in characters
 * @property {{min: number, max: number}} texture_name in characters
 * @property {{min: number, max: number}} password in characters
 * @property {{max_bytes: number, max_scale: number, sizes: {type: "steve" | "alex" | "cape", width: number, height: number}[]}} upload
 * @property {{min: number, max: number}} report_reason in characters
 * @property {{player: number, closet_item: number, texture_kib: number, private_texture_kib: number}} costs in score
 * @property {{registration: number, upload: number, like: number, sign_in: number}} rewards in score
 * @property {{players: number, closet_items: number, textures: number, texture_bytes: number}} quotas
 */

/** What the API says of the site, undefined until that is known. */
export const knownSite = signal(/** @type {Site | undefined} */ (undefined));

/** @type {Promise<Site> | undefined} */
let asked;

/**
 * Returns what the API says of the site.
 * @returns {Promise<Site>}
 */
export function site() {
  asked ??= send("/api/site", {}, true).then((answer) => (knownSite.value = answer), (error) => {
    asked = undefined;
    throw error;
  });
  return asked;
}

/** Reads anew what the API says of the site, since that has changed. */
export function siteAnew() {
  asked = undefined;
  return site();
}
