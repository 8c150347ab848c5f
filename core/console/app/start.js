// What takes another round trip is asked for at once, while the other modules are loading: the token of this
// browser's session, and the words.

export const sessionURL = "/console/session";

/** How long there may be no answer, in milliseconds. Over a lost connection there is none for minutes. */
export const patience = 30_000;

/**
 * Sends a request like fetch, and gives up if there is no answer in time.
 * @param {string} url
 * @param {RequestInit} init
 */
export function fetchInTime(url, init) {
  const ending = new AbortController();
  setTimeout(() => ending.abort(new DOMException("there is no answer", "TimeoutError")), patience);
  init.signal?.addEventListener("abort", () => ending.abort(init.signal?.reason));
  return fetch(url, { ...init, signal: ending.signal });
}

const firstURL = sessionURL + "/token";
/** @type {Promise<Response> | undefined} */
let first = fetchInTime(firstURL, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })
  .then(async (response) => new Response(response.status === 204 ? null : await response.blob(), response)); // while there is time
first.catch(() => takeFirst(firstURL)); // it is sent again

/**
 * Returns the first request if it is for a URL, once.
 * @param {string} url
 */
export function takeFirst(url) {
  if (url !== firstURL) return undefined;
  const taken = first;
  first = undefined;
  return taken;
}

/** @typedef {string} Language */

/** The languages of the files in words, which the server knows. @type {Language[]} */
export const languageNames = (document.querySelector('meta[name="languages"]')?.getAttribute("content") ?? "en").split(" ");

/**
 * Returns what remember has kept, empty for nothing. A browser may have no storage for the site.
 * @param {string} name
 */
export function recall(name) {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/**
 * Keeps a choice in this browser, if it can.
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It lasts until the page is left.
  }
}

export const storedLanguage = "veneer.language";

/** @returns {Language} */
export function preferred() {
  for (const wanted of [recall(storedLanguage), ...navigator.languages]) {
    const primary = wanted.toLowerCase().split("-")[0];
    if (languageNames.includes(primary)) return primary;
  }
  return "en";
}

/** Returns the language that was chosen on a page for visitors, from which a link led here. @returns {Language | undefined} */
export function asked() {
  const wanted = new URLSearchParams(location.search).get("lang");
  return languageNames.find((name) => name === wanted);
}

/** @param {Language} language */
export const importWords = (language) => import(`./words/${language}.js`);
importWords(asked() ?? preferred()).catch(() => {}); // it is imported again
