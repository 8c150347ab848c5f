// What the pages of administrators share: changes of the items of a list, links to users, choices in forms.
import { href } from "../router.js";
import { t } from "../words.js";
import { html, notify, sentence } from "./basics.js";

/**
 * @template T
 * @typedef {import("@preact/signals").Signal<import("./list.js").Page<T> | undefined>} List
 */

/**
 * Returns functions that change the items of a list. A change shows at once, and is taken back with a
 * sentence if the server refuses it.
 * @template {object} T
 * @param {{list: List<T>, reload: () => void}} page of useList
 * @param {(item: T) => number} id
 */
export function editing({ list, reload }, id) {
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
     * @param {() => Promise<{data: T}>} send
     */
    async change(item, patch, send) {
      put({ ...item, ...patch });
      try {
        put((await send()).data);
      } catch (error) {
        put(item);
        notify(sentence(error), "failed");
      }
    },
    /**
     * @param {T} item
     * @param {() => Promise<any>} send
     * @param {string} done the sentence for when it is removed
     */
    async remove(item, send, done) {
      const before = list.value;
      if (!before) return;
      const after = { ...before, total: before.total - 1, data: before.data.filter((other) => id(other) !== id(item)) };
      list.value = after;
      focusOn(".results");
      try {
        await send();
        notify(done);
        reload(); // the next page has an item for this one
      } catch (error) {
        if (list.value === after) list.value = before;
        else reload();
        notify(sentence(error), "failed");
      }
    },
  };
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
 * Leads to a user.
 * @param {{uid: number, nickname?: string}} props uid: 0 for an account that is deleted
 */
export function UserLink({ uid, nickname }) {
  if (uid === 0) return html`<span class="quiet">${t("admin.noUser")}</span>`;
  return html`<a href=${href("/admin/users?uid=" + uid)}>${nickname ? html`<bdi>${nickname}</bdi>` : t("admin.user", { uid: String(uid) })}</a>`;
}

/**
 * Returns a permission in words.
 * @param {number} permission
 */
export function permissionName(permission) {
  if (permission < 0) return t("admin.banned");
  if (permission === 0) return t("admin.normal");
  return permission === 1 ? t("admin.administrator") : t("admin.superAdministrator");
}

/**
 * Returns a type of textures in words.
 * @param {string} type
 */
export function typeName(type) {
  if (type === "cape") return t("type.cape");
  return type === "alex" ? t("type.alex") : t("type.steve");
}

/**
 * Returns the state of a report in words.
 * @param {string} state
 */
export function stateName(state) {
  if (state === "open") return t("adminreports.open");
  if (state === "rejected") return t("reports.rejected");
  return state === "deleted" ? t("reports.deleted") : t("reports.banned");
}

/**
 * A choice as a field of a form.
 * @param {{name: string, label: string, hint?: string, value: string, values: Record<string, string>, onChange?: (value: string) => void}} props
 */
export function Select({ name, label, hint, value, values, onChange }) {
  return html`<div class="field">
    <label for=${name}>${label}</label>
    ${hint && html`<p class="hint" id=${name + "-hint"}>${hint}</p>`}
    <select id=${name} name=${name} aria-describedby=${hint ? name + "-hint" : undefined} onChange=${(/** @type {any} */ event) => onChange?.(event.currentTarget.value)}>
      ${Object.entries(values).map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  </div>`;
}
