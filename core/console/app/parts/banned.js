import { Contact, html, notify, sentence } from "./basics.js";
import { navigate } from "../router.js";
import { ban, signOut } from "../session.js";
import { t, time } from "../words.js";

/** Tells a banned user why and until when, and whom to ask. */
export default function Banned() {
  const { reason, until } = ban.value ?? {};
  async function leave() {
    try {
      await signOut();
      navigate("/signin", { replace: true });
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }
  return html`<section class="narrow">
    <h1 tabindex="-1">${t("banned.title")}</h1>
    <p>${until ? t("banned.until", { time: time(until) }) : t("banned.forever")}</p>
    ${reason && html`<h2>${t("ban.reason")}</h2><p class="said"><bdi>${reason}</bdi></p>`}
    <${Contact} text=${t("banned.contact")} />
    <button type="button" class="main" onClick=${leave}>${t("frame.signOut")}</button>
  </section>`;
}
