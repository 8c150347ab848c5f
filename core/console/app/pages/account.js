import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { focusOn, Form, html, notify, sentence } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { parameter } from "../parts/list.js";
import { href, navigate } from "../router.js";
import { request, signOut, site, user } from "../session.js";
import { t, time } from "../words.js";

/** @typedef {{id: string, created_at: string, refreshed_at: string, current: boolean}} Session */
/** @typedef {{id: string, issued_at: string, valid: boolean, pid: number, player_name?: string}} Launcher */
/** @typedef {{sessions: Session[], launchers: Launcher[]}} SignIns */

const close = () => navigate("/account");

/** The user's data, and the sessions. The URL has which dialog is open. */
export default function Account() {
  const signIns = useSignal(/** @type {SignIns | undefined} */ (undefined));
  const hasMail = useSignal(false);
  const isVerificationSent = useSignal(false);

  useEffect(() => {
    const leaving = new AbortController();
    Promise.all([request("GET", "/api/user/sessions", undefined, leaving.signal), site()]).then(([list, said]) => {
      signIns.value = list;
      hasMail.value = said.mail;
    }).catch((error) => {
      if (!leaving.signal.aborted) notify(sentence(error), "failed");
    });
    return () => leaving.abort();
  }, []);

  /**
   * Shows at once which sessions are left, and takes that back with a sentence if the server refuses it.
   * @param {SignIns} left
   * @param {string} path
   * @param {string} done
   */
  async function end(left, path, done) {
    const before = signIns.value;
    signIns.value = left;
    focusOn("#sessions");
    try {
      await request("DELETE", path);
      notify(done);
    } catch (error) {
      signIns.value = before;
      notify(sentence(error), "failed");
    }
  }

  async function verify() {
    try {
      await request("POST", "/api/user/verification");
      isVerificationSent.value = true;
      focusOn("#verification");
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  const account = user.value;
  if (!account) return null;
  const { sessions, launchers } = signIns.value ?? { sessions: [], launchers: [] };
  const others = sessions.filter(({ current }) => !current).length + launchers.length;

  /**
   * @param {string} label
   * @param {any} value
   * @param {string} change which dialog changes it
   * @param {string} name of the button
   */
  const row = (label, value, change, name) => html`<div class="card setting">
    <div><h2>${label}</h2>${value}</div>
    <a class="button" href=${href("/account?change=" + change)} aria-label=${name}>${t("account.change")}</a>
  </div>`;

  return html`<section class="column">
    <h1 tabindex="-1">${t("account.title")}</h1>
    ${row(t("field.nickname"), html`<p><bdi>${account.nickname}</bdi></p>`, "nickname", t("account.changeNickname"))}
    ${row(t("field.email"), html`<p><bdi>${account.email}</bdi></p>
      ${account.verified && html`<p class="quiet">${t("account.verified")}</p>`}
      ${!account.verified && hasMail.value && (isVerificationSent.value
        ? html`<p id="verification" role="status" tabindex="-1">${t("home.verificationSent", { email: account.email })}</p>`
        : html`<p class="quiet">${t("account.unverified")}</p><button type="button" onClick=${verify}>${t("home.verify")}</button>`)}`,
    "email", t("account.changeEmail"))}
    ${row(t("field.password"), html`<p class="quiet">${t("account.passwordText")}</p>`, "password", t("account.changePassword"))}

    <div class="heading below">
      <h2 id="sessions" tabindex="-1">${t("account.sessions")}</h2>
      ${others > 0 && html`<button type="button" onClick=${() => end({ sessions: sessions.filter(({ current }) => current), launchers: [] }, "/api/user/sessions", t("account.othersEnded"))}>
        ${t("account.endOthers")}</button>`}
    </div>
    <ul class="list">
      ${sessions.map((session) => html`<li key=${session.id} class="line">
        <div><p>${session.current ? t("account.thisSession") : t("account.session")}</p>
          <p class="quiet">${t("account.since", { time: time(session.created_at) })} ${t("account.used", { time: time(session.refreshed_at) })}</p></div>
        ${!session.current && html`<button type="button" aria-label=${t("account.endSession", { time: time(session.created_at) })}
          onClick=${() => end({ sessions: sessions.filter((other) => other !== session), launchers }, "/api/user/sessions/" + session.id, t("account.ended"))}>${t("account.end")}</button>`}
      </li>`)}
      ${launchers.map((launcher) => html`<li key=${launcher.id} class="line">
        <div><p>${launcher.player_name ? t("account.launcherOf", { player: launcher.player_name }) : t("account.launcher")}</p>
          <p class="quiet">${t("account.since", { time: time(launcher.issued_at) })} ${!launcher.valid && t("account.stale")}</p></div>
        <button type="button" aria-label=${t("account.endLauncher", { time: time(launcher.issued_at) })}
          onClick=${() => end({ sessions, launchers: launchers.filter((other) => other !== launcher) }, "/api/user/sessions/" + launcher.id, t("account.ended"))}>${t("account.end")}</button>
      </li>`)}
    </ul>

    <h2 class="below">${t("account.more")}</h2>
    <p class="links"><a href=${href("/score")}>${t("score.title")}</a><a href=${href("/reports")}>${t("reports.title")}</a></p>
    <h2 class="below">${t("account.delete")}</h2>
    <p>${t("account.deleteText")}</p>
    <a class="button danger" href=${href("/account?change=delete")}>${t("account.delete")}</a>
    <${Change} what=${parameter("change")} account=${account} onPassword=${(/** @type {SignIns} */ list) => { signIns.value = list; }} />
  </section>`;
}

/**
 * The dialog that changes something of the account.
 * @param {{what: string, account: import("../session.js").User, onPassword: (signIns: SignIns) => void}} props
 */
function Change({ what, account, onPassword }) {
  const password = { name: "password", label: t("field.password"), type: "password", autocomplete: "current-password", required: true };

  /** @param {Record<string, string>} values */
  async function setNickname(values) {
    const before = user.value;
    user.value = { ...account, nickname: values.nickname };
    try {
      user.value = (await request("PUT", "/api/user", values)).data;
    } catch (error) {
      if (user.value) user.value = before; // unless the session has ended
      throw error;
    }
    close();
    notify(t("account.nicknameChanged"));
  }

  /** @param {Record<string, string>} values */
  async function setEmail(values) {
    const { data } = await request("PUT", "/api/user/email", values);
    if (data) user.value = data;
    close();
    notify(data ? t("account.emailChanged") : t("account.emailSent", { email: values.email }));
  }

  /** @param {Record<string, string>} values */
  async function setPassword(values) {
    await request("PUT", "/api/user/password", values);
    close();
    notify(t("account.passwordChanged"));
    onPassword(await request("GET", "/api/user/sessions"));
  }

  /** @param {Record<string, string>} values */
  async function remove(values) {
    await request("DELETE", "/api/user", values);
    await signOut();
    navigate("/signin", { replace: true });
    notify(t("account.deleted"));
  }

  switch (what) {
    case "nickname":
      return html`<${Dialog} title=${t("account.changeNickname")} onClose=${close}>
        <${Form} action=${t("account.save")} onSubmit=${setNickname} fields=${[
          { name: "nickname", label: t("field.nickname"), autocomplete: "nickname", required: true, maxlength: 64, defaultValue: account.nickname },
        ]} /></${Dialog}>`;
    case "email":
      return html`<${Dialog} title=${t("account.changeEmail")} onClose=${close}>
        <${Form} action=${t("account.save")} onSubmit=${setEmail} fields=${[
          { name: "email", label: t("account.newEmail"), type: "email", autocomplete: "email", required: true }, password,
        ]} /></${Dialog}>`;
    case "password":
      return html`<${Dialog} title=${t("account.changePassword")} onClose=${close}>
        <p>${t("account.passwordEnds")}</p>
        <${Form} action=${t("account.save")} onSubmit=${setPassword} fields=${[
          { ...password, name: "current_password", label: t("account.currentPassword") },
          { name: "new_password", label: t("field.newPassword"), hint: t("field.passwordHint"), type: "password", autocomplete: "new-password", required: true },
        ]} /></${Dialog}>`;
    case "delete":
      return html`<${Dialog} title=${t("account.delete")} onClose=${close}>
        <p>${t("account.deleteWarning")}</p>
        <div class="dangerous"><${Form} action=${t("account.deleteAction")} onSubmit=${remove} fields=${[password]} /></div></${Dialog}>`;
    default:
      return null;
  }
}
