// What the pages of administrators share: links, things by their names, words, choices in forms.
import { useSignal } from "@preact/signals";
import { href } from "../router.js";
import { APIError, request } from "../session.js";
import { t } from "../words.js";
import { Field, Form, html } from "./basics.js";
import { Confirm, Dialog } from "./dialog.js";

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
  const number = /^(?:.*(?:tid=|\/t\/))?(\d+)(?:[?&#].*)?$/.exec(text.trim());
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

/** Returns a time as the API takes it. @param {Date} at */
const format = (at) => at.toISOString().slice(0, 19).replace("T", " ");

/** Returns the administrator's day, as fields of dates take it. */
function today() {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/**
 * Asks for the reason and the end of a ban.
 * @param {{title: string, text: string, onBan: (ban: {reason: string, until?: string}) => Promise<void>, onClose: () => void}} props
 */
export function BanDialog({ title, text, onBan, onClose }) {
  const end = useSignal("7");
  const ends = { 1: t("ban.days", { n: 1 }), 7: t("ban.days", { n: 7 }), 30: t("ban.days", { n: 30 }), date: t("ban.date"), "": t("ban.forever") };
  /** @param {{until?: string}} values */
  function until(values) {
    if (end.value !== "date") return end.value && format(new Date(Date.now() + Number(end.value) * 86_400_000));
    if (!values.until) throw new APIError(422, { message: t("ban.noDate") });
    return format(new Date(values.until + "T23:59:59")); // of the administrator's day
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${text}</p>
    <div class="dangerous"><${Form} action=${t("adminusers.ban")} fields=${[{ name: "reason", label: t("ban.reason"), hint: t("ban.reasonHint"), rows: 3, maxlength: 1000 }]}
      onSubmit=${async (/** @type {any} */ values) => onBan({ reason: values.reason, until: until(values) })}>
      <${Select} name="end" label=${t("ban.end")} value=${end.value} values=${ends} onChange=${(/** @type {string} */ value) => { end.value = value; }} />
      ${end.value === "date" && html`<${Field} name="until" label=${t("ban.lastDay")} type="date" min=${today()} />`}
    </${Form}></div></${Dialog}>`;
}

/**
 * Asks before a texture is deleted, and whether its pixels are refused from then on.
 * @param {{title: string, action: string, onDelete: (refuse: boolean) => void, onClose: () => void}} props
 */
export function DeleteTexture({ title, action, onDelete, onClose }) {
  const refuse = useSignal(false);
  return html`<${Confirm} title=${title} text=${t("admin.deleteTextureText")} action=${action} onClose=${onClose} onConfirm=${() => onDelete(refuse.value)}>
    <label class="check"><input type="checkbox" name="refuse" checked=${refuse.value} onChange=${(/** @type {any} */ event) => { refuse.value = event.currentTarget.checked; }} />
      <span>${t("refusals.refuse")}</span></label>
  </${Confirm}>`;
}
