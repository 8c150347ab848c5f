import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { attempt, html, Form, isLively, notify, Picture, pictures, Reading, sentence, Sitting, useRead, useSite, useSubject } from "../parts/basics.js";
import { Copy } from "../parts/copy.js";
import { Confirm, Dialog } from "../parts/dialog.js";
import { Keep, typeName } from "../parts/keep.js";
import { parameter } from "../parts/list.js";
import { pieceOf, Viewer } from "../parts/viewer.js";
import { Wear } from "../parts/wear.js";
import { ask, asked, change, closeDialog, href, navigate, signInPath } from "../router.js";
import { refreshUser, request, site, user } from "../session.js";
import { number, size, t, time } from "../words.js";

/** @typedef {import("../parts/keep.js").Texture} Texture */

/** A texture: its pictures, its visibility, and what the user may do with it. */
export default function TexturePage() {
  const tid = parameter("tid");
  return html`<${Shown} key=${tid} tid=${tid} />`;
}

/** @param {{tid: string}} props */
function Shown({ tid }) {
  const about = useSite();
  const read = useRead(async (signal) => {
    const [texture] = await Promise.all([request("GET", "/api/textures/" + encodeURIComponent(tid), undefined, signal), site()]);
    return /** @type {Texture} */ (texture);
  });
  const shown = read.value;
  const redrawn = useSignal("");
  const isSquare = useSignal(false); // once the file is loaded

  const { value: texture } = shown;
  const account = user.value;
  useSubject(texture?.name ?? "");
  if (!texture || !about) {
    return html`<section><h1 tabindex="-1">${t("texture.title")}</h1><${Reading} ...${read} />
      ${read.failure.value && html`<${Sitting} /><p class="buttons ways"><a class="button main" href=${href("/library")}>${t("closet.library")}</a></p>`}</section>`;
  }
  const { name } = texture;
  const isOwn = texture.uploader === account?.uid;
  const mayChange = isOwn || (account?.permission ?? 0) > 0;
  const path = (isOwn ? "/api/textures/" : "/api/admin/textures/") + texture.tid;
  const put = (/** @type {Texture} */ next) => { shown.value = next; };
  const { action, close } = asked();

  /** @param {Partial<Texture>} patch */
  async function edit(patch) {
    const before = /** @type {Texture} */ (shown.value);
    // A texture that becomes private leaves the closets of all but its uploader.
    const next = { ...before, ...patch, in_closet: before.in_closet && (isOwn || patch.public !== false) };
    close();
    if (!await attempt(shown, next, () => request("PUT", path, patch), ({ data }) => ({ ...next, ...data }))) return;
    if (patch.type) redrawn.value = "?at=" + Date.now(); // browsers and caches keep the former picture for a day
    else refreshUser(); // the visibility has its price
  }

  async function remove(refuse = false) {
    await close();
    try {
      await request("DELETE", path + (refuse ? "?refuse=true" : ""));
      navigate("/library", { replace: true });
      notify(t("action.deleted", { name }));
      refreshUser(); // the score may have been paid back
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  /** Saves the file under its name, which a link to another origin cannot. */
  async function download() {
    try {
      const response = await fetch(file);
      if (!response.ok) throw new Error();
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await response.blob()), download: name + ".png" });
      link.click();
      setTimeout(URL.revokeObjectURL, 60_000, link.href); // the browser may still be reading it
    } catch {
      notify(t("error.offline"), "failed");
    }
  }

  const other = texture.type === "alex" ? "steve" : "alex";
  const file = `${pictures}/textures/${texture.hash}`;
  return html`<section>
    <h1 tabindex="-1"><bdi>${name}</bdi></h1>
    <div class="sides">
      <div>
        <${Viewer} id=${texture.hash + texture.type} read=${async () => [await pieceOf(texture)]} name=${name} isEager=${matchMedia("(min-width: 64rem)").matches && isLively()}>
          <${Picture} path=${"/preview/" + texture.tid + redrawn.value} parameter="height" size=${320} width=${texture.type === "cape" ? 440 : 296}
            alt=${texture.type === "cape" ? t("texture.capeView", { name }) : t("texture.skinView", { name })} />
        </${Viewer}>
      </div>
      <div>
        <div class="buttons actions">
          ${account
            ? html`<button type="button" class="main" aria-label=${t("closet.wearName", { name })} onClick=${() => change({ wear: "1" }, { isDialog: true })}>${t("closet.wear")}</button>
              <${Keep} texture=${texture} put=${(/** @type {Texture} */ { in_closet, likes }) => put({ .../** @type {Texture} */ (shown.value), in_closet, likes })} />`
            : html`<a class="button" href=${href(signInPath())}>${t("texture.signIn")}</a>`}
          <button type="button" onClick=${download}>${t("texture.download")}</button>
          ${texture.public && html`<a class="button" href=${"/t/" + texture.tid}>${t("action.share")}</a>`}
          ${account && !isOwn && html`<button type="button" onClick=${() => ask("report")}>${t("texture.report")}</button>`}
        </div>
        ${account && !texture.in_closet && about.costs.closet_item > 0 && html`<p class="quiet">${t("library.cost", { n: about.costs.closet_item })}</p>`}
        <dl class="facts">
          <dt>${t("texture.type")}</dt><dd>${typeName(texture.type)}</dd>
          <dt>${t("texture.uploader")}</dt><dd>${texture.uploader_nickname
            ? html`<a href=${href("/library?uploader=" + texture.uploader)}><bdi>${texture.uploader_nickname}</bdi></a>`
            : t("library.deletedUploader")}</dd>
          <dt>${t("texture.likes")}</dt><dd>${number(texture.likes)}</dd>
          <dt>${t("texture.time")}</dt><dd>${time(texture.upload_at)}</dd>
          <dt>${t("texture.visibility")}</dt><dd>${texture.public ? t("texture.isPublic") : isOwn ? t("texture.isPrivate") : t("texture.isPrivateOfOther")}</dd>
        </dl>
        ${mayChange && html`<h2>${t("texture.change")}</h2>
          <div class="buttons">
            <button type="button" onClick=${() => ask("rename")}>${t("action.rename")}</button>
            ${texture.type !== "cape" && isSquare.value && html`<button type="button" onClick=${() => edit({ type: other })}>${other === "alex" ? t("texture.makeSlim") : t("texture.makeClassic")}</button>`}
            <button type="button" onClick=${() => ask("visibility")}>${texture.public ? t("texture.makePrivate") : t("texture.makePublic")}</button>
            <button type="button" class="danger" onClick=${() => ask("delete")}>${t("action.delete")}</button>
          </div>`}
        <details class="below"><summary>${t("texture.details")}</summary>
          <dl class="facts">
            <dt>${t("texture.size")}</dt><dd>${size(texture.size)}</dd>
            <dt>${t("texture.hash")}</dt><dd><${Copy} text=${texture.hash} label=${t("texture.copyHash")} /></dd>
          </dl>
          <h3>${t("texture.sheet")}</h3>
          <div class="picture sheet"><img src=${file} width="256" height=${texture.type === "cape" ? 128 : 256} alt=${t("texture.sheetOf", { name })}
            onLoad=${(/** @type {any} */ event) => { isSquare.value = event.currentTarget.naturalWidth === event.currentTarget.naturalHeight; }} /></div>
        </details>
      </div>
    </div>
    ${account && parameter("wear") && html`<${Wear} tid=${texture.tid} type=${texture.type} name=${name} onClose=${() => closeDialog("wear")}
      onKeep=${texture.in_closet ? undefined : () => put({ .../** @type {Texture} */ (shown.value), in_closet: true, likes: texture.likes + 1 })} />`}
    ${mayChange && action === "rename" && html`<${Dialog} title=${t("action.renameName", { name })} onClose=${close}>
      <${Form} action=${t("action.rename")} fields=${[{ name: "name", label: t("texture.name"), autocomplete: "off", required: true, maxlength: about.texture_name.max, defaultValue: name }]}
        onSubmit=${async (/** @type {{name: string}} */ values) => {
          const { data } = await request("PUT", path, values);
          put({ ...texture, ...data });
          close();
        }} /></${Dialog}>`}
    ${mayChange && action === "visibility" && html`<${Confirm} title=${texture.public ? t("texture.makePrivateTitle", { name }) : t("texture.makePublicTitle", { name })}
      text=${[texture.public ? t("texture.makePrivateText") : t("texture.makePublicText"), isOwn ? priceOf(texture, about) : ""].join(" ")}
      action=${texture.public ? t("texture.makePrivate") : t("texture.makePublic")} onClose=${close} onConfirm=${() => edit({ public: !texture.public })} />`}
    ${isOwn && action === "delete" && html`<${Confirm} title=${t("action.deleteName", { name })} text=${t("texture.deleteText")}
      action=${t("action.delete")} onClose=${close} onConfirm=${() => remove()} />`}
    ${mayChange && !isOwn && action === "delete" && html`<${DeleteOther} title=${t("action.deleteName", { name })} action=${t("action.delete")} onClose=${close} onDelete=${remove} />`}
    ${action === "report" && html`<${Dialog} title=${t("texture.reportTitle", { name })} onClose=${close}>
      <${Form} action=${t("texture.send")} fields=${[{ name: "reason", label: t("texture.reason"), hint: t("texture.reasonHint"), rows: 4, required: true, maxlength: about.report_reason.max }]}
        onSubmit=${async (/** @type {{reason: string}} */ values) => {
          await request("POST", "/api/reports", { tid: texture.tid, reason: values.reason });
          close();
          notify(t("texture.reported"));
        }} /></${Dialog}>`}
  </section>`;
}

/**
 * The question of administrators, which is not loaded for others.
 * @param {Parameters<typeof import("../parts/admin.js").DeleteTexture>[0]} props
 */
function DeleteOther(props) {
  const part = useSignal(/** @type {any} */ (null));
  useEffect(() => {
    import("../parts/admin.js").then(({ DeleteTexture }) => { part.value = DeleteTexture; }, (error) => {
      props.onClose();
      notify(sentence(error), "failed");
    });
  }, []);
  return part.value && html`<${part.value} ...${props} />`;
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
