import { attempt, html, Form, notify, useSite } from "../parts/basics.js";
import { Card } from "../parts/card.js";
import { Dialog } from "../parts/dialog.js";
import { removed } from "../parts/keep.js";
import { Chips, editing, Filter, Pager, parameter, Results, Search, useList } from "../parts/list.js";
import { Icon, Menu } from "../parts/menu.js";
import { Wear } from "../parts/wear.js";
import { ask, asked, change, closeDialog, href } from "../router.js";
import { refreshUser, request, update, user } from "../session.js";
import { t } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture & {pivot: {item_name: string}}} Item */

const perPage = 24;

/** What the user keeps: to wear, to rename, to remove. */
export default function Closet() {
  const category = parameter("category") === "cape" ? "cape" : "skin";
  const search = parameter("q");
  const closet = useList("/api/closet", { category, q: search, sort: parameter("sort"), perPage });
  const about = useSite();
  const { list } = closet;
  const { put, remove: take } = editing(/** @type {{list: import("../parts/list.js").List<Item>, reload: () => void}} */ (closet), (item) => item.tid);
  /** @type {Item[]} */
  const items = list.value?.data ?? [];

  /** @param {Item} item */
  async function remove(item) {
    const { tid, pivot: { item_name: name } } = item;
    await take(item, () => request("DELETE", "/api/closet/" + tid), removed(name, about?.costs.closet_item), async () => {
      await request("POST", "/api/closet", { tid, name });
      refreshUser();
    });
    refreshUser(); // the score may have been paid back
  }

  /**
   * @param {Item} item
   * @param {number} tid of the item, or 0
   */
  async function setAvatar(item, tid) {
    const before = user.value;
    if (!before) return;
    const answer = await attempt(user, { ...before, avatar: tid }, () => request("PUT", "/api/user/avatar", { tid }));
    if (!answer) return;
    update(answer.data);
    notify(t(tid ? "closet.avatarSet" : "closet.avatarUnset", { name: item.pivot.item_name }));
  }

  const none = search ? t("wardrobe.nothing") : t(category === "skin" ? "closet.noSkins" : "closet.noCapes");
  const { action, id, close } = asked();
  const renamed = action === "rename" && items.find((item) => item.tid === id);
  const worn = items.find((item) => String(item.tid) === parameter("wear"));

  return html`<section>
    <h1 tabindex="-1">${t("closet.title")}</h1>
    <div class="search"><${Search} label=${t("wardrobe.search")} /></div>
    <${Chips} label=${t("closet.category")} name="category" values=${{ "": t("closet.skins"), cape: t("closet.capes") }} />
    <div class="found">
      <${Results} ...${closet} none=${none}>${!search && html`
        <a class="button main" href=${href("/library")}>${t("closet.library")}</a><a class="button" href=${href("/upload")}>${t("closet.upload")}</a>`}</${Results}>
      ${list.value?.total !== 0 && html`<${Filter} label=${t("list.sort")} name="sort" values=${{ "": t("list.newest"), name: t("list.byName") }} />`}
    </div>
    <ul class="items">${items.map((item) => {
      const name = item.pivot.item_name;
      const isAvatar = user.value?.avatar === item.tid;
      return html`<${Card} key=${item.tid} tid=${item.tid} type=${item.type} name=${name}>
        <div class="acts">
          <button type="button" class="main" aria-label=${t("closet.wearName", { name })} onClick=${() => change({ wear: String(item.tid) }, { isDialog: true })}>${t("closet.wear")}</button>
          <${Menu} label=${t("closet.more", { name })} isAbove=${true} face=${html`<${Icon} name="more" />`}>
            <button type="button" aria-label=${t("action.renameName", { name })} onClick=${() => ask("rename", item.tid)}>${t("action.rename")}</button>
            ${item.type !== "cape" && html`<button type="button" aria-label=${t(isAvatar ? "closet.noAvatarName" : "closet.avatarName", { name })} onClick=${() => setAvatar(item, isAvatar ? 0 : item.tid)}>
              ${t(isAvatar ? "closet.noAvatar" : "closet.avatar")}</button>`}
            <button type="button" class="danger" aria-label=${t("keep.removeName", { name })} onClick=${() => remove(item)}>${t("closet.remove")}</button>
          </${Menu}>
        </div>
      </${Card}>`;
    })}</ul>
    <${Pager} label=${t("wardrobe.pages")} list=${list} />
    ${worn && html`<${Wear} tid=${worn.tid} type=${worn.type} name=${worn.pivot.item_name} onClose=${() => closeDialog("wear")} />`}
    ${renamed && html`<${Dialog} title=${t("action.renameName", { name: renamed.pivot.item_name })} onClose=${close}>
      <p class="hint">${t("closet.renameHint")}</p>
      <${Form} action=${t("action.rename")} fields=${[{ name: "name", label: t("closet.name"), autocomplete: "off", required: true, maxlength: about?.texture_name.max, defaultValue: renamed.pivot.item_name }]}
        onSubmit=${async (/** @type {{name: string}} */ values) => {
          await request("PUT", "/api/closet/" + id, values);
          put({ ...renamed, pivot: { item_name: values.name.trim() } });
          close();
        }} /></${Dialog}>`}
  </section>`;
}
