import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { focusOn, html, Form, notify, Picture, sentence } from "../parts/basics.js";
import { Confirm, Dialog } from "../parts/dialog.js";
import { nameOf, sendTexture } from "../parts/upload.js";
import { Wardrobe } from "../parts/wardrobe.js";
import { navigate, place } from "../router.js";
import { request } from "../session.js";
import { t } from "../words.js";

/** @typedef {{pid: number, name: string, tid_skin: number, tid_cape: number}} Player */
/** @typedef {"skin" | "cape"} Slot */

/** The user's players: what they wear, and what they are called. */
export default function Players() {
  const players = useSignal(/** @type {Player[] | undefined} */ (undefined));
  const asked = useSignal(/** @type {{action: "add" | "rename" | "delete", player?: Player} | null} */ (null));

  useEffect(() => {
    const leaving = new AbortController();
    request("GET", "/api/players", undefined, leaving.signal).then(
      (list) => { players.value = list; },
      (error) => { if (!leaving.signal.aborted) notify(sentence(error), "failed"); },
    );
    return () => leaving.abort();
  }, []);

  const close = () => { asked.value = null; };
  const put = (/** @type {Player} */ player) => {
    players.value = players.value?.map((other) => (other.pid === player.pid ? player : other));
  };

  /**
   * Shows a change at once, and takes it back with a sentence if the server refuses it.
   * @param {Player} player
   * @param {Partial<Player>} patch
   * @param {() => Promise<any>} send
   */
  async function change(player, patch, send) {
    put({ ...player, ...patch });
    try {
      put((await send()).data);
    } catch (error) {
      put(player);
      notify(sentence(error), "failed");
    }
  }

  /**
   * @param {Player} player
   * @param {Slot} slot
   * @param {number} tid
   */
  const wear = (player, slot, tid) =>
    change(player, slot === "skin" ? { tid_skin: tid } : { tid_cape: tid }, () => request("PUT", `/api/players/${player.pid}/textures`, { [slot]: tid }));

  /**
   * @param {Player} player
   * @param {Slot} slot
   */
  const takeOff = (player, slot) => {
    focusOn(`#${slot}-${player.pid}`);
    return change(player, slot === "skin" ? { tid_skin: 0 } : { tid_cape: 0 }, () => request("DELETE", `/api/players/${player.pid}/textures`, { type: [slot] }));
  };

  /**
   * Uploads a file, for its owner only, and has a player wear it.
   * @param {Player} player
   * @param {Slot} slot
   * @param {File} file
   */
  async function upload(player, slot, file) {
    try {
      const { tid } = await sendTexture({ file, name: nameOf(file) || slot, type: slot, isPublic: false });
      await wear(player, slot, tid);
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  /** @param {Player} player */
  async function remove(player) {
    const before = players.value;
    close();
    players.value = before?.filter((other) => other !== player);
    focusOn("h1");
    try {
      await request("DELETE", "/api/players/" + player.pid);
      notify(t("players.deleted", { name: player.name }));
    } catch (error) {
      players.value = before;
      notify(sentence(error), "failed");
    }
  }

  const { query } = place.value;
  const dressed = players.value?.find((player) => String(player.pid) === query.get("pid"));
  const slot = query.get("slot") === "cape" ? "cape" : "skin";
  const name = { name: "name", label: t("field.player"), autocomplete: "off", required: true };

  return html`<section>
    <div class="heading">
      <h1 tabindex="-1">${t("players.title")}</h1>
      <button type="button" class="main" onClick=${() => { asked.value = { action: "add" }; }}>${t("players.add")}</button>
    </div>
    ${players.value?.length === 0 && html`<p class="card note">${t("players.none")}</p>`}
    <ul class="cards players">${players.value?.map((player) => html`<li key=${player.pid}>
      <${Card} player=${player} takeOff=${takeOff} upload=${upload}
        rename=${() => { asked.value = { action: "rename", player }; }} remove=${() => { asked.value = { action: "delete", player }; }} />
    </li>`)}</ul>
    ${asked.value?.action === "add" && html`<${Dialog} title=${t("players.add")} onClose=${close}>
      <${Form} action=${t("players.addAction")} fields=${[name]} onSubmit=${async (/** @type {any} */ values) => {
        const { data } = await request("POST", "/api/players", values);
        players.value = [...(players.value ?? []), data];
        close();
      }} /></${Dialog}>`}
    ${asked.value?.action === "rename" && html`<${Dialog} title=${t("players.renameTitle", { name: asked.value.player?.name ?? "" })} onClose=${close}>
      <${Form} action=${t("players.rename")} fields=${[{ ...name, defaultValue: asked.value.player?.name }]} onSubmit=${async (/** @type {any} */ values) => {
        put((await request("PUT", `/api/players/${asked.value?.player?.pid}/name`, values)).data);
        close();
      }} /></${Dialog}>`}
    ${asked.value?.action === "delete" && html`<${Confirm} title=${t("players.deleteTitle", { name: asked.value.player?.name ?? "" })} text=${t("players.deleteText")}
      action=${t("players.delete")} onClose=${close} onConfirm=${() => asked.value?.player && remove(asked.value.player)} />`}
    ${dressed && html`<${Wardrobe} key=${dressed.pid + slot} title=${t(slot === "skin" ? "players.chooseSkin" : "players.chooseCape", { name: dressed.name })} slot=${slot}
      worn=${slot === "skin" ? dressed.tid_skin : dressed.tid_cape}
      onClose=${() => navigate("/players")}
      onFile=${(/** @type {File} */ file) => { navigate("/players"); upload(dressed, slot, file); }}
      onChoose=${(/** @type {number} */ tid) => { navigate("/players"); wear(dressed, slot, tid); }} />`}
  </section>`;
}

/**
 * A player, on which files can be dropped.
 * @param {{player: Player, takeOff: (player: Player, slot: Slot) => void, upload: (player: Player, slot: Slot, file: File) => void, rename: () => void, remove: () => void}} props
 */
function Card({ player, takeOff, upload, rename, remove }) {
  const over = useSignal(false);
  const target = (/** @type {Slot} */ slot) => html`<p class="target" onDragOver=${(/** @type {DragEvent} */ event) => event.preventDefault()}
    onDrop=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      over.value = false;
      const file = event.dataTransfer?.files[0];
      if (file) upload(player, slot, file);
    }}>${t(slot === "skin" ? "players.dropSkin" : "players.dropCape")}</p>`;

  /**
   * @param {Slot} slot
   * @param {number} tid
   */
  const worn = (slot, tid) => html`<div class="worn">
    <div class=${"picture " + slot}>${tid
      ? html`<${Picture} key=${tid} path=${"/preview/" + tid} parameter="height" size=${160} width=${slot === "skin" ? 154 : 128} alt=${t(slot === "skin" ? "players.skinOf" : "players.capeOf", { name: player.name })} />`
      : html`<p class="quiet">${t(slot === "skin" ? "players.noSkin" : "players.noCape")}</p>`}</div>
    <div class="buttons">
      <button type="button" id=${slot + "-" + player.pid} aria-label=${t(slot === "skin" ? "players.chooseSkin" : "players.chooseCape", { name: player.name })}
        onClick=${() => navigate(`/players?pid=${player.pid}&slot=${slot}`)}>${t(slot === "skin" ? "players.skin" : "players.cape")}</button>
      ${tid > 0 && html`<button type="button" aria-label=${t(slot === "skin" ? "players.takeOffSkin" : "players.takeOffCape", { name: player.name })}
        onClick=${() => takeOff(player, slot)}>${t("players.takeOff")}</button>`}
    </div>
  </div>`;

  return html`<article class="card player"
    onDragEnter=${(/** @type {DragEvent} */ event) => { if (event.dataTransfer?.types.includes("Files")) over.value = true; }}
    onDragLeave=${(/** @type {DragEvent} */ event) => {
      const to = /** @type {Node | null} */ (event.relatedTarget);
      if (!(/** @type {Node} */ (event.currentTarget)).contains(to)) over.value = false;
    }}>
    <h2><bdi>${player.name}</bdi></h2>
    <div class="wear">${worn("skin", player.tid_skin)}${worn("cape", player.tid_cape)}</div>
    <div class="buttons">
      <button type="button" aria-label=${t("players.renameTitle", { name: player.name })} onClick=${rename}>${t("players.rename")}</button>
      <button type="button" aria-label=${t("players.deleteTitle", { name: player.name })} onClick=${remove}>${t("players.delete")}</button>
    </div>
    ${over.value && html`<div class="targets">${target("skin")}${target("cape")}</div>`}
  </article>`;
}
