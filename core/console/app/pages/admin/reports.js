import { focusOn, html, notify, Picture } from "../../parts/basics.js";
import { BanDialog, DeleteTexture, stateName, UserLink } from "../../parts/admin.js";
import { editing, Filter, Pager, parameter, Results, useList } from "../../parts/list.js";
import { ask, asked, href } from "../../router.js";
import { countReports, request, user } from "../../session.js";
import { t, time } from "../../words.js";

/** @typedef {"open" | "rejected" | "deleted" | "banned"} State */
/** @typedef {{rid: number, tid: number, texture_name?: string, uploader: number, uploader_nickname?: string, reporter: number, reporter_nickname?: string, state: State, reason: string, reported_at: string, settled_at?: string}} Report */
/** @typedef {"reject" | "delete"} Action */

/** @type {Record<Action, State>} */
const after = { reject: "rejected", delete: "deleted" };

/** Returns a warning to the uploader. @param {Report} report */
function warning({ tid, texture_name: name }) {
  const about = name ?? t("admin.texture", { tid: String(tid) });
  return { title: t("adminreports.warning"), content: t("adminreports.warningText", { name: about }) };
}

/** What users have against textures, and what is done about it. */
export default function Reports() {
  const chosen = parameter("state");
  const page = useList("/api/admin/reports", { state: chosen === "all" ? "" : chosen || "open", perPage: 20 });
  const { remove } = editing(/** @type {{list: import("../../parts/list.js").List<Report>, reload: () => void}} */ (page), (report) => report.rid);
  const { action, id, close } = asked();
  const question = page.list.value?.data.find((/** @type {Report} */ report) => report.rid === id);

  /** @param {Report} report @param {State} state */
  const done = (report, state) => t("adminreports.done", { rid: String(report.rid), state: stateName(state) });
  /**
   * Settles a report, and with a deletion all others about the texture: the list is read again.
   * @param {Report} report
   * @param {Action} action
   * @param {boolean} [refuse] the pixels
   */
  async function settle(report, action, refuse) {
    close();
    await remove(report, () => request("PUT", "/api/admin/reports/" + report.rid, { action, refuse }), done(report, after[action]));
    countReports();
  }

  const states = { "": t("adminreports.open"), rejected: t("reports.rejected"), deleted: t("reports.deleted"), banned: t("reports.banned"), all: t("list.all") };
  return html`<section>
    <div class="heading">
      <h1 tabindex="-1">${t("adminreports.title")}</h1>
      <${Filter} label=${t("adminreports.state")} name="state" values=${states} />
    </div>
    <${Results} ...${page} none=${chosen ? t("adminreports.none") : t("adminreports.noneOpen")} />
    <ul class="entries">${page.list.value?.data.map((/** @type {Report} */ report) => html`<li key=${report.rid}>
      <article class="card entry">
        <div class="picture">${report.state === "deleted"
          ? html`<p class="quiet">${t("reports.gone")}</p>`
          : html`<${Picture} path=${"/preview/" + report.tid} parameter="height" size=${112} width=${112} alt=${t("adminreports.pictureOf", { tid: String(report.tid) })} />`}</div>
        <div>
          <h2>${t("adminreports.report", { rid: String(report.rid) })} <span class=${"badge " + report.state}>${stateName(report.state)}</span></h2>
          <p class="said"><bdi>${report.reason}</bdi></p>
          <dl class="facts">
            <dt>${t("adminreports.texture")}</dt><dd><a href=${href("/texture?tid=" + report.tid)}>${report.texture_name ? html`<bdi>${report.texture_name}</bdi>` : t("admin.texture", { tid: String(report.tid) })}</a></dd>
            <dt>${t("admin.uploader")}</dt><dd><${UserLink} uid=${report.uploader} nickname=${report.uploader_nickname} /></dd>
            <dt>${t("adminreports.reporter")}</dt><dd><${UserLink} uid=${report.reporter} nickname=${report.reporter_nickname} /></dd>
            <dt>${t("adminreports.reported")}</dt><dd>${time(report.reported_at)}</dd>
            ${report.settled_at && html`<dt>${t("adminreports.settled")}</dt><dd>${time(report.settled_at)}</dd>`}
          </dl>
          ${report.state === "open" && html`<div class="buttons">
            <button type="button" aria-label=${t("adminreports.rejectTitle", { rid: String(report.rid) })} onClick=${() => settle(report, "reject")}>${t("adminreports.reject")}</button>
            <button type="button" class="danger" aria-label=${t("adminreports.deleteTitle", { rid: String(report.rid) })}
              onClick=${() => ask("delete", report.rid)}>${t("adminreports.delete")}</button>
            ${report.uploader > 0 && report.uploader !== user.value?.uid && html`<button type="button" class="danger" aria-label=${t("adminreports.banTitle", { rid: String(report.rid) })}
              onClick=${() => ask("ban", report.rid)}>${t("adminreports.ban")}</button>
            <a class="button" href=${href("/admin/notifications?" + new URLSearchParams({ to: String(report.uploader), ...warning(report) }))} aria-label=${t("adminreports.warnTitle", { rid: String(report.rid) })}>${t("adminreports.warn")}</a>`}
          </div>`}
        </div>
      </article></li>`)}</ul>
    <${Pager} label=${t("reports.pages")} list=${page.list} />
    ${action === "delete" && question && html`<${DeleteTexture} title=${t("admin.deleteTexture", { tid: String(question.tid) })} action=${t("adminreports.delete")}
      onClose=${close} onDelete=${(/** @type {boolean} */ refuse) => settle(question, "delete", refuse)} />`}
    ${action === "ban" && question && html`<${BanDialog} title=${t("adminusers.banTitle", { name: question.uploader_nickname ?? "" })} text=${t("adminreports.banText")} onClose=${close}
      onBan=${async (/** @type {object} */ ban) => {
        await request("PUT", "/api/admin/reports/" + question.rid, { action: "ban", ...ban });
        close();
        focusOn(".results");
        notify(done(question, "banned"));
        page.reload();
        countReports();
      }} />`}
  </section>`;
}
