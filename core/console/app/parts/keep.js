// Textures of the library, and which of them are in the user's closet.
import { APIError, refreshUser, request, site } from "../session.js";
import { t } from "../words.js";
import { html, notify, sentence, undo } from "./basics.js";
import { Icon } from "./menu.js";

/**
 * A texture of the API. The size is in KiB; without a nickname the uploader's account is deleted. In the closet it may have another name.
 * @typedef {{tid: number, name: string, type: "steve" | "alex" | "cape", hash: string, size: number, uploader: number, uploader_nickname?: string, public: boolean, upload_at: string, likes: number, in_closet?: boolean, item_name?: string}} Texture
 */

/**
 * Returns a type of textures in words.
 * @param {string} type
 */
export function typeName(type) {
  if (type === "cape") return t("type.cape");
  return type === "alex" ? t("type.alex") : t("type.steve");
}

/** TIDs of textures of which a request is under way. */
const pending = new Set();

/**
 * Returns the sentence for when an item is out of the closet.
 * @param {string} name
 * @param {number} cost of an item
 */
export const removed = (name, cost = 0) => cost > 0 ? t("closet.removedCost", { name, n: cost }) : t("closet.removed", { name });

/**
 * Adds a texture to the closet, or removes it from there. The change is shown at once, and taken back with
 * a sentence if the server refuses it.
 * @param {Texture} texture
 * @param {(texture: Texture) => void} put shows the texture
 */
async function toggle(texture, put) {
  const { tid, likes } = texture;
  const name = texture.item_name ?? texture.name;
  const isKept = Boolean(texture.in_closet);
  if (pending.has(tid)) return;
  pending.add(tid);
  const next = { ...texture, in_closet: !isKept, likes: likes + (isKept ? -1 : 1) };
  put(next);
  try {
    if (isKept) await request("DELETE", "/api/closet/" + tid);
    else await request("POST", "/api/closet", { tid, name });
    const cost = (await site()).costs.closet_item;
    if (cost) refreshUser(); // the score is told on another page
    if (isKept) notify(removed(name, cost), "done", undo(() => toggle(next, put)));
  } catch (error) {
    // Another tab may have done the same.
    if (error instanceof APIError && error.code === (isKept ? missing : duplicate)) put({ ...texture, in_closet: !isKept });
    else {
      put(texture);
      notify(sentence(error), "failed");
    }
  } finally {
    pending.delete(tid);
  }
}

/**
 * Adds what is to be worn to the closet, unless it is there.
 * @param {number} tid
 * @param {string} name
 */
export async function keep(tid, name) {
  if ((await request("GET", "/api/textures/" + tid)).in_closet) return;
  await request("POST", "/api/closet", { tid, name });
  if ((await site()).costs.closet_item) refreshUser();
}

// Codes of the API.
const duplicate = 2;
const missing = 3;

/**
 * The button that adds a texture to the closet or removes it from there: a heart, or on the texture's page with words.
 * @param {{texture: Texture, put: (texture: Texture) => void, isHeart?: boolean}} props
 */
export function Keep({ texture, put, isHeart = false }) {
  const { name, in_closet: isKept } = texture;
  return html`<button type="button" class=${(isHeart ? "heart" : "keep") + (isKept ? " kept" : "")} aria-label=${isKept ? t("keep.removeName", { name }) : t("keep.addName", { name })}
    onClick=${() => toggle(texture, put)}><${Icon} name="heart" />${!isHeart && (isKept ? t("keep.remove") : t("keep.add"))}</button>`;
}
