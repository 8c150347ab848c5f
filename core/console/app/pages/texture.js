import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { html, Form, notify, Picture, pictures, sentence, useSubject } from "../parts/basics.js";
import { Copy } from "../parts/copy.js";
import { Confirm, Dialog } from "../parts/dialog.js";
import { Keep, typeName } from "../parts/keep.js";
import { parameter } from "../parts/list.js";
import { Viewer } from "../parts/viewer.js";
import { Wear } from "../parts/wear.js";
import { change, href, navigate, signInPath } from "../router.js";
import { request, site, user } from "../session.js";
import { number, size, t, time } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture} Texture */

/** A texture: its pictures, its visibility, and what the user may do with it. */
export default function TexturePage() {
  const tid = parameter("tid");
  return html`<${Shown} key=${tid} tid=${tid} />`;
}

/** @param {{tid: string}} props */
function Shown({ tid }) {
  const shown = useSignal(/** @type {Texture | undefined} */ (undefined));
  const failure = useSignal("");
  const about = useSignal(/** @type {import("../session.js").Site | undefined} */ (undefined));
  const redrawn = useSignal("");
  const asked = useSignal(/** @type {"rename" | "visibility" | "delete" | "report" | null} */ (null));

  useEffect(() => {
    const leaving = new AbortController();
    Promise.all([request("GET", "/api/textures/" + encodeURIComponent(tid), undefined, leaving.signal), site()]).then(
      ([texture, said]) => {
        shown.value = texture;
        about.value = said;
      },
      (error) => { if (!leaving.signal.aborted) failure.value = sentence(error); },
    );
    return () => leaving.abort();
  }, []);

  const { value: texture } = shown;
  const account = user.value;
  useSubject(texture?.name ?? "");
  if (!texture || !about.value) {
    return html`<section><h1 tabindex="-1">${t("texture.title")}</h1><p role="alert">${failure.value}</p></section>`;
  }
  const { name } = texture;
  const isOwn = texture.uploader === account?.uid;
  const mayChange = isOwn || (account?.permission ?? 0) > 0;
  const path = (isOwn ? "/api/textures/" : "/api/admin/textures/") + texture.tid;
  const put = (/** @type {Texture} */ next) => { shown.value = next; };
  const ask = (/** @type {typeof asked.value} */ action) => () => { asked.value = action; };
  const close = () => { asked.value = null; };

  /**
   * Shows a change at once, and takes it back with a sentence if the server refuses it.
   * @param {Partial<Texture>} patch
   */
  async function edit(patch) {
    const before = /** @type {Texture} */ (shown.value);
    // A texture that becomes private leaves the closets of all but its uploader.
    const next = { ...before, ...patch, in_closet: before.in_closet && (isOwn || patch.public !== false) };
    close();
    put(next);
    try {
      const { data } = await request("PUT", path, patch);
      put({ ...next, ...data });
      if (patch.type) redrawn.value = "?at=" + Date.now(); // browsers and caches keep the former picture for a day
    } catch (error) {
      put(before);
      notify(sentence(error), "failed");
    }
  }

  async function remove() {
    close();
    try {
      await request("DELETE", path);
      navigate("/library", { replace: true });
      notify(t("players.deleted", { name }));
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  const other = texture.type === "alex" ? "steve" : "alex";
  const file = `${pictures}/textures/${texture.hash}`;
  return html`<section>
    <h1 tabindex="-1"><bdi>${name}</bdi></h1>
    <div class="sides">
      <div>
        <${Viewer} hash=${texture.hash} type=${texture.type} name=${name}>
          <${Picture} path=${"/preview/" + texture.tid + redrawn.value} parameter="height" size=${320} width=${texture.type === "cape" ? 440 : 296}
            alt=${texture.type === "cape" ? t("texture.capeView", { name }) : t("texture.skinView", { name })} />
        </${Viewer}>
      </div>
      <div>
        <div class="buttons actions">
          ${account
            ? html`<${Keep} texture=${texture} put=${put} main=${true} />
              <button type="button" aria-label=${t("closet.wearName", { name })} onClick=${() => change({ wear: "1" })}>${t("closet.wear")}</button>`
            : html`<a class="button" href=${href(signInPath())}>${t("texture.signIn")}</a>`}
          <a class="button" href=${file} download=${name + ".png"}>${t("texture.download")}</a>
          ${account && !isOwn && html`<button type="button" onClick=${ask("report")}>${t("texture.report")}</button>`}
        </div>
        ${account && !texture.in_closet && about.value.costs.closet_item > 0 && html`<p class="quiet">${t("library.cost", { n: about.value.costs.closet_item })}</p>`}
        <dl class="facts">
          <dt>${t("texture.type")}</dt><dd>${typeName(texture.type)}</dd>
          <dt>${t("texture.uploader")}</dt><dd>${texture.uploader_nickname
            ? html`<a href=${href("/library?uploader=" + texture.uploader)}><bdi>${texture.uploader_nickname}</bdi></a>`
            : t("library.deletedUploader")}</dd>
          <dt>${t("texture.time")}</dt><dd>${time(texture.upload_at)}</dd>
          <dt>${t("texture.likes")}</dt><dd>${number(texture.likes)}</dd>
          <dt>${t("texture.size")}</dt><dd>${size(texture.size)}</dd>
          <dt>${t("texture.visibility")}</dt><dd>${texture.public ? t("texture.isPublic") : isOwn ? t("texture.isPrivate") : t("texture.isPrivateOfOther")}</dd>
          <dt>${t("texture.hash")}</dt><dd><${Copy} text=${texture.hash} label=${t("texture.copyHash")} /></dd>
        </dl>
        <h2>${t("texture.sheet")}</h2>
        <div class="picture sheet"><img src=${file} width="256" height=${texture.type === "cape" ? 128 : 256} alt=${t("texture.sheetOf", { name })} loading="lazy" /></div>
        ${mayChange && html`<h2>${t("texture.change")}</h2>
          <div class="buttons">
            <button type="button" onClick=${ask("rename")}>${t("players.rename")}</button>
            ${texture.type !== "cape" && html`<button type="button" onClick=${() => edit({ type: other })}>${other === "alex" ? t("texture.makeSlim") : t("texture.makeClassic")}</button>`}
            <button type="button" onClick=${ask("visibility")}>${texture.public ? t("texture.makePrivate") : t("texture.makePublic")}</button>
            <button type="button" class="danger" onClick=${ask("delete")}>${t("players.delete")}</button>
          </div>`}
      </div>
    </div>
    ${account && parameter("wear") && html`<${Wear} tid=${texture.tid} type=${texture.type} name=${name} onClose=${() => change({ wear: "" })} />`}
    ${asked.value === "rename" && html`<${Dialog} title=${t("players.renameTitle", { name })} onClose=${close}>
      <${Form} action=${t("players.rename")} fields=${[{ name: "name", label: t("texture.name"), autocomplete: "off", required: true, maxlength: 64, defaultValue: name }]}
        onSubmit=${async (/** @type {{name: string}} */ values) => {
          const { data } = await request("PUT", path, values);
          put({ ...texture, ...data });
          close();
        }} /></${Dialog}>`}
    ${asked.value === "visibility" && html`<${Confirm} title=${texture.public ? t("texture.makePrivateTitle", { name }) : t("texture.makePublicTitle", { name })}
      text=${[texture.public ? t("texture.makePrivateText") : t("texture.makePublicText"), isOwn ? priceOf(texture, about.value) : ""].join(" ")}
      action=${texture.public ? t("texture.makePrivate") : t("texture.makePublic")} onClose=${close} onConfirm=${() => edit({ public: !texture.public })} />`}
    ${asked.value === "delete" && html`<${Confirm} title=${t("players.deleteTitle", { name })} text=${t("texture.deleteText")}
      action=${t("players.delete")} onClose=${close} onConfirm=${remove} />`}
    ${asked.value === "report" && html`<${Dialog} title=${t("texture.reportTitle", { name })} onClose=${close}>
      <${Form} action=${t("texture.send")} fields=${[{ name: "reason", label: t("texture.reason"), hint: t("texture.reasonHint"), rows: 4, required: true, maxlength: about.value.report_reason.max }]}
        onSubmit=${async (/** @type {{reason: string}} */ values) => {
          await request("POST", "/api/reports", { tid: texture.tid, reason: values.reason });
          close();
          notify(t("texture.reported"));
        }} /></${Dialog}>`}
  </section>`;
}

/**
 * Returns what the other visibility costs the uploader or pays back, at most: what was paid for the
 * texture is not known here.
 * @param {Texture} texture
 * @param {import("../session.js").Site} about
 */
function priceOf({ size: kibibytes, public: isPublic }, { costs }) {
  const difference = kibibytes * (costs.private_texture_kib - costs.texture_kib) * (isPublic ? 1 : -1);
  if (difference > 0) return t("texture.costs", { n: difference });
  return difference < 0 ? t("texture.paysBack", { n: -difference }) : "";
}
