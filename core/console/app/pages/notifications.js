import { useEffect } from "preact/hooks";
import { html } from "../parts/basics.js";
import { Pager, Results, useList } from "../parts/list.js";
import { Notification } from "../parts/notification.js";
import { href } from "../router.js";
import { refreshUser } from "../session.js";
import { t } from "../words.js";

/** All notifications, read ones too. */
export default function Notifications() {
  const page = useList("/api/notifications", { perPage: 20 });
  useEffect(() => { refreshUser(); }, []); // there may be more since
  return html`<section class="column">
    <h1 tabindex="-1">${t("notifications.title")}</h1>
    <${Results} ...${page} none=${t("notifications.none")}><a class="button main" href=${href("/")}>${t("home.title")}</a></${Results}>
    <ul class="list">${page.list.value?.data.map((/** @type {import("../parts/notification.js").Entry} */ entry) => html`<li key=${entry.id}><${Notification} ...${entry} /></li>`)}</ul>
    <${Pager} label=${t("notifications.pages")} list=${page.list} />
  </section>`;
}
