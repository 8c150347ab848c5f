import { useEffect } from "preact/hooks";
import { asTyped, Contact, description, focusOn, html, Form, useSite } from "../parts/basics.js";
import { href, navigate, nextPath } from "../router.js";
import { ended, signIn } from "../session.js";
import { t } from "../words.js";

/** Signs a user in, and shows the page from which the user came. */
export default function SignIn() {
  const about = useSite();
  useEffect(() => focusOn("#email"), []);

  return html`<section class="narrow">
    <h1 tabindex="-1">${t("signin.title")}</h1>
    ${description && html`<p class="quiet">${description}</p>`}
    ${ended.value > 0 && html`<p class="card note" role="status">${t("signin.ended")}</p>`}
    <${Form} action=${t("signin.action")} onSubmit=${async (/** @type {any} */ values) => {
      const next = nextPath();
      await signIn({ email: values.email, password: values.password });
      navigate(next, { replace: true });
    }} fields=${[
      { name: "email", label: t("signin.name"), inputmode: "email", autocomplete: "username", ...asTyped, required: true },
      { name: "password", label: t("field.password"), type: "password", autocomplete: "current-password", required: true },
    ]} />
    <p class="links">
      ${about?.registration !== "closed" && html`<a href=${href("/register" + location.search)}>${t("signin.register")}</a>`}
      ${about?.mail && html`<a href=${href("/reset")}>${t("signin.forgotten")}</a>`}
    </p>
    ${about && !about.mail && html`<${Contact} text=${t("signin.ask")} />`}
  </section>`;
}
