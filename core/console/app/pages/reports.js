import { html, Picture } from "../parts/basics.js";
import { Filter, Pager, parameter, Results, useList } from "../parts/list.js";
import { href } from "../router.js";
import { t, time } from "../words.js";

/** @typedef {"open" | "rejected" | "deleted" | "banned"} State */
/** @typedef {{rid: number, tid: number, state: State, reason: string, reported_at: string, settled_at?: string}} Report */

/** The user's own reports, and what came of them. */
export default function Reports() {
  const state = parameter("state");
  const reports = useList("/api/reports", { state, perPage: 20 });
  const states = { "": t("list.all"), open: t("reports.open"), rejected: t("reports.rejected"), deleted: t("reports.deleted"), banned: t("reports.banned") };
  return html`<section class="column">
    <div class="heading">
      <h1 tabindex="-1">${t("reports.title")}</h1>
      <${Filter} label=${t("reports.filter")} name="state" values=${states} />
    </div>
    <${Results} ...${reports} none=${state ? t("reports.nothing") : t("reports.none")}><a class="button main" href=${href("/library")}>${t("closet.library")}</a></${Results}>
    <ul class="list">${reports.list.value?.data.map((/** @type {Report} */ report) => html`<li key=${report.rid} class="line">
      ${report.state === "deleted"
        ? html`<p class="thumb quiet">${t("reports.gone")}</p>`
        : html`<a class="thumb" href=${href("/texture?tid=" + report.tid)} aria-label=${t("reports.texture", { tid: String(report.tid) })}>
            <${Picture} path=${"/preview/" + report.tid} parameter="height" size=${64} width=${64} alt="" /></a>`}
      <div class="grow">
        <p class="reason"><bdi>${report.reason}</bdi></p>
        <p class="quiet">${t("reports.made", { time: time(report.reported_at) })}</p>
      </div>
      <p><b>${states[report.state]}</b>${report.settled_at && html` <span class="quiet">${time(report.settled_at)}</span>`}</p>
    </li>`)}</ul>
    <${Pager} label=${t("reports.pages")} list=${reports.list} />
  </section>`;
}
