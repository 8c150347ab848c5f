import { useSignal } from "@preact/signals";
import { asTyped, html, Form, notify, useSite } from "../parts/basics.js";
import { consent, reconsider } from "../parts/consent.js";
import { href, linked, navigate, place } from "../router.js";
import { APIError, refreshUser, request, signIn, user } from "../session.js";
import { t, translate } from "../words.js";

/** Takes the token of a link in an e-mail: it verifies an address, or confirms a registration. */
export default function Verify() {
  const { token, email } = linked();
  const isRegistration = useSignal(place.peek().query.has("registration"));
  const about = useSite();

  /** @param {Record<string, string>} values */
  async function submit(values) {
    for (const name of ["nickname", "player_name"]) if (!values[name]) delete values[name];
    let answer;
    try {
      answer = await request("POST", "/api/auth/verify", { ...values, token });
    } catch (error) {
      await reconsider(error);
      // A link that does not say which kind it is may be one of a registration, which asks for a password.
      if (isRegistration.value || !(error instanceof APIError) || !error.fields.password) throw error;
      isRegistration.value = true;
      return;
    }
    if (answer.data?.token) await signIn({ token: answer.data.token });
    else if (user.value) await refreshUser();
    notify(answer.data?.token ? t("verify.registered") : t("verify.done"));
    navigate(user.value ? "/" : "/signin", { replace: true });
  }

  if (!token) {
    return html`<section class="narrow"><h1 tabindex="-1">${t("verify.title")}</h1><p>${t("verify.noToken")}</p>
      <p class="links"><a href=${href("/signin")}>${t("signin.title")}</a></p></section>`;
  }
  return html`<section class="narrow">
    <h1 tabindex="-1">${isRegistration.value ? t("verify.registration") : t("verify.title")}</h1>
    <p>${isRegistration.value ? t("verify.choose") : t("verify.text")}</p>
    <${Form} action=${isRegistration.value ? t("register.action") : t("verify.action")} onSubmit=${submit} username=${isRegistration.value ? email : ""} fields=${isRegistration.value ? [
      { name: "password", label: t("field.password"), hint: about && t("field.passwordHint", { n: about.password.min }), type: "password", autocomplete: "new-password", required: true },
      { name: "nickname", label: t("verify.nickname"), hint: t("verify.keep"), autocomplete: "nickname", maxlength: about?.nickname.max },
      { name: "player_name", label: t("verify.player"), hint: [t("verify.keep"), about && translate(about.player_name.rule)].filter(Boolean).join(" "), maxlength: about?.player_name.max, autocomplete: "off", ...asTyped },
      ...consent(),
    ] : []} />
  </section>`;
}
