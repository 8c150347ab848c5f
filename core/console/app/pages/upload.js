import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Field, html, notify, sentence, useSite } from "../parts/basics.js";
import { Figure } from "../parts/figure.js";
import { keep } from "../parts/keep.js";
import { Icon } from "../parts/menu.js";
import { add, choose, classOf, examineNew, flawSentence, remove, sendAll, sizesSentence, uploads } from "../parts/upload.js";
import { Viewer } from "../parts/viewer.js";
import { href } from "../router.js";
import { request } from "../session.js";
import { bytes, t } from "../words.js";

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

  const chooser = (/** @type {string} */ kind) => html`<label class=${"button " + kind}>${t("upload.choose")}
    <input type="file" name="files" class="hidden" accept="image/png" multiple onChange=${(/** @type {any} */ event) => {
      add(event.currentTarget.files);
      event.currentTarget.value = ""; // the same file can be chosen again
    }} />
  </label>`;
  return html`<section>
    <div class="heading">
      <h1 tabindex="-1">${t("upload.title")}</h1>
      <div class="buttons">
        ${all.length > 0 && chooser("")}
        ${ready.length > 1 && html`<button type="button" class="main" onClick=${() => sendAll(ready)}>${t("upload.all", { n: ready.length })}</button>`}
      </div>
    </div>
    ${all.length === 0 && html`<div class="zone"><${Icon} name="upload" /><p>${t("upload.none")}</p>${chooser("main")}
      <p class="hint">${about && [sizesSentence(about.upload), about.upload.max_bytes > 0 && t("upload.most", { most: bytes(about.upload.max_bytes) })].filter(Boolean).join(" ")}</p></div>`}
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
  return html`<article class="card upload" aria-label=${name} aria-busy=${state === "new" || state === "sending" ? "true" : undefined}>
    ${state !== "wrong" && html`<div class="drawing">${sheet && html`<${Viewer} id=${upload.id + type} read=${() => Promise.resolve([{ image: sheet, type }])} name=${name} viewer=${"upload-" + upload.id} isSmall=${true}>
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
  const types = { steve: t("upload.classic"), alex: t("viewer.slim"), cape: t("type.cape") };
  const flaw = upload.flaw.value;
  const reason = flaw && about ? flawSentence(flaw, about.upload) : upload.failure.value;

  if (state === "wrong") {
    return html`<h2><bdi>${upload.file.name}</bdi></h2>
      <p class="wrong" role="alert">${reason}</p>
      <div class="buttons"><button type="button" aria-label=${t("upload.cancelName", { name })} onClick=${() => drop(upload)}>${t("dialog.cancel")}</button></div>`;
  }
  return html`<${Field} name=${"name-" + id} label=${t("upload.name")} errors=${upload.errors.value.name} value=${upload.name.value} maxlength=${about?.texture_name.max} autocomplete="off"
      readonly=${isFixed} onInput=${(/** @type {any} */ event) => { upload.name.value = event.currentTarget.value; }} />
    ${upload.picture.value && html`<div class="options">
      <fieldset class="models" disabled=${isFixed || state === "new"}><legend>${t("upload.type")}</legend>
        ${upload.types.value.map((value) => html`<label key=${value}><${Figure} sheet=${upload.picture.value} type=${value} label="" />
          <span><input type="radio" name=${"type-" + id} value=${value} checked=${value === type} onChange=${() => choose(upload, value)} />${types[value]}</span></label>`)}
      </fieldset>
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
      <button type="button" aria-label=${t("upload.cancelName", { name })} onClick=${() => drop(upload)}>${t("dialog.cancel")}</button>
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
      if (!isNew) await keep(tid, name);
      await request("PUT", `/api/players/${player.pid}/textures`, { [slot]: tid });
      notify(t("wear.done", { player: player.name, name }));
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  return html`<h2 ref=${heading} tabindex="-1"><bdi>${name}</bdi></h2>
    <p role="status">${t(!isNew ? "upload.there" : upload.isPublic.value ? "upload.donePublic" : "upload.donePrivate")}</p>
    ${player && html`<div class="buttons wearing">
      ${players && players.length > 1 && html`<select aria-label=${t("upload.wearer", { name })} onChange=${(/** @type {any} */ event) => { chosen.value = event.currentTarget.value; }}>
        ${players.map((one) => html`<option key=${one.pid} value=${one.pid} selected=${one === player}>${one.name}</option>`)}
      </select>`}
      <button type="button" class="main" aria-label=${t("upload.wearName", { player: player.name, name })} onClick=${wear}>${t("upload.wear", { player: player.name })}</button>
    </div>`}
    ${players?.length === 0 && html`<p class="quiet">${t("upload.noPlayers")} <a href=${href("/players")}>${t("players.add")}</a></p>`}
    <div class="buttons">
      <a class="button" href=${href("/texture?tid=" + tid)} aria-label=${t("upload.openName", { name })}>${t("upload.open")}</a>
      <button type="button" aria-label=${t("upload.closeName", { name })} onClick=${() => drop(upload)}>${t("upload.close")}</button>
    </div>`;
}
