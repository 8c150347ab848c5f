import { Form, html, Picture, useSite } from "../../parts/basics.js";
import { DeleteTexture, Select, UserLink } from "../../parts/admin.js";
import { typeName } from "../../parts/keep.js";
import { Dialog } from "../../parts/dialog.js";
import { editing, Filter, indexedText, Pager, parameter, Results, Search, useList } from "../../parts/list.js";
import { ask, asked, href } from "../../router.js";
import { request } from "../../session.js";
import { t, time } from "../../words.js";

/** @typedef {{tid: number, name: string, type: "steve" | "alex" | "cape", uploader: number, uploader_nickname?: string, public: boolean, upload_at: string, likes: number}} Texture */

/** All textures, private ones too. */
export default function Textures() {
  const page = useList("/api/admin/textures", { type: parameter("type"), q: indexedText(), uploader: parameter("uploader"), sort: parameter("sort"), perPage: 24 });
  const { put, remove } = editing(/** @type {{list: import("../../parts/list.js").List<Texture>, reload: () => void}} */ (page), (texture) => texture.tid);
  const about = useSite();
  const { action, id, close } = asked();

  const types = { "": t("list.all"), skin: t("admintextures.skins"), steve: t("type.steve"), alex: t("type.alex"), cape: t("admintextures.capes") };
  const texture = page.list.value?.data.find((/** @type {Texture} */ one) => one.tid === id);
  return html`<section>
    <h1 tabindex="-1">${t("admintextures.title")}</h1>
    <div class="search">
      <${Search} label=${t("admintextures.search")} isIndexed=${true} />
      <${Search} label=${t("admintextures.uploader")} name="uploader" isWhole=${true} />
      <${Filter} label=${t("admintextures.type")} name="type" values=${types} />
      <${Filter} label=${t("admintextures.sort")} name="sort" values=${{ "": t("admintextures.newest"), likes: t("admintextures.likes") }} />
    </div>
    <p><a href=${href("/admin/refusals")}>${t("refusals.title")}</a></p>
    <${Results} ...${page} none=${t("admintextures.none")} />
    <ul class="cards">${page.list.value?.data.map((/** @type {Texture} */ shown) => html`<li key=${shown.tid}>
      <article class="card entry">
        <div class="picture"><${Picture} key=${shown.type} path=${"/preview/" + shown.tid} parameter="height" size=${112} width=${112} alt="" /></div>
        <div>
          <h2><a href=${href("/texture?tid=" + shown.tid)}><bdi>${shown.name}</bdi></a></h2>
          <p>${typeName(shown.type)}${!shown.public && html` <span class="badge">${t("texture.private")}</span>`}</p>
          <p class="quiet"><${UserLink} uid=${shown.uploader} nickname=${shown.uploader_nickname} /> · ${time(shown.upload_at)} · ${t("admintextures.inClosets", { n: shown.likes })}</p>
        </div>
        <div class="buttons">
          <button type="button" aria-label=${t("admintextures.changeTitle", { name: shown.name })} onClick=${() => ask("change", shown.tid)}>${t("action.change")}</button>
          <button type="button" class="danger" aria-label=${t("action.deleteName", { name: shown.name })} onClick=${() => ask("delete", shown.tid)}>${t("action.delete")}</button>
        </div>
      </article></li>`)}</ul>
    <${Pager} label=${t("admintextures.pages")} list=${page.list} />
    ${action === "change" && texture && html`<${Dialog} title=${t("admintextures.changeTitle", { name: texture.name })} onClose=${close}>
      <${Form} action=${t("action.save")} fields=${[{ name: "name", label: t("admintextures.name"), defaultValue: texture.name, maxlength: about?.texture_name.max, autocomplete: "off", required: true }]}
        onSubmit=${async (/** @type {any} */ values) => {
          const change = { name: values.name, public: values.visible === "public", ...(texture.type !== "cape" && { type: values.type }) };
          put((await request("PUT", "/api/admin/textures/" + texture.tid, change)).data);
          close();
        }}>
        ${texture.type !== "cape" && html`<${Select} name="type" label=${t("admintextures.type")} value=${texture.type} values=${{ steve: t("type.steve"), alex: t("type.alex") }} />`}
        <${Select} name="visible" label=${t("admintextures.visible")} hint=${t("admintextures.privateHint")} value=${texture.public ? "public" : "private"}
          values=${{ public: t("admintextures.everybody"), private: t("admintextures.owner") }} />
      </${Form}></${Dialog}>`}
    ${action === "delete" && texture && html`<${DeleteTexture} title=${t("action.deleteName", { name: texture.name })} action=${t("action.delete")} onClose=${close}
      onDelete=${(/** @type {boolean} */ refuse) => {
        close();
        remove(texture, () => request("DELETE", "/api/admin/textures/" + texture.tid + (refuse ? "?refuse=true" : "")), t("action.deleted", { name: texture.name }));
      }} />`}
  </section>`;
}
