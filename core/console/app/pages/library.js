import { html, Picture, useSite } from "../parts/basics.js";
import { Keep } from "../parts/keep.js";
import { editing, Filter, Pager, parameter, Results, Search, useList } from "../parts/list.js";
import { changedPath, href } from "../router.js";
import { user } from "../session.js";
import { number, t } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture} Texture */

const perPage = 24;

/** The textures of the site: the public ones and the user's own. */
export default function Library() {
  const uploader = parameter("uploader");
  const library = useList("/api/textures", { type: parameter("type"), uploader, q: parameter("q"), sort: parameter("sort"), perPage });
  const cost = useSite()?.costs.closet_item ?? 0;
  const { put } = editing(/** @type {{list: import("../parts/list.js").List<Texture>, reload: () => void}} */ (library), (texture) => texture.tid);

  const { list } = library;
  /** @type {Texture[]} */
  const textures = list.value?.data ?? [];
  const account = user.value;
  const own = String(account?.uid);
  const nickname = uploader === own ? account?.nickname : textures.find((texture) => String(texture.uploader) === uploader)?.uploader_nickname;
  const isFiltered = ["type", "uploader", "q"].some(parameter);

  return html`<section>
    <h1 tabindex="-1">${t("library.title")}</h1>
    <div class="search">
      <${Search} label=${t("library.search")} isIndexed=${true} />
      <${Filter} label=${t("library.type")} name="type" values=${{ "": t("list.all"), skin: t("library.skin"), steve: t("type.steve"), alex: t("type.alex"), cape: t("type.cape") }} />
      <${Filter} label=${t("library.sort")} name="sort" values=${{ "": t("library.newest"), likes: t("library.likes") }} />
      ${uploader
        ? html`<a class="button" href=${href(changedPath({ uploader: "", page: "" }))} aria-label=${t("library.everyUploader", { name: nickname ?? uploader })}>
            <bdi>${nickname ?? uploader}</bdi><span aria-hidden="true">×</span></a>`
        : account && html`<a class="button" href=${href(changedPath({ uploader: own, page: "" }))}>${t("library.mine")}</a>`}
    </div>
    <${Results} ...${library} none=${uploader === own && !parameter("q") && !parameter("type") ? t("library.noneOfMine") : isFiltered ? t("library.nothing") : t("library.none")} />
    ${list.value?.total === 0 && html`<p class="links">
      <a href=${href("/upload")}>${t("closet.upload")}</a>
      ${isFiltered && html`<a href=${href("/library")}>${t("library.showAll")}</a>`}
    </p>`}
    ${account && cost > 0 && html`<p class="quiet">${t("library.cost", { n: cost })}</p>`}
    <ul class="items">${textures.map((texture) => html`<li key=${texture.tid} class="card item">
      <a class="picture" href=${href("/texture?tid=" + texture.tid)} tabindex="-1" aria-hidden="true"><${Picture} path=${"/preview/" + texture.tid} parameter="height" size=${128} width=${128} alt="" /></a>
      <h2><a href=${href("/texture?tid=" + texture.tid)}><bdi>${texture.name}</bdi></a></h2>
      <p class="quiet">
        ${texture.uploader_nickname
          ? html`<a href=${href(changedPath({ uploader: String(texture.uploader), page: "" }))} aria-label=${t("library.onlyBy", { name: texture.uploader_nickname })}><bdi>${texture.uploader_nickname}</bdi></a>`
          : t("library.deletedUploader")}
        <span class="likes"><span aria-hidden="true">♥ ${number(texture.likes)}</span><span class="hidden">${t("library.likeCount", { n: texture.likes })}</span></span>
        ${!texture.public && html`<span class="badge">${t("texture.private")}</span>`}
      </p>
      ${account && html`<div class="buttons"><${Keep} texture=${texture} put=${put} /></div>`}
    </li>`)}</ul>
    <${Pager} label=${t("library.pages")} list=${list} />
  </section>`;
}
