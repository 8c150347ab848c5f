// The URL is the state: which page is shown, and what of it, is a function of path and query.
import { batch, signal } from "@preact/signals";

const root = "/console";

/** @typedef {{path: string, query: URLSearchParams}} Place */

/** The page that the URL names. A path begins with a slash and is relative to the console. */
export const target = signal(read());

/**
 * The place of the page that is shown. After a change to another page it is behind target until that page
 * is loaded: no page sees the URL of another one.
 */
export const place = signal(target.peek());

/** @returns {Place} */
function read() {
  const path = location.pathname.slice(root.length).replace(/\/+$/, "");
  return { path: path || "/", query: new URLSearchParams(location.search) };
}

/** @param {Place} at */
function format({ path, query }) {
  const text = String(query);
  return path + (text && "?" + text);
}

/** Follows the URL. Another page is loaded first. */
function follow() {
  const at = read();
  batch(() => {
    target.value = at;
    if (at.path === place.peek().path) place.value = at;
  });
}

// Entries of the history are numbered by their states. Browsers would scroll before a page has its lists.
history.scrollRestoration = "manual";

/**
 * What is kept of an entry: how far it was scrolled, and what its lists had.
 * @typedef {{top: number, lists: Map<string, any>}} Entry
 */

/** @type {Map<number, Entry>} */
const entries = new Map();
let current = Number(history.state?.index) || 0;
entries.set(current, { top: Number(history.state?.top) || 0, lists: new Map() });

/** @returns {Entry} */
function entry() {
  let kept = entries.get(current);
  if (!kept) entries.set(current, (kept = { top: 0, lists: new Map() }));
  return kept;
}

/** Returns the lists that the current entry of the history had when it was left, by their URLs. */
export function keptLists() {
  return entry().lists;
}

/** Forgets what lists had, as they are another user's. */
export function forgetLists() {
  for (const kept of entries.values()) kept.lists = new Map(); // a page that is being left still has the former one
}

/** The entry whose page is scrolled to where it was left; -1 while that page is being shown. */
let restored = -1;

/** Stops waiting for a page that is tall enough. */
let settled = new AbortController();

/** Scrolls to where the current entry was left, as soon as the page is that tall, unless the reader scrolls first. */
export function restoreScroll() {
  settled.abort();
  restored = current;
  const { top } = entry();
  const isThere = () => {
    scrollTo(0, top);
    return Math.abs(scrollY - top) <= 1;
  };
  if (isThere()) return;
  settled = new AbortController();
  const { signal } = settled;
  const stop = () => settled.abort();
  const size = new ResizeObserver(() => { if (!signal.aborted && isThere()) stop(); });
  size.observe(document.body);
  signal.addEventListener("abort", () => size.disconnect());
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(type, stop, { signal, passive: true });
}

