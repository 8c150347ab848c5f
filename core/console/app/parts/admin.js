// What the pages of administrators share: links, things by their names, words, choices in forms.
import { href } from "../router.js";
import { APIError, request } from "../session.js";
import { t } from "../words.js";
import { html } from "./basics.js";

/**
 * Leads to a user.
 * @param {{uid: number, nickname?: string}} props uid: 0 for an account that is deleted
 */
export function UserLink({ uid, nickname }) {
  if (uid === 0) return html`<span class="quiet">${t("admin.noUser")}</span>`;
  return html`<a href=${href("/admin/users?uid=" + uid)}>${nickname ? html`<bdi>${nickname}</bdi>` : t("admin.user", { uid: String(uid) })}</a>`;
}

/**
 * Leads to a texture.
 * @param {{tid: number, name?: string}} props
 */
export function TextureLink({ tid, name }) {
  return html`<a href=${href("/texture?tid=" + tid)}>${name ? html`<bdi>${name}</bdi>` : t("admin.texture", { tid: String(tid) })}</a>`;
}

/**
 * Returns the number of a user by number, e-mail address, nickname or player.
 * @param {string} text
 */
export async function userNumber(text) {
  if (/^\d+$/.test(text.trim())) return Number(text);
  const { data } = await request("GET", "/api/admin/users?uid=" + encodeURIComponent(text));
  return data[0].uid;
}

/**
 * Returns the number of a texture by number, address or name, for a field of a form.
 * @param {string} field
 * @param {string} text
 * @param {"" | "skin" | "cape"} [type]
 */
export async function textureNumber(field, text, type = "") {
  const number = /^(?:.*(?:tid=|\/t\/))?(\d+)$/.exec(text.trim());
  if (number) return Number(number[1]);
  const { data } = await request("GET", "/api/admin/textures?" + new URLSearchParams({ q: text, perPage: "100", ...(type && { type }) }));
  const named = data.filter((/** @type {{name: string}} */ texture) => texture.name.toLowerCase() === text.trim().toLowerCase());
  if (named.length !== 1) throw new APIError(422, { errors: { [field]: [t(named.length ? "admin.severalTextures" : "admin.noSuchTexture")] } });
  return named[0].tid;
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
