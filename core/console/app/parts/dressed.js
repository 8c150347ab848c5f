// What a player wears, as a picture and in three dimensions.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../words.js";
import { html, Picture } from "./basics.js";
import { outfitOf, Viewer } from "./viewer.js";

/** @typedef {{pid: number, uuid: string, name: string, tid_skin: number, tid_cape: number, last_modified: string}} Player */

/** Within which time edges have a change, in milliseconds. Browsers would keep the former picture for a minute. */
const settles = 500;

/**
 * The figure of a player with skin and cape, or a shadow of one without a skin.
 * @param {{player: Player, size: number}} props size: the height
 */
export function Dressed({ player, size }) {
  const { uuid, name, tid_skin: skin, tid_cape: cape, last_modified: at } = player;
  const settled = useSignal(at);
  useEffect(() => {
    const timer = setTimeout(() => { settled.value = at; }, settles);
    return () => clearTimeout(timer);
  }, [at]);
  // Without a cape it is the skin's picture, which never changes.
  const path = cape ? `/body/uuid/${uuid}?default=avatar&at=${settled.value.replace(/\D/g, "")}` : "/body/" + (skin || "user/0");
  return html`<${Viewer} id=${skin + "-" + cape} read=${() => outfitOf(skin, cape)} name=${name} isSmall=${true}>
    <${Picture} path=${path} parameter="height" size=${size} width=${size / 2} alt=${skin ? t("players.figure", { name }) : ""} class=${skin ? "" : "ghost"} />
  </${Viewer}>`;
}

/**
 * A figure that tries something on.
 * @param {{player: Pick<Player, "tid_skin" | "tid_cape"> | undefined, slot: "skin" | "cape", tid: number, name: string}} props tid: what it tries on in place of what it wears
 */
export function Fitting({ player, slot, tid, name }) {
  const skin = slot === "skin" ? tid : player?.tid_skin ?? 0;
  const cape = slot === "cape" ? tid : player?.tid_cape ?? 0;
  return html`<${Viewer} id=${skin + "-" + cape} read=${() => outfitOf(skin, cape)} name=${name} isEager=${true} isSmall=${true} isBehind=${slot === "cape"}>
    ${tid > 0 && html`<${Picture} path=${(slot === "cape" ? "/preview/" : "/body/") + tid} parameter="height" size=${slot === "cape" ? 128 : 240} width=${slot === "cape" ? 128 : 120} alt="" />`}
  </${Viewer}>`;
}
