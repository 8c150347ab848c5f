import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { html, notify, sentence, useSite } from "../parts/basics.js";
import { Card } from "../parts/card.js";
import { Keep } from "../parts/keep.js";
import { Chips, editing, Filter, indexedText, Pager, parameter, Results, Search, useList } from "../parts/list.js";
import { Icon } from "../parts/menu.js";
import { change, changedPath, closeDialog, href } from "../router.js";
import { user } from "../session.js";
import { number, t } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture} Texture */

const perPage = 24;

/** The dialog in which a texture is tried on: a fifth of what the page takes, so it is loaded when it is asked for. */
const wear = signal(/** @type {{Dialog: any} | null} */ (null));

/** The textures of the site: the public ones and the user's own. */
export default function Library() {
  const uploader = parameter("uploader");
  const q = indexedText();
  const library = useList("/api/textures", { type: parameter("type"), uploader, q, sort: parameter("sort"), perPage });
  const cost = useSite()?.costs.closet_item ?? 0;
  const { put } = editing(/** @type {{list: import("../parts/list.js").List<Texture>, reload: () => void}} */ (library), (texture) => texture.tid);

  const { list } = library;
  /** @type {Texture[]} */
  const textures = list.value?.data ?? [];
  const account = user.value;
  const own = String(account?.uid);
  const nickname = uploader === own ? account?.nickname : textures.find((texture) => String(texture.uploader) === uploader)?.uploader_nickname;
  const isFiltered = Boolean(q || parameter("type") || uploader);

  const worn = textures.find((texture) => String(texture.tid) === parameter("wear"));
  useEffect(() => {
    if (worn && !wear.value) import("../parts/wear.js").then(({ Wear: Dialog }) => { wear.value = { Dialog }; }, (error) => notify(sentence(error), "failed"));
  }, [Boolean(worn)]);
  return html`<section>
    <h1 tabindex="-1">${t("library.title")}</h1>
    <div class="search"><${Search} label=${t("library.search")} isIndexed=${true} /></div>
    <${Chips} label=${t("library.type")} name="type" values=${{ "": t("list.all"), skin: t("library.skin"), alex: t("library.slim"), cape: t("library.cape") }}>
      ${uploader
        ? html`<a href=${href(changedPath({ uploader: "", page: "" }))} aria-current="true" aria-label=${t("library.everyUploader", { name: nickname ?? uploader })}>
            <bdi>${nickname ?? uploader}</bdi><${Icon} name="close" /></a>`
        : account && html`<a href=${href(changedPath({ uploader: own, page: "" }))}>${t("library.mine")}</a>`}
    </${Chips}>
    <div class="found">
      <${Results} ...${library} none=${uploader === own && !q && !parameter("type") ? t("library.noneOfMine") : isFiltered ? t("library.nothing") : t("library.none")}>
        ${isFiltered && html`<a class="button main" href=${href("/library")}>${t("library.showAll")}</a>`}
        <a class=${"button" + (isFiltered ? "" : " main")} href=${href("/upload")}>${t("closet.upload")}</a>
      </${Results}>
      ${list.value?.total !== 0 && html`<${Filter} label=${t("list.sort")} name="sort" values=${{ "": t("list.newest"), likes: t("library.likes") }} />`}
    </div>
    ${account && cost > 0 && html`<p class="quiet">${t("library.cost", { n: cost })}</p>`}
    <ul class="items">${textures.map((texture) => html`<${Card} key=${texture.tid} ...${texture} corner=${html`
      ${!texture.public && html`<span class="badge">${t("texture.private")}</span>`}
      ${account && html`<${Keep} texture=${texture} put=${put} isHeart=${true} />`}`}>
      <p class="quiet">
        ${texture.uploader_nickname
          ? html`<a href=${href(changedPath({ uploader: String(texture.uploader), page: "" }))} aria-label=${t("library.onlyBy", { name: texture.uploader_nickname })}><bdi>${texture.uploader_nickname}</bdi></a>`
          : t("library.deletedUploader")}
        <span class="likes"><span aria-hidden="true">♥ ${number(texture.likes)}</span><span class="hidden">${t("library.likeCount", { n: texture.likes })}</span></span>
      </p>
      ${account && html`<button type="button" class="tonal" aria-label=${t("closet.wearName", { name: texture.name })} onClick=${() => change({ wear: String(texture.tid) }, { isDialog: true })}>${t("closet.wear")}</button>`}
    </${Card}>`)}</ul>
    <${Pager} label=${t("library.pages")} list=${list} />
    ${account && worn && wear.value && html`<${wear.value.Dialog} tid=${worn.tid} type=${worn.type} name=${worn.name} onClose=${() => closeDialog("wear")}
      onKeep=${worn.in_closet ? undefined : () => put({ ...worn, in_closet: true, likes: worn.likes + 1 })} />`}
  </section>`;
}
