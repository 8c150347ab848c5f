import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { change } from "../router.js";
import { t } from "../words.js";
import { html, Picture, useSite } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Fitting } from "./dressed.js";
import { Chips, indexedText, Pager, parameter, Results, Search, useList } from "./list.js";

/** @typedef {{tid: number, name: string, pivot?: {item_name: string}}} Item */

const perPage = 12;

/**
 * A choice of what a player wears, from the closet, the library or a file. It is tried on first. Where, search and page
 * are in the URL.
 * @param {{title: string, player: import("./dressed.js").Player, slot: "skin" | "cape", onChoose: (tid: number, name: string) => void, onFile: (file: File) => void, onClose: () => void}} props
 */
export function Wardrobe({ title, player, slot, onChoose, onFile, onClose }) {
  const isLibrary = parameter("from") === "library";
  const search = isLibrary ? indexedText() : parameter("q");
  const list = useList(isLibrary ? "/api/textures" : "/api/closet", isLibrary ? { type: slot, perPage, q: search } : { category: slot, perPage, q: search });
  const cost = useSite()?.costs.closet_item ?? 0;
  const worn = slot === "skin" ? player.tid_skin : player.tid_cape;
  const tried = useSignal(worn);
  const name = useRef(""); // of what was tried on from the library
  const none = search ? t(isLibrary ? "library.nothing" : "wardrobe.nothing") : t(slot === "skin" ? "wardrobe.noSkins" : "wardrobe.noCapes");
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="fitting" onDragOver=${(/** @type {DragEvent} */ event) => event.preventDefault()} onDrop=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file && !event.dataTransfer?.types.includes("text/uri-list")) onFile(file); // not a picture of the page
    }}>
      <div>
        <${Fitting} player=${player} slot=${slot} tid=${tried.value} name=${player.name} />
        <button type="button" class="main" aria-disabled=${tried.value === worn ? "true" : undefined} onClick=${() => tried.value !== worn && onChoose(tried.value, name.current)}>${t("closet.wear")}</button>
        <label class="button">${t("wardrobe.file")}
          <input type="file" class="hidden" accept="image/png" onChange=${(/** @type {any} */ event) => event.currentTarget.files[0] && onFile(event.currentTarget.files[0])} />
        </label>
      </div>
      <div>
        <${Chips} label=${t("wardrobe.from")} name="from" values=${{ "": t("closet.title"), library: t("library.title") }} replace=${true} />
        <div class="search"><${Search} key=${isLibrary} label=${t(isLibrary ? "library.search" : "wardrobe.search")} isIndexed=${isLibrary} /></div>
        ${isLibrary && cost > 0 && html`<p class="quiet">${t("library.cost", { n: cost })}</p>`}
        <${Results} ...${list} none=${none}>${!isLibrary && !search && html`<button type="button" class="main" onClick=${() => change({ from: "library" }, { replace: true })}>${t("closet.library")}</button>`}</${Results}>
        <ul class="grid">${list.list.value?.data.map((/** @type {Item} */ item) => html`<li key=${item.tid}>
          <button type="button" class="tile" aria-pressed=${item.tid === tried.value ? "true" : "false"} onClick=${() => { tried.value = item.tid; name.current = isLibrary ? item.name : ""; }}>
            <${Picture} path=${(slot === "skin" ? "/body/" : "/preview/") + item.tid} parameter="height" size=${slot === "skin" ? 96 : 64} width=${slot === "skin" ? 48 : 64} alt="" />
            <bdi>${item.pivot?.item_name ?? item.name}</bdi>
          </button></li>`)}</ul>
        <${Pager} label=${t("wardrobe.pages")} list=${list.list} replace=${true} />
      </div>
    </div>
  </${Dialog}>`;
}
