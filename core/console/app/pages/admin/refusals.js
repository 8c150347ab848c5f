import { html } from "../../parts/basics.js";
import { UserLink } from "../../parts/admin.js";
import { typeName } from "../../parts/keep.js";
import { editing, Pager, Results, useList } from "../../parts/list.js";
import { href } from "../../router.js";
import { request } from "../../session.js";
import { t, time } from "../../words.js";

/** @typedef {{tid: number, name: string, type: "steve" | "alex" | "cape", refused_at: string, refused_by: number, refused_by_nickname?: string}} Refusal */

/** Removed textures that nobody may upload again. */
export default function Refusals() {
  const page = useList("/api/admin/refusals", { perPage: 20 });
  const { remove } = editing(/** @type {{list: import("../../parts/list.js").List<Refusal>, reload: () => void}} */ (page), (refusal) => refusal.tid);
  return html`<section>
    <p><a href=${href("/admin/textures")}>${t("admintextures.title")}</a></p>
    <h1 tabindex="-1">${t("refusals.title")}</h1>
    <p>${t("refusals.text")}</p>
    <${Results} ...${page} none=${t("refusals.none")} />
    <ul class="entries">${page.list.value?.data.map((/** @type {Refusal} */ refusal) => html`<li key=${refusal.tid}>
      <article class="card">
        <h2><bdi>${refusal.name}</bdi></h2>
        <p class="quiet">${typeName(refusal.type)} · <${UserLink} uid=${refusal.refused_by} nickname=${refusal.refused_by_nickname} /> · ${time(refusal.refused_at)}</p>
        <button type="button" aria-label=${t("refusals.allowName", { name: refusal.name })}
          onClick=${() => remove(refusal, () => request("DELETE", "/api/admin/refusals/" + refusal.tid), t("refusals.allowed", { name: refusal.name }))}>${t("refusals.allow")}</button>
      </article></li>`)}</ul>
    <${Pager} label=${t("refusals.pages")} list=${page.list} />
  </section>`;
}
