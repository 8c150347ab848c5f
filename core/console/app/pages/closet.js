import { useSignal } from "@preact/signals";
import { attempt, html, Form, notify, Picture, useSite } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { editing, Pager, parameter, Results, Search, useList } from "../parts/list.js";
import { Wear } from "../parts/wear.js";
import { change, changedPath, closeDialog, href } from "../router.js";
import { refreshUser, request, update, user } from "../session.js";
import { t } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture & {pivot: {item_name: string}}} Item */

const perPage = 24;

/** What the user keeps: to wear, to rename, to remove. */
export default function Closet() {
  const category = parameter("category") === "cape" ? "cape" : "skin";
  const search = parameter("q");
  const closet = useList("/api/closet", { category, q: search, perPage });
  const about = useSite();
  const renamed = useSignal(/** @type {Item | null} */ (null));
  const { list } = closet;
  const { put, remove: take } = editing(/** @type {{list: import("../parts/list.js").List<Item>, reload: () => void}} */ (closet), (item) => item.tid);
  /** @type {Item[]} */
  const items = list.value?.data ?? [];

  /** @param {Item} item */
  async function remove(item) {
    await take(item, () => request("DELETE", "/api/closet/" + item.tid), t("closet.removed", { name: item.pivot.item_name }));
    refreshUser(); // the score may have been paid back
  }

  /** @param {Item} item */
  async function setAvatar(item) {
    const before = user.value;
    if (!before) return;
    const answer = await attempt(user, { ...before, avatar: item.tid }, () => request("PUT", "/api/user/avatar", { tid: item.tid }));
    if (!answer) return;
    update(answer.data);
    notify(t("closet.avatarSet", { name: item.pivot.item_name }));
  }

  const tab = (/** @type {"skin" | "cape"} */ value, /** @type {string} */ text) => html`<a class="button" aria-current=${value === category ? "page" : undefined}
    href=${href(changedPath({ category: value === "cape" ? value : "", page: "" }))}>${text}</a>`;
  const none = search ? t("wardrobe.nothing") : t(category === "skin" ? "closet.noSkins" : "closet.noCapes");
  const worn = items.find((item) => String(item.tid) === parameter("wear"));

  return html`<section>
    <h1 tabindex="-1">${t("closet.title")}</h1>
    <div class="search">
      <nav class="buttons" aria-label=${t("closet.category")}>${tab("skin", t("closet.skins"))}${tab("cape", t("closet.capes"))}</nav>
      <${Search} label=${t("wardrobe.search")} />
    </div>
    <${Results} ...${closet} none=${none} />
    ${list.value?.total === 0 && !search && html`<p class="links"><a href=${href("/library")}>${t("closet.library")}</a><a href=${href("/upload")}>${t("closet.upload")}</a></p>`}
    <ul class="items">${items.map((item) => {
      const name = item.pivot.item_name;
      return html`<li key=${item.tid} class="card item">
        <a class="picture" href=${href("/texture?tid=" + item.tid)} tabindex="-1" aria-hidden="true"><${Picture} path=${"/preview/" + item.tid} parameter="height" size=${128} width=${128} alt="" /></a>
        <h2><a href=${href("/texture?tid=" + item.tid)}><bdi>${name}</bdi></a></h2>
        <div class="buttons">
          <button type="button" aria-label=${t("closet.wearName", { name })} onClick=${() => change({ wear: String(item.tid) }, { isDialog: true })}>${t("closet.wear")}</button>
          <button type="button" aria-label=${t("action.renameName", { name })} onClick=${() => { renamed.value = item; }}>${t("action.rename")}</button>
          ${item.type !== "cape" && html`<button type="button" aria-label=${t("closet.avatarName", { name })} aria-pressed=${user.value?.avatar === item.tid ? "true" : "false"}
            onClick=${() => setAvatar(item)}>${t("home.avatar")}</button>`}
          <button type="button" aria-label=${t("keep.removeName", { name })} onClick=${() => remove(item)}>${t("closet.remove")}</button>
        </div>
      </li>`;
    })}</ul>
    <${Pager} label=${t("wardrobe.pages")} list=${list} />
    ${worn && html`<${Wear} tid=${worn.tid} type=${worn.type} name=${worn.pivot.item_name} onClose=${() => closeDialog("wear")} />`}
    ${renamed.value && html`<${Dialog} title=${t("action.renameName", { name: renamed.value.pivot.item_name })} onClose=${() => { renamed.value = null; }}>
      <p class="hint">${t("closet.renameHint")}</p>
      <${Form} action=${t("action.rename")} fields=${[{ name: "name", label: t("closet.name"), autocomplete: "off", required: true, maxlength: about?.texture_name.max, defaultValue: renamed.value.pivot.item_name }]}
        onSubmit=${async (/** @type {{name: string}} */ values) => {
          const item = /** @type {Item} */ (renamed.value);
          await request("PUT", "/api/closet/" + item.tid, values);
          put({ ...item, pivot: { item_name: values.name.trim() } });
          renamed.value = null;
        }} /></${Dialog}>`}
  </section>`;
}
