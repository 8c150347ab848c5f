import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Field, html, notify, sentence, useSite } from "../parts/basics.js";
import { Figure } from "../parts/figure.js";
import { add, choose, classOf, examineNew, remove, sendAll, shown3D, uploads } from "../parts/upload.js";
import { Viewer } from "../parts/viewer.js";
import { href } from "../router.js";
import { request } from "../session.js";
import { bytes, number, oneOf, t } from "../words.js";

/** @typedef {import("../parts/upload.js").Upload} Upload */
/** @typedef {{pid: number, name: string}} Player */
/** @typedef {import("../session.js").Site} Site */

/** Files, each of which is shown before it is uploaded. */
export default function UploadPage() {
  const about = useSite();
  const players = useSignal(/** @type {Player[] | undefined} */ (undefined));
  const all = uploads.value;
  const ready = all.filter(({ state }) => state.value === "ready");
  const isDone = all.some(({ state }) => state.value === "done");

  useEffect(() => {
    examineNew();
  }, [all]);
  useEffect(() => {
    if (!isDone || players.value) return;
    request("GET", "/api/players").then((list) => { players.value = list; }, (error) => notify(sentence(error), "failed"));
  }, [isDone]);

  return html`<section>
    <div class="heading">
      <h1 tabindex="-1">${t("upload.title")}</h1>
      <div class="buttons">
        <label class="button">${t("upload.choose")}
          <input type="file" name="files" class="hidden" accept="image/png" multiple onChange=${(/** @type {any} */ event) => {
            add(event.currentTarget.files);
            event.currentTarget.value = ""; // the same file can be chosen again
          }} />
        </label>
        ${ready.length > 1 && html`<button type="button" class="main" onClick=${() => sendAll(ready)}>${t("upload.all", { n: ready.length })}</button>`}
      </div>
    </div>
    ${all.length === 0 && html`<p class="card note">${t("upload.none")}</p>`}
    ${about && html`<${Terms} about=${about} />`}
    <ul class="uploads">${all.map((upload) => html`<li key=${upload.id}><${Card} upload=${upload} players=${players.value} about=${about} /></li>`)}</ul>
  </section>`;
}

/** What uploads may earn, and how many there may be. @param {{about: Site}} props */
function Terms({ about: { quotas, rewards } }) {
  const terms = [
    rewards.upload > 0 && t("upload.reward", { n: rewards.upload }),
    quotas.textures > 0 && t("upload.quota", { n: quotas.textures }),
    quotas.texture_bytes > 0 && t("upload.quotaBytes", { most: bytes(quotas.texture_bytes) }),
  ].filter(Boolean);
  return terms.length > 0 && html`<p class="quiet">${terms.join(" ")}</p>`;
}

/**
 * Returns the sizes of a picture that are accepted, in words.
 * @param {Site["upload"]["sizes"]} sizes
 * @param {"skin" | "cape"} kind
 */
function sizesOf(sizes, kind) {
  const texts = sizes.filter(({ type }) => classOf(type) === kind).map(({ width, height }) => `${number(width)}\u00a0×\u00a0${number(height)}`);
  return oneOf(new Set(texts));
}

/**
 * Returns what is wrong with a file, as a sentence.
 * @param {import("../parts/upload.js").Flaw} flaw
 * @param {Site["upload"] | undefined} limits
 */
function sentenceOf(flaw, limits) {
  switch (flaw.what) {
    case "size":
      return t("upload.tooLarge", { most: bytes(flaw.most) });
    case "kind":
      return t("upload.noPNG");
    default: {
      const found = t("upload.pixels", { width: flaw.width, height: flaw.height });
      if (!limits) return found;
      const allowed = t("upload.sizes", { skin: sizesOf(limits.sizes, "skin"), cape: sizesOf(limits.sizes, "cape") });
      return [found, allowed, limits.max_scale > 1 ? t("upload.scale", { n: limits.max_scale }) : ""].join(" ");
    }
  }
}

/**
 * @param {number | undefined} price undefined as long as it is not known
 * @param {string} text
 */
function priced(price, text) {
  if (price === undefined) return text;
  return price === 0 ? t("upload.free", { text }) : t("upload.costs", { text, n: price });
}

/**
 * Removes a file from the page. The keyboard continues at its heading.
 * @param {Upload} upload
 */
function drop(upload) {
  remove(upload);
  /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus();
}

/** @param {{upload: Upload, players: Player[] | undefined, about: Site | undefined}} props */
function Card({ upload, players, about }) {
  const state = upload.state.value;
  const name = upload.name.value || upload.file.name;
  const sheet = upload.picture.value;
  const type = upload.type.value;
  const isOpen = {
    get value() { return shown3D.value === upload.id; },
    set value(isOpen) { shown3D.value = isOpen ? upload.id : 0; },
  };
  return html`<article class="card upload" aria-label=${name} aria-busy=${state === "new" || state === "sending" ? "true" : undefined}>
    ${state !== "wrong" && html`<div class="drawing">${sheet && html`<${Viewer} id=${String(upload.id)} read=${() => Promise.resolve(sheet)} type=${type} name=${name} isOpen=${isOpen} isSmall=${true}>
      <${Figure} sheet=${sheet} type=${type} label=${type === "cape" ? t("texture.capeView", { name }) : t("texture.skinView", { name })} /></${Viewer}>`}</div>`}
    <div class="choices">
      ${state === "done" ? html`<${Done} upload=${upload} players=${players} />` : html`<${Choices} upload=${upload} about=${about} />`}
    </div>
  </article>`;
}

