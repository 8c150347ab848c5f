// Lists of the API: the URL has the search, the filters and the page.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { change, changedPath, href, keptLists, place } from "../router.js";
import { APIError, request } from "../session.js";
import { number, t } from "../words.js";
import { attempt, Failure, focusOn, html, inOrder, notify, sentence, Sitting, undo, useRead } from "./basics.js";

/**
 * @template T
 * @typedef {{data: T[], total: number, total_is_lower_bound?: boolean, current_page: number, last_page: number}} Page
 */

/**
 * Returns a parameter of the current page's query, empty without one.
 * @param {string} name
 */
export function parameter(name) {
  return place.value.query.get(name) ?? "";
}

/**
 * Reads a page of a list, and reads it again when the URL or the path changes. Meanwhile the former page
 * stays, or, after going back, what the list had then.
 * @template T
 * @param {string} path of the API
 * @param {Record<string, string | number>} query besides the page's number, which is that of the URL; empty values are left out
 */
export function useList(path, query) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(/** @type {typeof query} */ ({ ...query, page: Math.max(1, Number(parameter("page")) || 1) }))) {
    if (value !== "") asked.set(name, String(value));
  }
  const url = path + "?" + asked;
  const { value: list, ...others } = useRead(async (signal) => {
    const get = (/** @type {string} */ from) => /** @type {Promise<Page<T>>} */ (request("GET", from, undefined, signal));
    const answer = await get(url).catch((error) => {
      if (!(error instanceof APIError) || !error.fields.page) throw error;
      asked.set("page", "1"); // there is a bound to pages, too
      return get(path + "?" + asked);
    });
    // The last item of the last page may have gone.
    if (Number(parameter("page")) > answer.last_page) change({ page: answer.last_page > 1 ? String(answer.last_page) : "" }, { replace: true });
    return answer;
  }, url, keptLists);
  return { list, ...others };
}

/**
 * Says how many results there are or why there are none, and takes the focus when the page changes.
 * @param {Omit<import("./basics.js").Read, "value"> & {list: import("@preact/signals").Signal<Page<any> | undefined>, none: string, children?: any}} props none: the sentence for an empty list; children: ways on from there
 */
export function Results({ list, none, children, ...read }) {
  const { value: page } = list;
  const isEmpty = page?.total === 0;
  const isBusy = read.isLoading.value;
  const count = page && (page.total_is_lower_bound ? t("list.atLeast", { n: page.total }) : t("list.count", { n: page.total }));
  return html`${isEmpty && html`<${Sitting} />`}
    <p class=${"results quiet" + (page ? "" : " loading") + (isEmpty ? " none" : "")} role="status" tabindex="-1" aria-busy=${isBusy ? "true" : undefined}>${page ? (isEmpty ? none : count) : isBusy && t("list.loading")}</p>
    ${isEmpty && html`<p class="buttons ways">${children}</p>`}
    <${Failure} value=${list} ...${read} />`;
}

/**
 * Shows another page of a list, and gives the focus to what says how many results there are.
 * @param {Record<string, string>} query changed parameters
 * @param {boolean} replace as of Pager
 */
function turn(query, replace) {
  change(query, { replace });
  /** @type {HTMLElement | null} */ (document.querySelector("dialog .results") ?? document.querySelector(".results"))?.focus();
}

/**
 * Leads to another page of a list.
 * @param {{text: string, query: Record<string, string>, replace?: boolean}} props query: changed parameters
 */
export function PageLink({ text, query, replace = false }) {
  return html`<a class="button" href=${href(changedPath(query))} onClick=${(/** @type {MouseEvent} */ event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    turn(query, replace);
  }}>${text}</a>`;
}

/**
 * Leads to the other pages of a list. In a dialog a new page takes the place of the current one in the
 * history, as back closes the dialog.
 * @param {{label: string, list: import("@preact/signals").Signal<Page<any> | undefined>, replace?: boolean}} props
 */
export function Pager({ label, list, replace = false }) {
  if (!list.value || list.value.last_page <= 1) return null;
  const { current_page: page, last_page: last } = list.value;
  const query = (/** @type {number} */ to) => ({ page: to > 1 ? String(to) : "" });
  /**
   * @param {string} text
   * @param {number} to
   */
  const link = (text, to) => {
    if (to < 1 || to > last) return html`<span class="button" aria-hidden="true">${text}</span>`;
    return html`<${PageLink} text=${text} query=${query(to)} replace=${replace} />`;
  };
  // No field of type number: arrows would leave the page with each step.
  const go = (/** @type {any} */ { currentTarget: field }) => {
    const to = Number(field.value);
    if (Number.isInteger(to) && to >= 1 && to <= last && to !== page) turn(query(to), replace);
    else field.value = field.defaultValue;
  };
  const [before, after] = t("list.page", { page: "\n", last: number(last) }).split("\n");
  return html`<nav class="pager" aria-label=${label}>
    ${link(t("list.previous"), page - 1)}
    <span>${last > 3 ? html`${before}<input key=${page} inputmode="numeric" autocomplete="off" aria-label=${t("list.goTo", { last: number(last) })} defaultValue=${page} onChange=${go} />${after}` : t("list.page", { page: number(page), last: number(last) })}</span>
    ${link(t("list.next"), page + 1)}
  </nav>`;
}

/**
 * Reports whether the library finds nothing by a text, as its index has parts of three characters, or of two
 * of the scripts of East Asia.
 * @param {string} text
 */
