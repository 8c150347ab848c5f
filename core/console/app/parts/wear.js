import { href } from "../router.js";
import { request } from "../session.js";
import { t } from "../words.js";
import { html, notify, Picture, Reading, sentence, useRead } from "./basics.js";
import { Dialog } from "./dialog.js";

/** @typedef {{pid: number, name: string, tid_skin: number, tid_cape: number}} Player */

/**
 * A choice of the player that is to wear a texture.
 * @param {{tid: number, type: "steve" | "alex" | "cape", name: string, onClose: () => void}} props
 */
export function Wear({ tid, type, name, onClose }) {
  const read = useRead((signal) => /** @type {Promise<Player[]>} */ (request("GET", "/api/players", undefined, signal)));
  const players = read.value;
  const slot = type === "cape" ? "cape" : "skin";

  /** @param {Player} player */
  async function wear(player) {
    onClose();
    try {
      await request("PUT", `/api/players/${player.pid}/textures`, { [slot]: tid });
      notify(t("wear.done", { player: player.name, name }));
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  return html`<${Dialog} title=${t("wear.title", { name })} onClose=${onClose}>
    <${Reading} ...${read} />
    ${players.value?.length === 0 && html`<p>${t("wear.none")} <a href=${href("/players")}>${t("wear.players")}</a></p>`}
    <ul class="grid">${players.value?.map((player) => {
      const worn = slot === "cape" ? player.tid_cape : player.tid_skin;
      return html`<li key=${player.pid}>
        <button type="button" class="tile" aria-pressed=${worn === tid ? "true" : "false"} onClick=${() => wear(player)}>
          <${Picture} path=${player.tid_skin ? "/avatar/" + player.tid_skin : "/avatar/user/0"} parameter="size" size=${64} width=${64} alt="" />
          <bdi>${player.name}</bdi>
        </button></li>`;
    })}</ul>
  </${Dialog}>`;
}
