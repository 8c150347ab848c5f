import { asTyped, Form, html, Picture, useSite } from "../../parts/basics.js";
import { TextureLink, textureNumber, UserLink, userNumber } from "../../parts/admin.js";
import { Confirm, Dialog } from "../../parts/dialog.js";
import { editing, Pager, parameter, Results, Search, useList } from "../../parts/list.js";
import { ask, asked } from "../../router.js";
import { request } from "../../session.js";
import { t, time } from "../../words.js";

/** @typedef {{pid: number, uid: number, owner_nickname?: string, uuid: string, name: string, tid_skin: number, skin_name?: string, tid_cape: number, cape_name?: string, last_modified: string}} Player */

/** The players of all users. */
export default function Players() {
  const page = useList("/api/admin/players", { pid: parameter("pid"), uid: parameter("uid"), name: parameter("name"), perPage: 20 });
  const { put, change, remove } = editing(/** @type {{list: import("../../parts/list.js").List<Player>, reload: () => void}} */ (page), (player) => player.pid);
  const about = useSite();
  const { action, id, close } = asked();
  const path = (/** @type {Player} */ player) => "/api/admin/players/" + player.pid;

  /**
   * @param {Player} player
   * @param {"skin" | "cape"} slot
   */
  const takeOff = (player, slot) => {
    close();
    return change(player, slot === "skin" ? { tid_skin: 0 } : { tid_cape: 0 }, "DELETE", path(player) + "/textures", { type: [slot] });
  };

  const player = page.list.value?.data.find((/** @type {Player} */ one) => one.pid === id);
  /**
   * @param {string} name
   * @param {string} label
   */
  const textureField = (name, label) => ({ name, label, autocomplete: "off" });
  return html`<section>
    <h1 tabindex="-1">${t("adminplayers.title")}</h1>
    <div class="search">
      <${Search} label=${t("adminplayers.name")} name="name" />
      <${Search} label=${t("adminplayers.uid")} name="uid" isWhole=${true} />
    </div>
    <${Results} ...${page} none=${t("adminplayers.none")} />
    <ul class="cards">${page.list.value?.data.map((/** @type {Player} */ shown) => html`<li key=${shown.pid}>
      <article class="card entry">
        <div class="picture">${shown.tid_skin
          ? html`<${Picture} key=${shown.tid_skin} path=${"/preview/" + shown.tid_skin} parameter="height" size=${112} width=${112} alt=${t("players.skinOf", { name: shown.name })} />`
          : html`<p class="quiet">${t("players.noSkin")}</p>`}</div>
        <div>
          <h2><bdi>${shown.name}</bdi></h2>
          <dl class="facts">
            <dt>${t("adminplayers.owner")}</dt><dd><${UserLink} uid=${shown.uid} nickname=${shown.owner_nickname} /></dd>
            <dt>${t("audit.skin")}</dt><dd>${shown.tid_skin ? html`<${TextureLink} tid=${shown.tid_skin} name=${shown.skin_name} />` : t("players.noSkin")}</dd>
            <dt>${t("adminplayers.cape")}</dt><dd>${shown.tid_cape ? html`<${TextureLink} tid=${shown.tid_cape} name=${shown.cape_name} />` : t("players.noCape")}</dd>
            <dt>${t("adminplayers.modified")}</dt><dd>${time(shown.last_modified)}</dd>
          </dl>
        </div>
        <div class="buttons">
          <button type="button" aria-label=${t("action.renameName", { name: shown.name })} onClick=${() => ask("rename", shown.pid)}>${t("action.rename")}</button>
          <button type="button" aria-label=${t("adminplayers.dressTitle", { name: shown.name })} onClick=${() => ask("dress", shown.pid)}>${t("adminplayers.dress")}</button>
          <button type="button" aria-label=${t("adminplayers.moveTitle", { name: shown.name })} onClick=${() => ask("move", shown.pid)}>${t("adminplayers.move")}</button>
          <button type="button" class="danger" aria-label=${t("action.deleteName", { name: shown.name })} onClick=${() => ask("delete", shown.pid)}>${t("action.delete")}</button>
        </div>
      </article></li>`)}</ul>
    <${Pager} label=${t("adminplayers.pages")} list=${page.list} />
    ${action === "rename" && player && html`<${Dialog} title=${t("action.renameName", { name: player.name })} onClose=${close}>
      <${Form} action=${t("action.rename")} fields=${[{ name: "name", label: t("field.player"), defaultValue: player.name, maxlength: about?.player_name.max, autocomplete: "off", ...asTyped, required: true }]}
        onSubmit=${async (/** @type {any} */ values) => {
          put({ ...player, ...(await request("PUT", path(player) + "/name", values)).data });
          close();
        }} /></${Dialog}>`}
    ${action === "move" && player && html`<${Dialog} title=${t("adminplayers.moveTitle", { name: player.name })} onClose=${close}>
      <p>${t("adminplayers.moveText")}</p>
      <${Form} action=${t("adminplayers.moveAction")} fields=${[{ name: "uid", label: t("adminplayers.newOwner"), defaultValue: player.owner_nickname, autocomplete: "off", required: true }]}
        onSubmit=${async (/** @type {any} */ values) => {
          await request("PUT", path(player) + "/owner", { uid: await userNumber(values.uid) });
          close();
          page.reload(); // with the names
        }} /></${Dialog}>`}
    ${action === "dress" && player && html`<${Dialog} title=${t("adminplayers.dressTitle", { name: player.name })} onClose=${close}>
      ${(player.tid_skin > 0 || player.tid_cape > 0) && html`<p class="buttons spread">
        ${player.tid_skin > 0 && html`<button type="button" onClick=${() => takeOff(player, "skin")}>${t("adminplayers.takeOffSkin")}</button>`}
        ${player.tid_cape > 0 && html`<button type="button" onClick=${() => takeOff(player, "cape")}>${t("adminplayers.takeOffCape")}</button>`}
      </p>`}
      <p>${t("adminplayers.dressText")}</p>
      <${Form} action=${t("adminplayers.dressAction")} fields=${[textureField("skin", t("adminplayers.skinNumber")), textureField("cape", t("adminplayers.capeNumber"))]}
        onSubmit=${async (/** @type {any} */ values) => {
          /** @type {Record<string, number>} */
          const chosen = {};
          for (const slot of /** @type {("skin" | "cape")[]} */ (["skin", "cape"])) {
            if (values[slot]) chosen[slot] = await textureNumber(slot, values[slot], slot);
          }
          await request("PUT", path(player) + "/textures", chosen);
          close();
          page.reload();
        }} /></${Dialog}>`}
    ${action === "delete" && player && html`<${Confirm} title=${t("action.deleteName", { name: player.name })} text=${t("adminplayers.deleteText")} action=${t("action.delete")}
      onClose=${close} onConfirm=${() => { close(); remove(player, () => request("DELETE", path(player)), t("action.deleted", { name: player.name })); }} />`}
  </section>`;
}
