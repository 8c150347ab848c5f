// The URL is the state: which page is shown, and what of it, is a function of path and query.
import { signal } from "@preact/signals";

const root = "/console";

/** @typedef {{path: string, query: URLSearchParams}} Place */

/** The page that the URL names. A path begins with a slash and is relative to the console. */
export const place = signal(read());

/** @returns {Place} */
function read() {
  const path = location.pathname.slice(root.length).replace(/\/+$/, "");
  return { path: path || "/", query: new URLSearchParams(location.search) };
}

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
  const before = place.peek().path;
  const url = href(path);
  const state = isDialog ? { isDialog } : null;
  if (replace) history.replaceState(state, "", url);
  else history.pushState(state, "", url);
  place.value = read();
  if (place.value.path !== before) scrollTo(0, 0);
}

/**
 * Changes parameters of the current page's query. Those with an empty value are removed.
 * @param {Record<string, string>} changed
 * @param {{replace?: boolean, isDialog?: boolean}} [options]
 */
export function change(changed, options) {
  navigate(changedPath(changed), { isDialog: options?.replace && history.state?.isDialog, ...options });
}

let isClosing = false;

/**
 * Closes the dialog that the URL names, as back does, so that back does not open it again. Of a dialog
 * that the user opened by its address, only the parameters are removed.
 * @param {string[]} names of the dialog's parameters
 */
export function closeDialog(...names) {
  if (isClosing) return;
  if (history.state?.isDialog) {
    isClosing = true;
    history.back();
  } else change(Object.fromEntries(names.map((name) => [name, ""])), { replace: true });
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
  return path + (next.size ? "?" + next : "");
}

/** Returns the token behind # in links of e-mails, empty without one. */
export function linkToken() {
  return new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
}

/** Returns the path and query of the current page, for navigate. */
export function here() {
  const { path, query } = place.value;
  return path + (query.size ? "?" + query : "");
}

addEventListener("popstate", () => {
  isClosing = false;
  place.value = read();
});

// Links to pages of the console change the page without loading it, unless the browser is asked for a
// new tab or a download.
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(root + "/")) return;
  event.preventDefault();
  navigate(link.pathname.slice(root.length) + link.search);
});
