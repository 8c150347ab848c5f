import { useSignal } from "@preact/signals";
import { html, Form, notify, useSite } from "../parts/basics.js";
import { href, linked, navigate } from "../router.js";
import { request } from "../session.js";
import { t } from "../words.js";

/** Asks for a link that resets a password, or takes the token of one. */
export default function Reset() {
  const { token, email } = linked();
  const about = useSite();
  const sent = useSignal(false);

  /** @param {Record<string, string>} values */
  async function ask(values) {
    await request("POST", "/api/auth/reset", { email: values.email });
    sent.value = true;
  }

  /** @param {Record<string, string>} values */
  async function set(values) {
    await request("POST", "/api/auth/password", { token, password: values.password });
    notify(t("reset.done"));
    navigate("/signin", { replace: true });
  }

  return html`<section class="narrow">
    <h1 tabindex="-1">${t("reset.title")}</h1>
    ${token
      ? html`<${Form} key="set" action=${t("reset.set")} onSubmit=${set} username=${email} fields=${[
          { name: "password", label: t("field.newPassword"), hint: about && t("field.passwordHint", { n: about.password.min }), type: "password", autocomplete: "new-password", required: true },
        ]} />`
      : sent.value
        ? html`<p role="status">${t("reset.sent")}</p>`
        : html`<p>${t("reset.text")}</p><${Form} key="ask" action=${t("reset.ask")} onSubmit=${ask} fields=${[
            { name: "email", label: t("field.email"), type: "email", autocomplete: "username", required: true },
          ]} />`}
    <p class="links"><a href=${href("/signin")}>${t("signin.title")}</a></p>
  </section>`;
}
