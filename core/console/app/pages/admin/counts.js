import { useEffect } from "preact/hooks";
import { html, Reading, useRead } from "../../parts/basics.js";
import { href } from "../../router.js";
import { countReports, request } from "../../session.js";
import { bytes, day, number, t } from "../../words.js";

/**
 * @typedef {object} Counts
 * @property {number} users
 * @property {number} players
 * @property {number} textures
 * @property {number} texture_bytes
 * @property {boolean} approximate
 * @property {number} open_reports
 * @property {number} waiting_mail
 * @property {{day: string, uploads: number}[]} uploads
 * @property {{core: string, database: string, schema: number}} versions
 */

/** What the site has. */
export default function Counts() {
  useEffect(() => { countReports(); }, []);
  const read = useRead((signal) => /** @type {Promise<Counts>} */ (request("GET", "/api/admin/counts", undefined, signal)));
  const counts = read.value.value;
  const about = (/** @type {string} */ text) => counts?.approximate ? t("counts.about", { n: text }) : text;
  return html`<section>
    <h1 tabindex="-1">${t("counts.title")}</h1>
    <${Reading} ...${read} />
    ${counts && html`<div class="cards">
      <div class="card"><h2>${t("counts.now")}</h2><dl class="facts">
        <dt>${t("adminusers.title")}</dt><dd><a href=${href("/admin/users")}>${about(number(counts.users))}</a></dd>
        <dt>${t("counts.players")}</dt><dd><a href=${href("/admin/players")}>${about(number(counts.players))}</a></dd>
        <dt>${t("counts.textures")}</dt><dd><a href=${href("/admin/textures")}>${about(number(counts.textures))}</a></dd>
        <dt>${t("counts.storage")}</dt><dd>${about(bytes(counts.texture_bytes))}</dd>
        <dt>${t("counts.reports")}</dt><dd><a href=${href("/admin/reports")}>${number(counts.open_reports)}</a></dd>
        <dt>${t("counts.mail")}</dt><dd>${number(counts.waiting_mail)}</dd>
      </dl></div>
      <div class="card"><h2>${t("counts.versions")}</h2><dl class="facts">
        <dt>core</dt><dd><bdi>${counts.versions.core}</bdi></dd>
        <dt>PostgreSQL</dt><dd><bdi>${counts.versions.database}</bdi></dd>
        <dt>${t("counts.schema")}</dt><dd>${number(counts.versions.schema)}</dd>
      </dl></div>
      <${Uploads} days=${counts.uploads} />
    </div>`}
  </section>`;
}

/** A bar for each day. @param {{days: Counts["uploads"]}} props */
function Uploads({ days }) {
  const most = Math.max(...days.map(({ uploads }) => uploads));
  const total = days.reduce((sum, { uploads }) => sum + uploads, 0);
  return html`<div class="card"><h2>${t("counts.uploads")}</h2>
    <p>${t("counts.uploadsOf", { n: total, most })}</p>
    <svg class="bars" viewBox=${`0 0 ${days.length * 10} 60`} role="img" aria-label=${t("counts.uploads")}>
      ${days.map(({ day: date, uploads }, i) => html`<rect x=${i * 10 + 1} y=${59 - 58 * uploads / (most || 1)} width="8" height=${1 + 58 * uploads / (most || 1)}><title>${day(date)}: ${number(uploads)}</title></rect>`)}
    </svg></div>`;
}