/** Keeps how far the current entry is scrolled, if its page is shown and tall enough. */
function keepScroll() {
  if (restored === current && settled.signal.aborted && target.peek().path === place.peek().path) entry().top = scrollY;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let scrolling;

/** Leaves the current entry. */
function leave() {
  clearTimeout(scrolling);
  keepScroll();
  settled.abort();
}

// A reload has only what the state of the entry says. Browsers allow few changes of it.
addEventListener("scroll", () => {
  clearTimeout(scrolling);
  scrolling = setTimeout(() => {
    keepScroll();
    history.replaceState({ ...history.state, index: current, top: entry().top }, "");
  }, 250);
}, { passive: true });

addEventListener("popstate", () => {
  leave();
  current = Number(history.state?.index) || 0;
  restored = -1;
  const isSamePage = read().path === place.peek().path;
  follow();
  if (isSamePage) restoreScroll();
});

/**
 * Returns the URL of a page.
 * @param {string} path
 */
export function href(path) {
  return root + path;
}

/**
 * Shows a page. With replace, it takes the place of the current one in the history; with isDialog, it is
 * one with a dialog open.
 * @param {string} path with a query, if any
 * @param {{replace?: boolean, isDialog?: boolean}} [options]
 */
export function navigate(path, { replace = false, isDialog = false } = {}) {
  leave();
  const before = target.peek().path;
  if (!replace) {
    current++;
    for (const index of entries.keys()) if (index >= current) entries.delete(index); // they can no longer be reached
  }
  if (isDialog && !replace) dialogAt = performance.now();
  const state = { index: current, isDialog };
  if (replace) history.replaceState(state, "", href(path));
  else history.pushState(state, "", href(path));
  if (read().path !== before) {
    entries.delete(current);
    restored = -1;
  } else if (!replace) {
    entry().top = scrollY; // a dialog or a filter leaves the page where it is
    restored = current;
  }
  follow();
}

/**
 * Changes parameters of the current page's query. Those with an empty value are removed. A page that is
 * being left changes nothing.
 * @param {Record<string, string>} changed
 * @param {{replace?: boolean, isDialog?: boolean}} [options]
 */
export function change(changed, options) {
  if (target.peek().path !== place.peek().path) return;
  navigate(changedPath(changed), { isDialog: options?.replace && history.state?.isDialog, ...options });
}

/** @type {Promise<void> | null} */
let closing = null;

/**
 * Closes the dialog that the URL names, as back does, so that back does not open it again. Of a dialog
 * that the user opened by its address, only the parameters are removed.
 * @param {string[]} names of the dialog's parameters
 * @returns {Promise<void>} until the URL is without it
 */
export async function closeDialog(...names) {
  dialogAt = performance.now();
  if (!closing && !history.state?.isDialog) change(Object.fromEntries(names.map((name) => [name, ""])), { replace: true });
  else await (closing ??= new Promise((resolve) => {
    addEventListener("popstate", () => {
      dialogAt = performance.now();
      closing = null;
      resolve();
    }, { once: true });
    history.back();
  }));
}

/**
 * Returns the dialog that the URL asks with: what it does, the number of what it does it to, and a function that
 * closes it, unless another one is open by then.
 */
export function asked() {
  const name = place.value.query.get("ask") ?? "";
  const [action, id] = name.split(".");
  const close = async () => { if (place.peek().query.get("ask") === name) await closeDialog("ask"); };
  return { action, id: Number(id), close };
}

/**
 * Opens a dialog of the page, when the one before is closed.
 * @param {string} action
 * @param {number} [id] of what it is about
 */
export async function ask(action, id) {
  if (closing) await closing;
  change({ ask: id ? action + "." + id : action }, { isDialog: true });
}

/**
 * Returns the path of the current page with other parameters, for change and for links.
 * @param {Record<string, string>} changed
 */
export function changedPath(changed) {
  const { path, query } = place.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changed)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return format({ path, query: next });
}

/** When a dialog was last opened or closed, as the time of events. */
let dialogAt = -Infinity;

/** How long the second click of a double click may come after the first one, in milliseconds. */
export const doubleClick = 500;

// The second click of a double click would press what the first one has put there: the page under a dialog, or the
// next item of a list. Only what is marked is pressed many times.
document.addEventListener("click", (event) => {
  const { detail, target, timeStamp } = event;
  if (detail < 2 || !(target instanceof Element) || target.closest("[data-repeat]")) return;
  if (timeStamp - dialogAt > doubleClick && !target.closest("button")) return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });

/** Returns what is behind # in links of e-mails, empty without it. */
export function linked() {
  const behind = new URLSearchParams(location.hash.slice(1));
  return { token: behind.get("token") ?? "", email: behind.get("email") ?? "" };
}

/** Returns the page for signing in, which leads back to the page that the URL names. */
export function signInPath() {
  return "/signin?next=" + encodeURIComponent(format(target.value));
}

/** Returns the page of the console to which the page for signing in leads back. */
export function nextPath() {
  const next = target.peek().query.get("next") ?? "";
  return new URL(href(next), location.origin).pathname.startsWith(root + "/") ? next : "/";
}

// Links to pages of the console change the page without loading it, unless the browser is asked for a
// new tab or a download.
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(root + "/")) return;
  event.preventDefault();
  navigate(link.pathname.slice(root.length) + link.search);
});
