import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { html, Form, sentence } from "../parts/basics.js";
import { href, navigate } from "../router.js";
import { request, signIn, site } from "../session.js";
import { t } from "../words.js";

/** Makes an account: at once, or by a link in an e-mail. */
export default function Register() {
  const mode = useSignal(/** @type {string | undefined} */ (undefined));
  const sent = useSignal(false);
  const failure = useSignal("");
  useEffect(() => {
    site().then(({ registration }) => { mode.value = registration; }, (error) => { failure.value = sentence(error); });
  }, []);

  const email = { name: "email", label: t("field.email"), type: "email", autocomplete: "username", required: true };
  const nickname = { name: "nickname", label: t("field.nickname"), autocomplete: "nickname", required: true, maxlength: 64 };
  const player = { name: "player_name", label: t("field.player"), hint: t("register.playerHint"), autocomplete: "off" };
  const password = { name: "password", label: t("field.newPassword"), hint: t("field.passwordHint"), type: "password", autocomplete: "new-password", required: true };

  /** @param {Record<string, string>} values */
  async function submit(values) {
    if (!values.player_name) delete values.player_name;
    const answer = await request("POST", "/api/auth/register", values);
    if (!answer.data?.token) {
      sent.value = true;
      return;
    }
    await signIn({ token: answer.data.token });
    navigate("/", { replace: true });
  }

  return html`<section class="narrow">
    <h1 tabindex="-1">${t("register.title")}</h1>
    ${failure.value && html`<p class="wrong" role="alert">${failure.value}</p>`}
    ${mode.value === "closed" && html`<p>${t("register.closed")}</p>`}
    ${sent.value && html`<p role="status">${t("register.sent")}</p>`}
    ${!sent.value && (mode.value === "open" || mode.value === "confirm") && html`<${Form} action=${t("register.action")} onSubmit=${submit}
      fields=${mode.value === "open" ? [email, nickname, player, password] : [email, nickname, player]} />`}
    <p class="links"><a href=${href("/signin")}>${t("register.signin")}</a></p>
  </section>`;
}
