import { t } from "../words.js";
import { html, Picture } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Pager, parameter, Results, Search, useList } from "./list.js";

/** @typedef {{tid: number, pivot: {item_name: string}}} Item */

const perPage = 12;

/**
 * A choice of what to wear, from the closet or from a file. Search and page are in the URL.
 * @param {{title: string, slot: "skin" | "cape", worn: number, onChoose: (tid: number) => void, onFile: (file: File) => void, onClose: () => void}} props
 */
export function Wardrobe({ title, slot, worn, onChoose, onFile, onClose }) {
  const search = parameter("q");
  const closet = useList("/api/closet", { category: slot, perPage, q: search });
  const none = search ? t("wardrobe.nothing") : t(slot === "skin" ? "wardrobe.noSkins" : "wardrobe.noCapes");
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="search">
      <${Search} label=${t("wardrobe.search")} />
      <label class="button">${t("wardrobe.file")}
        <input type="file" class="hidden" accept="image/png" onChange=${(/** @type {any} */ event) => event.currentTarget.files[0] && onFile(event.currentTarget.files[0])} />
      </label>
    </div>
    <${Results} ...${closet} none=${none} />
    <ul class="grid">${closet.list.value?.data.map((/** @type {Item} */ item) => html`<li key=${item.tid}>
      <button type="button" class="tile" aria-pressed=${item.tid === worn ? "true" : "false"} onClick=${() => onChoose(item.tid)}>
        <${Picture} path=${"/preview/" + item.tid} parameter="height" size=${96} width=${96} alt="" />
        <bdi>${item.pivot.item_name}</bdi>
      </button></li>`)}</ul>
    <${Pager} label=${t("wardrobe.pages")} list=${closet.list} replace=${true} />
  </${Dialog}>`;
}
