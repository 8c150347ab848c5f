import { html, Reading, useRead } from "../../parts/basics.js";
import { permissionName, stateName, TextureLink, UserLink } from "../../parts/admin.js";
import { typeName } from "../../parts/keep.js";
import { Filter, PageLink, parameter, Search } from "../../parts/list.js";
import { href, keptLists } from "../../router.js";
import { request } from "../../session.js";
import { number, t, time } from "../../words.js";

/** @typedef {{id: number, time: string, actor: number, actor_email: string, address: string, action: string, subject: string, details: Record<string, any>}} Entry */

/**
 * Returns the acts in words, by what they are done to and their names.
 * @returns {Record<string, Record<string, string>>}
 */
function acts() {
  return {
    user: {
      add: t("audit.userAdd"), delete: t("audit.userDelete"), email: t("audit.userEmail"), nickname: t("audit.userNickname"), password: t("audit.userPassword"),
      permission: t("audit.userPermission"), score: t("audit.userScore"), verified: t("audit.userVerified"),
    },
    closet: { add: t("audit.closetAdd"), remove: t("audit.closetRemove") },
    player: { delete: t("audit.playerDelete"), dress: t("audit.playerDress"), move: t("audit.playerMove"), rename: t("audit.playerRename"), undress: t("audit.playerUndress") },
    texture: { allow: t("audit.textureAllow"), change: t("audit.textureChange"), delete: t("audit.textureDelete") },
    report: { settle: t("audit.reportSettle") },
    notification: { send: t("audit.notificationSend") },
  };
}

/** What administrators did, the latest first. */
export default function Audit() {
  const before = parameter("before");
  const asked = new URLSearchParams();
  for (const name of ["actor", "action", "subject", "before"]) {
    if (parameter(name)) asked.set(name, parameter(name));
  }
  const url = "/api/admin/audit?" + asked;
  const { value: page, ...read } = useRead((signal) => /** @type {Promise<{data: Entry[], next: number}>} */ (request("GET", url, undefined, signal)), url, keptLists);

  const names = acts();
  /** @type {Record<string, string>} */
  const filter = { "": t("list.all") };
  for (const [kind, of] of Object.entries(names)) {
    for (const [act, name] of Object.entries(of)) filter[kind + "." + act] = name;
  }
  const entries = page.value?.data;
  return html`<section>
    <h1 tabindex="-1">${t("audit.title")}</h1>
    <div class="search">
      <${Filter} label=${t("audit.action")} name="action" values=${filter} />
      <${Search} label=${t("audit.actor")} name="actor" isWhole=${true} />
      <${Search} label=${t("audit.subject")} name="subject" isWhole=${true} />
    </div>
    <p class="results quiet" role="status" tabindex="-1">${entries?.length === 0 && t("audit.none")}</p>
    <${Reading} value=${page} ...${read} />
    <ol class="list">${entries?.map((/** @type {Entry} */ entry) => html`<li key=${entry.id} class="act"><${Act} entry=${entry} name=${filter[entry.action] ?? entry.action} /></li>`)}</ol>
    <nav class="pager" aria-label=${t("audit.pages")}>
      ${before && html`<${PageLink} text=${t("audit.newest")} query=${{ before: "" }} />`}
      ${(page.value?.next ?? 0) > 0 && html`<${PageLink} text=${t("audit.older")} query=${{ before: String(page.value?.next) }} />`}
    </nav>
  </section>`;
}

/** @param {{entry: Entry, name: string}} props */
function Act({ entry, name }) {
  return html`<article>
    <h2>${name} · <${Subject} subject=${entry.subject} details=${entry.details} /></h2>
    <p class="quiet">${time(entry.time)} · ${entry.actor ? html`<${UserLink} uid=${entry.actor} nickname=${entry.actor_email} />` : t("audit.program")}
      ${entry.address && html` · <bdi>${entry.address}</bdi>`}</p>
    <dl class="facts">${named(entry.action, entry.details).map(({ name, value }) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
  </article>`;
}

/** @param {{subject: string, details: Record<string, any>}} props subject: as in user:2 */
function Subject({ subject, details }) {
  const [kind, id] = subject.split(":");
  if (kind === "user") return html`<${UserLink} uid=${Number(id)} nickname=${details.nickname ?? details.email} />`;
  if (kind === "player") return html`<a href=${href("/admin/players?pid=" + id)}>${details.name ? html`<bdi>${details.name}</bdi>` : t("audit.player", { pid: id })}</a>`;
  if (kind === "texture") return html`<${TextureLink} tid=${Number(id)} name=${details.name} />`;
  if (kind === "report") return html`<a href=${href("/admin/reports?state=all")}>${t("adminreports.report", { rid: id })}</a>`;
  if (kind === "users") return id === "all" ? t("announce.all") : t("announce.normal");
  return html`<bdi>${subject}</bdi>`;
}

/**
 * Returns the names of details, in the order in which they are shown.
 * @returns {Record<string, string>}
 */
function detailNames() {
  return {
    email: t("field.email"), nickname: t("field.nickname"), name: t("audit.name"), uid: t("audit.owner"), uploader: t("admin.uploader"), tid: t("audit.texture"),
    title: t("announce.subject"), users: t("audit.users"), state: t("adminreports.state"), report: t("audit.report"), reports: t("audit.reports"), others: t("audit.others"),
    from: t("audit.from"), to: t("audit.to"), type: t("admintextures.type"), public: t("audit.public"), skin: t("audit.skin"), cape: t("adminplayers.cape"),
    refused: t("audit.refused"), reason: t("ban.reason"), until: t("ban.end"),
  };
}

/**
 * Returns details as pairs of name and value. Those without a name of the page come last.
 * @param {string} action
 * @param {Record<string, any>} details
 * @returns {{name: string, value: any}[]}
 */
function named(action, details) {
  const names = detailNames();
  const keys = [...Object.keys(names).filter((key) => key in details), ...Object.keys(details).filter((key) => !(key in names))];
  return keys.map((key) => ({ name: names[key] ?? key, value: detail(action, key, details[key]) }));
}

/**
 * Returns a value of the details; every text of users is isolated from its neighbours.
 * @param {string} action
 * @param {string} key
 * @param {any} value
 * @returns {any}
 */
function detail(action, key, value) {
  const [kind, act] = action.split(".");
  const isNew = key === "from" || key === "to";
  if (isNew && kind === "user" && (act === "permission" || act === "add")) return permissionName(value);
  if (value === 0 && (key === "skin" || key === "cape")) return t("audit.nothing");
  if (value > 0 && (key === "uid" || key === "uploader")) return html`<${UserLink} uid=${value} />`;
  if (value > 0 && (key === "tid" || key === "skin" || key === "cape")) return html`<${TextureLink} tid=${value} />`;
  if (typeof value === "boolean") return value ? t("audit.yes") : t("audit.no");
  if (typeof value === "number") return isNew && act === "score" || key === "users" ? number(value) : String(value);
  if (key === "until") return time(value);
  if (key === "type") return typeName(value);
  if (key === "state") return stateName(value);
  if (Array.isArray(value)) return value.join(", ");
  if (value && typeof value === "object") return named(action, value).map((part) => html`<span class="part">${part.name}: ${part.value}</span> `);
  return html`<bdi>${String(value)}</bdi>`;
}
