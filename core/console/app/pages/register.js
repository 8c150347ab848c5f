import { useSignal } from "@preact/signals";
import { asTyped, html, Form, notify, Reading, useRead } from "../parts/basics.js";
import { consent, reconsider } from "../parts/consent.js";
import { href, navigate, nextPath } from "../router.js";
import { request, signIn, site } from "../session.js";
import { t, translate } from "../words.js";

/** Makes an account: at once, or by a link in an e-mail. */
export default function Register() {
  const read = useRead(site);
  const { value: about } = read.value;
  const mode = about?.registration;
  const sent = useSignal(false);

  const email = { name: "email", label: t("field.email"), type: "email", autocomplete: "username", required: true };
  const nickname = { name: "nickname", label: t("field.nickname"), autocomplete: "nickname", required: true, maxlength: about?.nickname.max };
  const player = { name: "player_name", label: t("field.optional", { label: t("field.player") }), hint: about && [t("register.playerHint"), translate(about.player_name.rule)].join(" "), maxlength: about?.player_name.max, autocomplete: "off", ...asTyped };
  const password = { name: "password", label: t("field.password"), hint: about && t("field.passwordHint", { n: about.password.min }), type: "password", autocomplete: "new-password", required: true };

  /** @param {Record<string, string>} values */
  async function submit(values) {
    if (!values.player_name) delete values.player_name;
    const answer = await request("POST", "/api/auth/register", values).catch(async (error) => {
      await reconsider(error);
      throw error;
    });
    if (!answer.data?.token) {
      sent.value = true;
      return;
    }
    const next = nextPath();
    try {
      await signIn({ token: answer.data.token });
      navigate(next, { replace: true });
    } catch {
      navigate("/signin" + location.search, { replace: true });
      notify(t("register.made"));
    }
  }

  return html`<section class="narrow">
    <h1 tabindex="-1">${t("register.title")}</h1>
    <${Reading} ...${read} />
    ${mode === "closed" && html`<p>${t("register.closed")}</p>`}
    ${sent.value && html`<p role="status">${t("register.sent")}</p>`}
    ${!sent.value && (mode === "open" || mode === "confirm") && html`<${Form} action=${t("register.action")} onSubmit=${submit}
      fields=${mode === "open" ? [email, nickname, player, password, ...consent()] : [email, nickname, player]} />`}
    <p class="links"><a href=${href("/signin" + location.search)}>${t("register.signin")}</a></p>
  </section>`;
}
