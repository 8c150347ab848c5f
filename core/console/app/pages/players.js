import { useEffect } from "preact/hooks";
import { batch, useSignal } from "@preact/signals";
import { asTyped, focusOn, html, Form, notify, Picture, Reading, sentence, silence, Sitting, undo, useRead, useSite } from "../parts/basics.js";
import { Confirm, Dialog } from "../parts/dialog.js";
import { Dressed } from "../parts/dressed.js";
import { Figure } from "../parts/figure.js";
import { keep } from "../parts/keep.js";
import { editing, parameter } from "../parts/list.js";
import { Icon, Menu } from "../parts/menu.js";
import { flawOf, flawSentence, nameOf, priceOf, sendTexture } from "../parts/upload.js";
import { Wardrobe } from "../parts/wardrobe.js";
import { ask, asked, closeDialog, navigate } from "../router.js";
import { refreshUser, request, site } from "../session.js";
import { number, t, time, translate } from "../words.js";

/** @typedef {import("../parts/dressed.js").Player} Player */
/** @typedef {"skin" | "cape"} Slot */
/** @typedef {{pid: number, slot: Slot, name: string, type: import("../parts/upload.js").Type, sheet: ImageBitmap, part: number}} Sending a file on its way to be worn; part: how much of it is sent */

/** The user's players: what they wear, and what they are called. */
export default function Players() {
  const about = useSite();
  const read = useRead((signal) => request("GET", "/api/players", undefined, signal).then((/** @type {Player[]} */ data) => ({ data, total: data.length })));
  const players = read.value;
  const deleted = useRead((signal) => /** @type {Promise<{pid: number, name: string, restorable_until: string}[]>} */ (request("GET", "/api/deleted-players", undefined, signal)));
  const { put, change, remove } = editing({ list: players, reload: read.reload }, (player) => player.pid, "h1");
  const sending = useSignal(/** @type {Sending[]} */ ([]));
  const charged = useSignal(/** @type {{name: string, price: number, decide: (isWanted: boolean) => void} | null} */ (null));

  const { action, id, close } = asked();
  const chosen = players.value?.data.find((player) => player.pid === id);
  const closeWardrobe = () => closeDialog("pid", "slot", "from", "q", "page");

  /**
   * @param {Player} player
   * @param {Slot} slot
   * @param {number} tid
   */
  const wear = (player, slot, tid) =>
    change(player, slot === "skin" ? { tid_skin: tid } : { tid_cape: tid }, "PUT", `/api/players/${player.pid}/textures`, { [slot]: tid });

  /**
   * @param {Player} player
   * @param {Slot} slot
   */
  const takeOff = async (player, slot) => {
    focusOn(`#${slot}-${player.pid}`);
    const worn = slot === "skin" ? player.tid_skin : player.tid_cape;
    const isDone = await change(player, slot === "skin" ? { tid_skin: 0 } : { tid_cape: 0 }, "DELETE", `/api/players/${player.pid}/textures`, { type: [slot] });
    if (isDone) notify(t(slot === "skin" ? "players.tookOffSkin" : "players.tookOffCape", { name: player.name }), "done", undo(() => wear(players.value?.data.find(({ pid }) => pid === player.pid) ?? player, slot, worn)));
  };

  /**
   * Uploads a file, for its owner only, and has a player wear it. What it costs is asked first.
   * @param {Player} player
   * @param {Slot} slot
   * @param {File} file
   */
  async function upload(player, slot, file) {
    const name = nameOf(file) || slot;
    const about = slot + "-" + player.pid;
    const show = (/** @type {Sending[]} */ ...now) => { sending.value = [...sending.value.filter((one) => one.pid !== player.pid || one.slot !== slot), ...now]; };
    try {
      const { upload: limits } = await site();
      const { flaw } = await flawOf(file, limits);
      if (flaw) {
        notify(`${file.name}: ${flawSentence(flaw, limits)}`, "failed", { about });
        return;
      }
      const price = await priceOf(file, name, slot);
      if (price.private_price > 0 && !price.duplicate && !(await new Promise((decide) => { charged.value = { name, price: price.private_price, decide }; ask("charge"); }))) return;
      let tid = price.duplicate;
      let isNew = false;
      if (!tid) {
        const begun = { pid: player.pid, slot, name, type: price.type, sheet: await createImageBitmap(file, { colorSpaceConversion: "none" }), part: 0 };
        show(begun);
        ({ tid, isNew } = await sendTexture({ file, name, type: slot, isPublic: false }, undefined, (part) => show({ ...begun, part })));
        refreshUser(); // the score may have changed
      }
      if (!isNew) await keep(tid, name);
      const worn = batch(() => {
        show();
        return wear(player, slot, tid);
      });
      if (!await worn) return;
      silence(about);
      if (isNew) notify(t("players.onlyYou", { player: player.name, name }), "done", { about, act: { text: t("texture.makePublic"), run: () => makePublic(tid) } });
    } catch (error) {
      show();
      notify(sentence(error), "failed", { about });
    }
  }

  /** @param {number} tid */
  async function makePublic(tid) {
    try {
      await request("PUT", "/api/textures/" + tid, { public: true });
      notify(t("texture.isPublic"));
      refreshUser(); // the visibility has its price
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  /** @param {number} pid */
  async function restore(pid) {
    await request("POST", `/api/players/${pid}/restore`);
    deleted.reload();
    refreshUser(); // the refund is taken back
  }

  const dressed = players.value?.data.find((player) => String(player.pid) === parameter("pid"));
  const slot = parameter("slot") === "cape" ? "cape" : "skin";
  const name = { name: "name", label: t("field.player"), hint: about && translate(about.player_name.rule), maxlength: about?.player_name.max, autocomplete: "off", ...asTyped, required: true };
  const quota = about?.quotas.players ?? 0;
  const cost = about?.costs.player ?? 0;

  return html`<section>
    <div class="heading">
      <h1 tabindex="-1">${t("players.title")}</h1>
      <button type="button" class="main" onClick=${() => ask("add")}>${t("players.add")}</button>
    </div>
    <${Reading} ...${read} />
    ${players.value?.total === 0 && html`<${Sitting} /><p class="none">${t("players.none")}</p>
      <p class="buttons ways"><button type="button" class="main" onClick=${() => ask("add")}>${t("players.add")}</button></p>`}
    <ul class="cards players">${players.value?.data.map((player) => html`<li key=${player.pid}>
      <${Card} player=${player} sending=${sending.value.filter(({ pid }) => pid === player.pid)} takeOff=${takeOff} upload=${upload}
        rename=${() => ask("rename", player.pid)} remove=${() => ask("delete", player.pid)} />
    </li>`)}</ul>
    ${Boolean(deleted.value.value?.length) && html`<h2 class="below">${t("players.deleted")}</h2>
      <ul class="list">${deleted.value.value?.map(({ pid, name: former, restorable_until: until }) => html`<li key=${pid} class="line">
        <div><p><bdi>${former}</bdi></p><p class="quiet">${t("players.restorable", { time: time(until) })}</p></div>
        <button type="button" aria-label=${t("players.restoreName", { name: former })} onClick=${() => {
          focusOn("h1");
          restore(pid).then(read.reload, (error) => notify(sentence(error), "failed"));
        }}>${t("players.restore")}</button>
      </li>`)}</ul>`}
    ${action === "add" && html`<${Dialog} title=${t("players.add")} onClose=${close}>
      ${cost > 0 && html`<p>${t("players.cost", { n: cost })}</p>`}
      ${quota > 0 && players.value && html`<p class="quiet">${t("players.quota", { used: number(players.value.total), n: quota })}</p>`}
      <${Form} action=${t("players.addAction")} fields=${[name]} onSubmit=${async (/** @type {any} */ values) => {
        const { data } = await request("POST", "/api/players", values);
        const before = players.value?.data ?? [];
        players.value = { data: [...before, data], total: before.length + 1 };
        close();
        refreshUser(); // the score may have changed
      }} /></${Dialog}>`}
    ${action === "rename" && chosen && html`<${Dialog} title=${t("action.renameName", { name: chosen.name })} onClose=${close}>
      <${Form} action=${t("action.rename")} fields=${[{ ...name, defaultValue: chosen.name }]} onSubmit=${async (/** @type {any} */ values) => {
        put((await request("PUT", `/api/players/${id}/name`, values)).data);
        close();
      }} /></${Dialog}>`}
    ${action === "delete" && chosen && html`<${Confirm} title=${t("action.deleteName", { name: chosen.name })} text=${t("players.deleteText")}
      action=${t("action.delete")} onClose=${close} onConfirm=${async () => {
        close();
        await remove(chosen, () => request("DELETE", "/api/players/" + id), t("action.deleted", { name: chosen.name }), () => restore(id));
        deleted.reload();
        refreshUser(); // the score may have changed
      }} />`}
    ${action === "charge" && charged.value && html`<${Charge} ...${charged.value} onClose=${close} />`}
    ${dressed && html`<${Wardrobe} key=${dressed.pid + slot} title=${t(slot === "skin" ? "players.chooseSkin" : "players.chooseCape", { name: dressed.name })} slot=${slot}
      player=${dressed}
      onClose=${closeWardrobe}
      onFile=${(/** @type {File} */ file) => { closeWardrobe(); upload(dressed, slot, file); }}
      onChoose=${async (/** @type {number} */ tid, /** @type {string} */ library) => {
        closeWardrobe();
        try {
          if (library) await keep(tid, library);
          await wear(dressed, slot, tid);
        } catch (error) {
          notify(sentence(error), "failed");
        }
      }} />`}
  </section>`;
}

/**
 * Asks whether a file is to be uploaded for its price.
 * @param {{name: string, price: number, decide: (isWanted: boolean) => void, onClose: () => void}} props
 */
function Charge({ name, price, decide, onClose }) {
  useEffect(() => () => decide(false), []); // unless it is decided
  return html`<${Confirm} title=${t("upload.sendName", { name })} text=${t("players.uploadCost", { n: price })} action=${t("upload.send")} isHarmless=${true}
    onClose=${onClose} onConfirm=${() => { decide(true); onClose(); }} />`;
}

/**
 * A player, on which files can be dropped.
 * @param {{player: Player, sending: Sending[], takeOff: (player: Player, slot: Slot) => void, upload: (player: Player, slot: Slot, file: File) => void, rename: () => void, remove: () => void}} props
 */
function Card({ player, sending, takeOff, upload, rename, remove }) {
  const over = useSignal(false);
  const target = (/** @type {Slot} */ slot) => html`<p class="target" onDragOver=${(/** @type {DragEvent} */ event) => event.preventDefault()}
    onDrop=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      over.value = false;
      const file = event.dataTransfer?.files[0];
      if (file) upload(player, slot, file);
    }}>${t(slot === "skin" ? "players.dropSkin" : "players.dropCape")}</p>`;

  const { pid, name, tid_skin: skin, tid_cape: cape } = player;
  /**
   * @param {Slot} slot
   * @param {number} tid
   */
  const worn = (slot, tid) => html`<div class=${"worn " + slot}>
    ${tid > 0 && html`<${Picture} key=${tid} path=${"/preview/" + tid} parameter="height" size=${48} width=${46} alt=${t(slot === "skin" ? "players.skinOf" : "players.capeOf", { name })} />`}
    <button type="button" id=${slot + "-" + pid} class=${slot === "skin" && !tid ? "main" : "tonal"} aria-label=${t(slot === "skin" ? "players.chooseSkin" : "players.chooseCape", { name })}
      onClick=${() => navigate(`/players?pid=${pid}&slot=${slot}`, { isDialog: true })}>${t(slot === "skin" ? "players.skin" : "players.cape")}</button>
    ${tid > 0 && html`<button type="button" class="plain" title=${t("players.takeOff")} aria-label=${t(slot === "skin" ? "players.takeOffSkin" : "players.takeOffCape", { name })}
      onClick=${() => takeOff(player, slot)}><${Icon} name="close" /></button>`}
  </div>`;
  async function copy() {
    try {
      await navigator.clipboard.writeText(player.uuid);
      notify(t("copy.done"));
    } catch {
      notify(player.uuid); // which can be selected
    }
  }

  return html`<article class="card player"
    onDragEnter=${(/** @type {DragEvent} */ event) => { if (event.dataTransfer?.types.includes("Files")) over.value = true; }}
    onDragLeave=${(/** @type {DragEvent} */ event) => {
      const to = /** @type {Node | null} */ (event.relatedTarget);
      if (!(/** @type {Node} */ (event.currentTarget)).contains(to)) over.value = false;
    }}>
    ${sending.length > 0 ? html`<div class="stage"><${Sent} ...${sending[0]} /></div>` : html`<${Dressed} player=${player} size=${304} />`}
    <div>
      <div class="named"><h2><bdi>${name}</bdi></h2>
        <button type="button" class="plain" title=${t("action.rename")} aria-label=${t("action.renameName", { name })} onClick=${rename}><${Icon} name="pen" /></button>
        <${Menu} label=${t("closet.more", { name })} face=${html`<${Icon} name="more" />`}>
          <a href=${"/p/" + encodeURIComponent(name)}>${t("action.share")}</a>
          <button type="button" onClick=${copy}>${t("players.copy")}</button>
          <button type="button" class="danger" aria-label=${t("action.deleteName", { name })} onClick=${remove}>${t("action.delete")}</button>
        </${Menu}></div>
      ${worn("skin", skin)}${worn("cape", cape)}
    </div>
    ${over.value && html`<div class="targets">${target("skin")}${target("cape")}</div>`}
  </article>`;
}

/** A file on its way. @param {Sending} props */
function Sent({ sheet, type, name, part }) {
  return html`<div><${Figure} sheet=${sheet} type=${type} label=${t(type === "cape" ? "texture.capeView" : "texture.skinView", { name })} />
    <progress max="1" value=${part} aria-label=${t("upload.progress", { name })}></progress></div>`;
}
