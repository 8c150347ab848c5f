// What every page is made of: html, fields and buttons, pictures, notices.
import { h } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { batch, signal, useSignal } from "@preact/signals";
import htm from "htm";
import { place } from "../router.js";
import { APIError, ended, knownSite, request, site, user } from "../session.js";
import { language, t, translate } from "../words.js";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

/** What the page is about, for the title of the document; empty for the page's own title. */
export const subject = signal("");

/**
 * Names what the page is about, as long as it is shown.
 * @param {string} name
 */
export function useSubject(name) {
  useEffect(() => {
    subject.value = name;
    return () => { subject.value = ""; };
  }, [name]);
}

/** @typedef {{text: string, run: () => void}} Act what a button does */
/** @typedef {{id: number, text: string, kind: "done" | "failed", act?: Act, about?: string}} Notice */

const notices = signal(/** @type {Notice[]} */ ([]));
let lastNotice = 0;

/**
 * Shows a sentence at the edge of the page.
 * @param {string} text
 * @param {"done" | "failed"} [kind]
 * @param {{act?: Act, about?: string}} [options] act: what may follow; about: takes the place of what was said of the same
 */
export function notify(text, kind = "done", { act, about } = {}) {
  silence(about);
  notices.value = [...notices.value.slice(-2), { id: ++lastNotice, text, kind, act, about }];
}

/**
 * Returns the options of a notice that what was done can be taken back.
 * @param {() => void} run takes it back
 */
export const undo = (run) => ({ act: { text: t("notice.undo"), run } });

/**
 * Takes back what was said of something.
 * @param {string} [about]
 */
export function silence(about) {
  if (about) notices.value = notices.value.filter((notice) => notice.about !== about);
}

