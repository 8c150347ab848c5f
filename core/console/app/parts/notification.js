// Notifications: what administrators write, and what the service itself says, which is put into words here.
import { useSignal } from "@preact/signals";
import { href } from "../router.js";
import { refreshUser, request } from "../session.js";
import { t, time } from "../words.js";
import { focusOn, html, notify, sentence, siteName } from "./basics.js";

/** @typedef {{id: string, title: string, time: string, read: boolean, kind?: string, parameters?: {tid?: number, name?: string}}} Entry */

/**
 * Returns a message of the service in the reader's language, or nothing for what administrators write.
 * @param {{kind?: string, parameters?: {tid?: number, name?: string}}} message
 * @returns {{title: string, content: any} | undefined}
 */
function say({ kind, parameters: { tid, name } = {} }) {
  const texture = name || t("reports.texture", { tid: String(tid) });
  const link = html`<p><a href=${href("/texture?tid=" + tid)}><bdi>${texture}</bdi></a></p>`;
  switch (kind) {
    case "report_rejected":
      return { title: t("message.report"), content: html`<p>${t("message.reportRejected", { texture })}</p>${link}` };
    case "report_deleted":
      return { title: t("message.report"), content: html`<p>${t("message.reportDeleted", { texture })}</p>` };
    case "report_banned":
      return { title: t("message.report"), content: html`<p>${t("message.reportBanned", { texture })}</p>${link}` };
    case "demo_welcome":
      return { title: t("message.welcome", { site: siteName }), content: html`<p>${t("message.welcomeText", { site: siteName })} <a href=${href("/closet")}>${t("closet.title")}</a></p>` };
    case "demo_upload":
      return { title: t("message.upload"), content: html`<p>${t("message.uploadText")} <a href=${href("/upload")}>${t("upload.title")}</a></p>` };
  }
}

/**
 * A notification, which is read when it is opened.
 * @param {Entry} entry
 */
export function Notification(entry) {
  const { id, read: wasRead } = entry;
  const opened = useSignal(/** @type {any} */ (undefined));
  const isRead = useSignal(wasRead);
  const said = say(entry);
  const title = said?.title ?? entry.title;

  async function open() {
    try {
      const [{ content }, { rich }] = await Promise.all([request("POST", "/api/user/notifications/" + id), import("./rich.js")]);
      if (!isRead.value) refreshUser(); // which has the number of unread ones
      isRead.value = true;
      opened.value = rich(content);
      focusOn("#notification-" + id);
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  if (!opened.value) {
    return html`<button type="button" class="row" aria-expanded="false" onClick=${open}>
      <span>${isRead.value ? html`<bdi>${title}</bdi>` : html`<b><bdi>${title}</bdi></b> <span class="badge">${t("notifications.new")}</span>`}</span>
      <span class="quiet">${time(entry.time)}</span></button>`;
  }
  return html`<article class="card">
    <h3 id=${"notification-" + id} tabindex="-1"><bdi>${title}</bdi></h3>
    <p class="quiet">${time(entry.time)}</p>
    <div class="rich">${said?.content ?? opened.value}</div>
  </article>`;
}
