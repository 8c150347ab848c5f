import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { navigate, place } from "../router.js";
import { request } from "../session.js";
import { number, t } from "../words.js";
import { html, Picture, sentence } from "./basics.js";
import { Dialog } from "./dialog.js";

/** @typedef {{tid: number, pivot: {item_name: string}}} Item */

const perPage = 12;

/**
 * A choice of what to wear, from the closet or from a file. Search and page are in the URL.
 * @param {{title: string, slot: "skin" | "cape", worn: number, onChoose: (tid: number) => void, onFile: (file: File) => void, onClose: () => void}} props
 */
export function Wardrobe({ title, slot, worn, onChoose, onFile, onClose }) {
  const list = useSignal(/** @type {{data: Item[], total: number, last_page: number} | undefined} */ (undefined));
  const failure = useSignal("");
  const { query } = place.value;
  const search = query.get("q") ?? "";
  const page = Math.max(1, Number(query.get("page")) || 1);

  useEffect(() => {
    const leaving = new AbortController();
    const asked = new URLSearchParams({ category: slot, page: String(page), perPage: String(perPage), q: search });
    request("GET", "/api/closet?" + asked, undefined, leaving.signal).then(
      (answer) => { list.value = answer; failure.value = ""; },
      (error) => { if (!leaving.signal.aborted) failure.value = sentence(error); },
    );
    return () => leaving.abort();
  }, [slot, search, page]);

  /** @param {Record<string, string>} changed */
  function show(changed) {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changed)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    navigate("/players?" + next, { replace: true });
  }

  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="search">
      <input type="search" aria-label=${t("wardrobe.search")} placeholder=${t("wardrobe.search")} defaultValue=${search}
        onInput=${(/** @type {any} */ event) => show({ q: event.currentTarget.value, page: "" })} />
      <label class="button">${t("wardrobe.file")}
        <input type="file" class="hidden" accept="image/png" onChange=${(/** @type {any} */ event) => event.currentTarget.files[0] && onFile(event.currentTarget.files[0])} />
      </label>
    </div>
    <p class="wrong" role="alert">${failure.value}</p>
    ${list.value?.total === 0 && html`<p class="quiet">${search ? t("wardrobe.nothing") : t(slot === "skin" ? "wardrobe.noSkins" : "wardrobe.noCapes")}</p>`}
    <ul class="grid">${list.value?.data.map((item) => html`<li key=${item.tid}>
      <button type="button" class="tile" aria-pressed=${item.tid === worn ? "true" : "false"} onClick=${() => onChoose(item.tid)}>
        <${Picture} path=${"/preview/" + item.tid} parameter="height" size=${96} width=${96} alt="" />
        <bdi>${item.pivot.item_name}</bdi>
      </button></li>`)}</ul>
    ${list.value && list.value.last_page > 1 && html`<nav class="pager" aria-label=${t("wardrobe.pages")}>
      <button type="button" disabled=${page <= 1} onClick=${() => show({ page: String(page - 1) })}>${t("wardrobe.previous")}</button>
      <span>${t("wardrobe.page", { page: number(page), last: number(list.value.last_page) })}</span>
      <button type="button" disabled=${page >= list.value.last_page} onClick=${() => show({ page: String(page + 1) })}>${t("wardrobe.next")}</button>
    </nav>`}
  </${Dialog}>`;
}