function isTooShort(text) {
  const least = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]*$/u.test(text) ? 2 : 3;
  return text !== "" && [...text].length < least;
}

/** Returns the text that is sought in the library; empty for one that is too short, which the API refuses. */
export function indexedText() {
  const text = parameter("q").trim();
  return isTooShort(text) ? "" : text;
}

/**
 * A search in the list of the page. It begins when the typing pauses, and at the first page of its results.
 * @param {{label: string, name?: string, isIndexed?: boolean, isWhole?: boolean}} props name of the parameter; isIndexed: a text has a least length; isWhole: a part of it is another thing, so the search begins by Enter
 */
export function Search({ label, name = "q", isIndexed = false, isWhole = false }) {
  const timer = useSignal(0);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const sought = parameter(name);
  const isShort = useSignal(isIndexed && isTooShort(sought.trim()));
  const typed = useRef(sought);
  useEffect(() => () => clearTimeout(timer.peek()), []);
  useEffect(() => {
    if (!input.current || sought === typed.current) return;
    clearTimeout(timer.peek()); // of what was typed before
    input.current.value = typed.current = sought; // back, forward, or a link
    isShort.value = isIndexed && isTooShort(sought.trim());
  }, [sought]);
  const seek = () => {
    const value = input.current?.value.trim() ?? "";
    clearTimeout(timer.peek());
    timer.value = setTimeout(() => {
      isShort.value = isIndexed && isTooShort(value);
      if (isShort.value) return;
      typed.current = value;
      change({ [name]: value, page: "" }, { replace: true });
    }, 250);
  };
  // What an input method composes is no text yet. Its end is an event without a property, so its name is in lower case.
  return html`<input ref=${input} type="search" aria-label=${label} placeholder=${label} defaultValue=${sought} oncompositionend=${isWhole ? undefined : seek}
    onChange=${isWhole ? seek : undefined} onInput=${(/** @type {InputEvent} */ event) => {
      if (event.isComposing) clearTimeout(timer.peek());
      else if (!isWhole) seek();
    }} />${isIndexed && html`<p class="hint" role="status">${isShort.value && t("list.short")}</p>`}`;
}

/**
 * A choice between few kinds of what the list of the page has, as links.
 * @param {{label: string, name: string, values: Record<string, string>, replace?: boolean, children?: any}} props as of Filter; replace: as of Pager; children: other links
 */
export function Chips({ label, name, values, replace = false, children }) {
  return html`<nav class="chips" aria-label=${label}>
    ${Object.entries(values).map(([value, text]) => html`<a key=${value} href=${href(changedPath({ [name]: value, page: "" }))} aria-current=${value === parameter(name) ? "true" : undefined}
      onClick=${(/** @type {MouseEvent} */ event) => {
        if (!replace || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        change({ [name]: value, page: "" }, { replace });
      }}>${text}</a>`)}
    ${children}
  </nav>`;
}

/**
 * A choice of what the list of the page has. It begins at the first page.
 * @param {{label: string, name: string, values: Record<string, string>}} props name of the parameter; values by theirs, the empty one first
 */
export function Filter({ label, name, values }) {
  const chosen = parameter(name);
  return html`<label class="filter">
    <span>${label}</span>
    <select onChange=${(/** @type {any} */ event) => change({ [name]: event.currentTarget.value, page: "" })}>
      ${Object.entries(values).map(([value, text]) => html`<option key=${value} value=${value} selected=${value === chosen}>${text}</option>`)}
    </select>
  </label>`;
}

/**
 * @template T
 * @typedef {import("@preact/signals").Signal<Page<T> | undefined>} List
 */

/**
 * Returns functions that change the items of a list. A change shows at once, and is taken back with a
 * sentence if the server refuses it.
 * @template {object} T
 * @param {{list: {value: {data: T[], total: number} | undefined}, reload: () => void}} page of useList, or of useRead
 * @param {(item: T) => number} id
 * @param {string} [heading] what takes the focus when an item is removed
 */
export function editing({ list, reload }, id, heading = ".results") {
  /** @param {T} item */
  const put = (item) => {
    if (list.value) list.value = { ...list.value, data: list.value.data.map((other) => (id(other) === id(item) ? item : other)) };
  };
  return {
    /** Shows an item in place of the one with the same id. */
    put,
    /**
     * @param {T} item
     * @param {Partial<T>} patch
     * @param {"PUT" | "DELETE"} method
     * @param {string} path
     * @param {object} body
     */
    async change(item, patch, method, path, body) {
      const next = { ...item, ...patch };
      put(next);
      const { now, answer } = await inOrder(path, item, () => request(method, path, body), ({ data }) => ({ ...next, ...data }));
      if (now) put(now); // that alone, as the list may have changed
      return answer;
    },
    /**
     * @param {T} item
     * @param {() => Promise<any>} send
     * @param {string} done the sentence for when it is removed
     * @param {() => Promise<any>} [restore] sends what takes it back
     */
    async remove(item, send, done, restore) {
      const before = list.value;
      if (!before) return;
      focusOn(heading);
      const isDone = await attempt(list, { ...before, total: before.total - 1, data: before.data.filter((other) => id(other) !== id(item)) }, send);
      if (isDone) notify(done, "done", restore && undo(() => restore().then(reload, (error) => notify(sentence(error), "failed"))));
      if (list.value !== before) reload(); // the next page has an item for this one
    },
  };
}