/** @param {number} id */
function dismiss(id) {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** The sentences that notify has shown. */
export function Notices() {
  return html`<div class="notices" role="status" aria-live="polite">${notices.value.map((notice) => html`<${Said} key=${notice.id} ...${notice} />`)}</div>`;
}

/** A sentence, which goes after a while, but not while the pointer or the focus is on it. @param {Notice} props */
function Said({ id, text, kind, act }) {
  const isHeld = useSignal(false);
  useEffect(() => {
    if (isHeld.value) return;
    const timer = setTimeout(dismiss, act || kind === "failed" ? 15_000 : 6000, id);
    return () => clearTimeout(timer);
  }, [isHeld.value]);
  const hold = () => { isHeld.value = true; };
  const release = () => { isHeld.value = false; };
  return html`<p class=${"notice " + kind} onPointerEnter=${hold} onPointerLeave=${release} onFocusIn=${hold} onFocusOut=${release}>
    <span>${text}</span>
    ${act && html`<button type="button" class="tonal" onClick=${() => {
      dismiss(id);
      focusOn("h1");
      act.run();
    }}>${act.text}</button>`}
    <button type="button" class="plain" aria-label=${t("notice.close")} onClick=${() => dismiss(id)}>×</button>
  </p>`;
}

/**
 * Gives the focus to an element when the page shows what has changed, as the button that was pressed may
 * be gone.
 * @param {string} selector
 */
export function focusOn(selector) {
  setTimeout(() => /** @type {HTMLElement | null} */ (document.querySelector(selector))?.focus());
}

/**
 * Returns what went wrong, as a sentence for people.
 * @param {unknown} error
 */
export function sentence(error) {
  if (!(error instanceof APIError)) return t("error.unknown");
  if (error.status === 0) return t("error.offline");
  if (error.status === 429) return t("error.tooMany", { n: error.retryAfter || 1 });
  if (error.status >= 502) return t("error.unavailable");
  const fields = Object.values(error.fields).flat();
  return translate(error.message || fields[0] || "") || t("error.unknown");
}

/** @type {() => Map<string, any>} */
const nothingKept = () => new Map();

/**
 * Reads something for a page, and again when its key changes. Meanwhile what was read before stays, or what
 * is kept for the key.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} read
 * @param {string} [key]
 * @param {() => Map<string, T>} [keep] returns where what was read is kept when the page is left
 */
export function useRead(read, key = "", keep = nothingKept) {
  const value = useSignal(keep().get(key));
  const failure = useSignal("");
  const isLoading = useSignal(true);
  const version = useSignal(0);
  useEffect(() => {
    const leaving = new AbortController();
    const kept = keep();
    let isRead = kept.has(key);
    if (isRead) value.value = kept.get(key);
    isLoading.value = true;
    const before = value.peek();
    read(leaving.signal).then(
      (answer) => {
        if (leaving.signal.aborted) return;
        if (value.peek() !== before) { // changed meanwhile: the answer may be older than the change
          version.value++;
          return;
        }
        if (failure.value) focusOn(document.querySelector("dialog[open]") ? "dialog h2" : "h1"); // the button that was pressed goes
        isRead = true;
        batch(() => {
          value.value = answer;
          failure.value = "";
          isLoading.value = false;
        });
      },
      (error) => {
        if (leaving.signal.aborted) return;
        batch(() => {
          if (error instanceof APIError && error.status === 422) value.value = undefined; // it is no answer to what is asked
          failure.value = sentence(error);
          isLoading.value = false;
        });
      },
    );
    return () => {
      leaving.abort();
      if (isRead) kept.set(key, /** @type {T} */ (value.peek()));
    };
  }, [key, version.value]);
  return {
    /** What was read, undefined until then. */
    value,
    /** Why it could not be read, as a sentence. */
    failure,
    isLoading,
    /** Reads it again. */
    reload: () => { version.value++; },
  };
}

/** @typedef {Pick<ReturnType<typeof useRead<any>>, "value" | "failure" | "isLoading" | "reload">} Read */

/**
 * Says why something could not be read, with a button that tries again.
 * @param {Read} props
 */
export function Failure({ failure, isLoading, reload }) {
  return html`<div role="alert">${failure.value && html`<p class="wrong">${failure.value}</p>
    <p><button type="button" aria-disabled=${isLoading.value ? "true" : undefined} onClick=${reload}>${t("error.retry")}</button></p>`}</div>`;
}

/**
 * Says that something is being read, or why it could not be.
 * @param {Read} props
 */
export function Reading(props) {
  const { value, failure, isLoading } = props;
  const isNew = isLoading.value && !value.value && !failure.value;
  return html`${isNew && html`<p class="quiet loading" role="status" aria-busy="true">${t("list.loading")}</p>`}<${Failure} ...${props} />`;
}

/**
 * Returns what the API says of the site, undefined until that is known. Pages that show nothing without it
 * read it with what else they need, and so say why it is not there.
 */
export function useSite() {
  useEffect(() => { site().catch(() => {}); }, []);
  return knownSite.value;
}

/** Changes that the server has not answered yet, by what they change; known: what it has without them. */
const underWay = new Map();

/**
 * Sends changes of one thing one after the other: over two connections the second could arrive first, and the
 * first would then last. A change that the server refuses is told in a sentence.
 * @template T
 * @param {unknown} thing
 * @param {T} before what is shown
 * @param {() => Promise<any>} send
 * @param {(answer: any) => T} merge what to show after the answer
 * @returns {Promise<{answer?: any, now?: T}>} now: what to show, unless another change is under way
 */
export async function inOrder(thing, before, send, merge) {
  const changes = underWay.get(thing) ?? { known: before, last: Promise.resolve() };
  underWay.set(thing, changes);
  /** @type {any} */
  let answer;
  const settled = changes.last = changes.last.then(async () => {
    try {
      answer = (await send()) ?? {};
      changes.known = merge(answer);
    } catch (error) {
      notify(sentence(error), "failed");
    }
  });
  await settled;
  if (changes.last !== settled) return { answer };
  underWay.delete(thing);
  return { answer, now: changes.known };
}

/**
 * Shows a change at once, and takes it back if the server refuses it.
 * @template T
 * @param {{value: T}} shown a signal
 * @param {T} next
 * @param {() => Promise<any>} send
 * @param {(answer: any) => T} [merge] what to show after the answer, also in place of what a form has shown meanwhile
 * @returns {Promise<any>} the answer, undefined if it was refused
 */
export async function attempt(shown, next, send, merge) {
  const before = shown.value;
  shown.value = next;
  const { answer, now } = await inOrder(shown, before, send, merge ?? (() => next));
  // Otherwise the session may have ended, or the page shows something else.
  if (now !== undefined && (answer && merge || shown.value === next)) shown.value = now;
  return answer;
}

/**
 * Says that the user's e-mail address is not verified yet, with a button that has a link sent.
 * @param {{text: string}} props
 */
export function Unverified({ text }) {
  const isSent = useSignal(false);
  async function send() {
    try {
      await request("POST", "/api/user/verification");
      isSent.value = true;
      focusOn("#verification");
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }
  return html`<p id="verification" role="status" tabindex="-1">${isSent.value ? t("home.verificationSent", { email: user.value?.email ?? "" }) : text}</p>
    ${!isSent.value && html`<button type="button" onClick=${send}>${t("home.verify")}</button>`}`;
}

/** Attributes of a field with a name that counts letter by letter: phones would begin it with a capital, and correct it. */
export const asTyped = { autocapitalize: "none", autocorrect: false, spellcheck: false };

/**
 * A labelled field with its errors. A password can be shown.
 * @param {{name: string, label: string, hint?: any, errors?: string[]} & Record<string, any>} props errors: of the API; with rows, the text may have line feeds
 */
export function Field({ name, label, hint, errors = [], ...input }) {
  const isShown = useSignal(false);
  const isSecret = input.type === "password";
  const turn = isShown.value ? t("field.hide") : t("field.show");
  if (isSecret) Object.assign(input, asTyped, isShown.value && { type: "text" });
  const described = [hint && name + "-hint", errors.length && name + "-errors"].filter(Boolean).join(" ");
  if (input.type === "checkbox") {
    return html`<div class="field">
      <label class="check"><input id=${name} name=${name} aria-invalid=${errors.length ? "true" : undefined} aria-describedby=${described || undefined} ...${input} />${label}</label>
      <p class="hint" id=${name + "-hint"}>${hint}</p>
      ${errors.length > 0 && html`<p class="wrong" id=${name + "-errors"}>${errors.map(translate).join(" ")}</p>`}
    </div>`;
  }
  return html`<div class="field">
    <label for=${name}>${label}</label>
    ${hint && html`<p class="hint" id=${name + "-hint"}>${hint}</p>`}
    <div class=${isSecret ? "secret" : undefined}>
      <${input.rows ? "textarea" : "input"} id=${name} name=${name} aria-invalid=${errors.length ? "true" : undefined} aria-describedby=${described || undefined} ...${input} />
      ${isSecret && html`<button type="button" aria-label=${turn + " " + label} onClick=${() => { isShown.value = !isShown.value; }}>${turn}</button>`}
    </div>
    ${errors.length > 0 && html`<p class="wrong" id=${name + "-errors"}>${errors.map(translate).join(" ")}</p>`}
  </div>`;
}

/** What was typed into forms, by their pages and actions, when the session of a user ended; passwords are not kept. */
const typed = { uid: 0, forms: /** @type {Map<string, Record<string, any>>} */ (new Map()) };

/**
 * A form that shows the errors of its fields where they belong, and others above the button.
 * @param {{fields: ({name: string} & Record<string, any>)[], action: string, onSubmit: (values: Record<string, string>) => Promise<void>, username?: string, children?: any}} props
 *   username: whose new password a field has, for what keeps passwords
 */
export function Form({ fields, action, onSubmit, username, children }) {
  const errors = useSignal(/** @type {Record<string, string[]>} */ ({}));
  const failure = useSignal("");
  const busy = useSignal(false);
  const element = useRef(/** @type {HTMLFormElement | null} */ (null));
  const former = useRef(/** @type {Record<string, any>} */ ({}));
  useMemo(() => {
    const uid = user.peek()?.uid;
    if (uid !== typed.uid || !uid) return;
    const key = place.peek().path + action;
    former.current = typed.forms.get(key) ?? {};
    typed.forms.delete(key);
  }, []);
  useLayoutEffect(() => {
    const uid = user.peek()?.uid;
    const key = place.peek().path + action;
    return () => {
      if (!uid || ended.peek() !== uid || !element.current) return;
      if (typed.uid !== uid) typed.forms.clear();
      typed.uid = uid;
      const kept = fields.filter(({ type }) => type !== "password").map(({ name }) => [name, new FormData(/** @type {HTMLFormElement} */ (element.current)).get(name)]);
      typed.forms.set(key, Object.fromEntries(kept));
    };
  }, []);

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    if (busy.value) return;
    errors.value = {};
    failure.value = "";
    const sent = new FormData(form);
    const empty = fields.filter(({ name, type, required }) => required && (type === "password" ? !sent.get(name) : !String(sent.get(name) ?? "").trim())).map(({ name }) => name);
    if (empty.length > 0) {
      errors.value = Object.fromEntries(empty.map((name) => [name, [t("field.required")]]));
      /** @type {HTMLElement | null} */ (form.querySelector(`[name="${empty[0]}"]`))?.focus();
      return;
    }
    busy.value = true;
    try {
      await onSubmit(/** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form))));
    } catch (error) {
      const known = error instanceof APIError ? Object.fromEntries(Object.entries(error.fields).filter(([name]) => fields.some((f) => f.name === name))) : {};
      errors.value = known;
      const [first] = Object.keys(known);
      if (!form.isConnected) notify(sentence(error), "failed"); // its dialog was closed meanwhile
      else if (!first) failure.value = sentence(error);
      else /** @type {HTMLElement | null} */ (form.querySelector(`[name="${first}"]`))?.focus();
    } finally {
      busy.value = false;
    }
  }

  return html`<form ref=${element} onSubmit=${submit} novalidate>
    ${username && html`<input type="text" autocomplete="username" value=${username} readonly hidden />`}
    ${fields.map((field) => html`<${Field} key=${field.name} ...${field} defaultValue=${former.current[field.name] ?? field.defaultValue} errors=${errors.value[field.name]} />`)}
    ${children}
    <p class="wrong" role="alert">${failure.value}</p>
    <button class="main" aria-disabled=${busy.value ? "true" : undefined}>${action}</button>
  </form>`;
}

/** @param {string} name of what the index page says of the site */
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";

export const siteName = meta("application-name");

/** What the operator says of the site; empty for nothing. */
export const description = meta("description");

/**
 * What the operator tells visitors: a URL for questions, and by language the pages at /site/ and the HTML of an announcement.
 * @type {{contact: string, pages: Record<string, {name: string, title: string}[]>, announcement: Record<string, string>}}
 */
export const operator = JSON.parse(meta("operator"));

/**
 * Says whom to ask, if the operator has a contact.
 * @param {{text: string}} props
 */
export const Contact = ({ text }) => operator.contact && html`<p>${text} <a href=${operator.contact}><bdi>${operator.contact.replace("mailto:", "")}</bdi></a></p>`;

/**
 * Returns the address of one of the operator's pages in the reader's language.
 * @param {string} name
 */
export const sitePage = (name) => `/site/${name}?lang=${language.value}`;

/** The path of the site's logo; empty for none. */
export const logo = meta("logo");

/** The base URL of pictures and of texture files; empty if it is that of the page. */
export const pictures = meta("pictures");

/**
 * A picture of a texture, in the resolution of the screen. The box has the size before it arrives. One
 * that does not arrive is asked for again, as an edge may be busy.
 * @param {{path: string, parameter: "size" | "height", size: number, width: number, alt: string, onLoad?: () => void}} props
 */
export function Picture({ path, parameter, size, width, ...others }) {
  const at = (/** @type {number} */ factor) => `${pictures}${path}${path.includes("?") ? "&" : "?"}${parameter}=${size * factor}`;
  const attempt = useSignal(1);
  const again = () => {
    if (attempt.value < 4) setTimeout(() => { attempt.value++; }, 1000 * attempt.value);
  };
  return html`<img key=${attempt.value} onError=${again} src=${at(1)} srcset=${`${at(1)} 1x, ${at(2)} 2x`} width=${width} height=${size} loading="lazy" decoding="async" ...${others} />`;
}

/** A figure for where there is nothing else. */
export const Sitting = () => html`<div class="sitting"><${Picture} path="/body/user/0?pose=sit" parameter="height" size=${160} width=${80} alt="" /></div>`;

/** Returns whether pictures may move by themselves: their user wants neither less motion nor fewer bytes. */
export const isLively = () => !matchMedia("(prefers-reduced-motion: reduce)").matches && !(/** @type {any} */ (navigator).connection?.saveData);
