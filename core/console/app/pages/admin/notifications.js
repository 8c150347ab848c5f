import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Form, html, notify } from "../../parts/basics.js";
import { Select } from "../../parts/admin.js";
import { Confirm } from "../../parts/dialog.js";
import { parameter } from "../../parts/list.js";
import { ask, asked } from "../../router.js";
import { request } from "../../session.js";
import { t } from "../../words.js";

/** Sends a notification to one user or to many. */
export default function Notifications() {
  const to = parameter("to");
  const audience = useSignal(to ? "one" : "all");
  const sent = useSignal(0);
  const resolve = useRef(/** @type {((isConfirmed: boolean) => void) | null} */ (null));
  const { action, close } = asked();

  /** @param {boolean} isConfirmed */
  const decide = (isConfirmed) => {
    resolve.current?.(isConfirmed);
    resolve.current = null;
  };
  useEffect(() => { if (action !== "send") decide(false); }, [action]); // by back

  /** @param {Record<string, string>} values */
  async function send(values) {
    const isForOne = audience.value === "one";
    const recipient = isForOne ? values.to : audience.value;
    // Without a title or content it is refused anyway.
    if (!isForOne && values.title && values.content && !(await new Promise((decided) => { resolve.current = decided; ask("send"); }))) return;
    const { data } = await request("POST", "/api/admin/notifications", { to: recipient, title: values.title, content: values.content });
    notify(t("announce.sent", { n: data.users }));
    sent.value++;
  }

  const audiences = { all: t("announce.all"), normal: t("announce.normal"), one: t("announce.one") };
  return html`<section class="wide">
    <h1 tabindex="-1">${t("announce.title")}</h1>
    <p>${t("announce.text")}</p>
    <${Select} name="audience" label=${t("announce.audience")} value=${audience.value} values=${audiences} onChange=${(/** @type {string} */ value) => { audience.value = value; }} />
    <${Form} key=${sent.value} action=${t("announce.send")} onSubmit=${send} fields=${[
        ...(audience.value === "one" ? [{ name: "to", label: t("announce.to"), hint: t("announce.toHint"), defaultValue: to, autocomplete: "off" }] : []),
        { name: "title", label: t("announce.subject"), defaultValue: sent.value ? "" : parameter("title"), maxlength: 64, autocomplete: "off" },
        { name: "content", label: t("announce.content"), hint: t("announce.contentHint"), defaultValue: sent.value ? "" : parameter("content"), rows: 8, maxlength: 20000 },
      ]} />
    ${action === "send" && resolve.current && html`<${Confirm} title=${t("announce.confirm")} text=${audience.value === "all" ? t("announce.confirmAll") : t("announce.confirmNormal")}
      action=${t("announce.send")} onClose=${close} onConfirm=${() => { decide(true); close(); }} />`}
  </section>`;
}
