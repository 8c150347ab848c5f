import { useSignal } from "@preact/signals";
import { href } from "../router.js";
import { request } from "../session.js";
import { t } from "../words.js";
import { html, notify, Picture, Reading, sentence, useRead, useSite } from "./basics.js";
import { keep } from "./keep.js";
import { Dialog } from "./dialog.js";
import { Fitting } from "./dressed.js";

/** @typedef {import("./dressed.js").Player} Player */

/**
 * A choice of the player that is to wear a texture, which tries it on first. It stays in the closet, or comes there.
 * @param {{tid: number, type: "steve" | "alex" | "cape", name: string, onKeep?: () => void, onClose: () => void}} props onKeep: for a texture that is not in the closet yet
 */
export function Wear({ tid, type, name, onKeep, onClose }) {
  const cost = useSite()?.costs.closet_item ?? 0;
  const read = useRead((signal) => /** @type {Promise<Player[]>} */ (request("GET", "/api/players", undefined, signal)));
  const players = read.value.value;
  const slot = type === "cape" ? "cape" : "skin";
  const chosen = useSignal(0);
  const player = players?.find(({ pid }) => pid === chosen.value) ?? players?.[0];

  async function wear() {
    if (!player) return;
    onClose();
    try {
      if (onKeep) {
        await keep(tid, name);
        onKeep();
      }
      await request("PUT", `/api/players/${player.pid}/textures`, { [slot]: tid });
      notify(t("wear.done", { player: player.name, name }));
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  return html`<${Dialog} title=${t("closet.wearName", { name })} onClose=${onClose}>
    <div class="fitting">
      <div><${Fitting} player=${player} slot=${slot} tid=${tid} name=${name} /></div>
      <div>
        ${onKeep && cost > 0 && html`<p class="quiet">${t("library.cost", { n: cost })}</p>`}
        <${Reading} ...${read} />
        ${players?.length === 0 && html`<p>${t("wear.none")}</p><a class="button main" href=${href("/players")}>${t("wear.players")}</a>`}
        ${players && players.length > 1 && html`<ul class="grid" aria-label=${t("upload.wearer", { name })}>${players.map((one) => html`<li key=${one.pid}>
          <button type="button" class="tile" aria-pressed=${one === player ? "true" : "false"} onClick=${() => { chosen.value = one.pid; }}>
            <${Picture} path=${one.tid_skin ? "/avatar/" + one.tid_skin : "/avatar/user/0"} parameter="size" size=${64} width=${64} alt="" />
            <bdi>${one.name}</bdi>
          </button></li>`)}</ul>`}
        ${player && html`<button type="button" class="main" data-first onClick=${wear}>${t("upload.wear", { player: player.name })}</button>`}
      </div>
    </div>
  </${Dialog}>`;
}