/** What can be chosen before a file is uploaded. @param {{upload: Upload, about: Site | undefined}} props */
function Choices({ upload, about }) {
  const state = upload.state.value;
  const name = upload.name.value || upload.file.name;
  const type = upload.type.value;
  const price = upload.prices.value[classOf(type)];
  const id = String(upload.id);
  const isFixed = state === "waiting" || state === "sending";
  const types = { steve: t("type.steve"), alex: t("type.alex"), cape: t("type.cape") };
  const flaw = upload.flaw.value;
  const reason = flaw ? sentenceOf(flaw, about?.upload) : upload.failure.value;

  if (state === "wrong") {
    return html`<h2><bdi>${upload.file.name}</bdi></h2>
      <p class="wrong" role="alert">${reason}</p>
      <div class="buttons"><button type="button" aria-label=${t("upload.removeName", { name })} onClick=${() => drop(upload)}>${t("upload.remove")}</button></div>`;
  }
  return html`<${Field} name=${"name-" + id} label=${t("upload.name")} errors=${upload.errors.value.name} value=${upload.name.value} maxlength=${about?.texture_name.max} autocomplete="off"
      readonly=${isFixed} onInput=${(/** @type {any} */ event) => { upload.name.value = event.currentTarget.value; }} />
    ${upload.picture.value && html`<div class="options">
      <div class="field"><label for=${"type-" + id}>${t("upload.type")}</label>
        <select id=${"type-" + id} disabled=${isFixed || state === "new"} onChange=${(/** @type {any} */ event) => choose(upload, event.currentTarget.value)}>
          ${upload.types.value.map((value) => html`<option key=${value} value=${value} selected=${value === type}>${types[value]}</option>`)}
        </select></div>
      <div class="field"><label for=${"public-" + id}>${t("upload.who")}</label>
        <select id=${"public-" + id} disabled=${isFixed} onChange=${(/** @type {any} */ event) => { upload.isPublic.value = event.currentTarget.value === "public"; }}>
          <option value="public" selected=${upload.isPublic.value}>${priced(price?.public, t("upload.public"))}</option>
          <option value="private" selected=${!upload.isPublic.value}>${priced(price?.private, t("upload.private"))}</option>
        </select></div>
    </div>`}
    <p class="wrong" role="alert">${reason}</p>
    <p class="quiet" role="status">${upload.pause.value > 0
      ? t("upload.pause", { n: upload.pause.value })
      : state === "new" ? t("upload.examined") : state === "waiting" ? t("upload.waits") : ""}</p>
    ${state === "sending" && upload.pause.value === 0 && html`<progress max="1" value=${upload.progress.value} aria-label=${t("upload.progress", { name })}></progress>`}
    <div class="buttons">
      <button type="button" class="main" aria-disabled=${state === "ready" ? undefined : "true"} aria-label=${t("upload.sendName", { name })}
        onClick=${() => state === "ready" && sendAll([upload])}>${t("upload.send")}</button>
      ${state === "sending"
        ? html`<button type="button" aria-label=${t("upload.cancelName", { name })} onClick=${() => drop(upload)}>${t("dialog.cancel")}</button>`
        : html`<button type="button" aria-label=${t("upload.removeName", { name })} onClick=${() => drop(upload)}>${t("upload.remove")}</button>`}
    </div>`;
}

/** What can be done with a texture that is there. @param {{upload: Upload, players: Player[] | undefined}} props */
function Done({ upload, players }) {
  const chosen = useSignal("");
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // The button that was pressed is gone.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, []);
  const name = upload.name.value || upload.file.name;
  const { tid, isNew } = upload.texture.value ?? { tid: 0, isNew: false };
  const slot = classOf(upload.type.value);
  const player = players?.find(({ pid }) => String(pid) === chosen.value) ?? players?.[0];

  async function wear() {
    if (!player) return;
    try {
      await request("PUT", `/api/players/${player.pid}/textures`, { [slot]: tid });
      notify(t("wear.done", { player: player.name, name }));
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  return html`<h2 ref=${heading} tabindex="-1"><bdi>${name}</bdi></h2>
    <p role="status">${isNew ? t("upload.done") : t("upload.there")}</p>
    ${player && html`<div class="buttons wearing">
      ${players && players.length > 1 && html`<select aria-label=${t("upload.wearer", { name })} onChange=${(/** @type {any} */ event) => { chosen.value = event.currentTarget.value; }}>
        ${players.map((one) => html`<option key=${one.pid} value=${one.pid} selected=${one === player}>${one.name}</option>`)}
      </select>`}
      <button type="button" aria-label=${t("upload.wearName", { player: player.name, name })} onClick=${wear}>${t("upload.wear", { player: player.name })}</button>
    </div>`}
    ${players?.length === 0 && html`<p class="quiet">${t("upload.noPlayers")} <a href=${href("/players")}>${t("players.add")}</a></p>`}
    <div class="buttons">
      <a class="button" href=${href("/texture?tid=" + tid)} aria-label=${t("upload.openName", { name })}>${t("upload.open")}</a>
      <button type="button" aria-label=${t("upload.clearName", { name })} onClick=${() => drop(upload)}>${t("upload.clear")}</button>
    </div>`;
}
