import { attempt, focusOn, Form, html, notify, Reading, Unverified, useRead, useSite } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { parameter } from "../parts/list.js";
import { change, closeDialog, href, navigate } from "../router.js";
import { request, signOut, site, update, user } from "../session.js";
import { t, time } from "../words.js";

/** @typedef {{id: string, created_at: string, refreshed_at: string, current: boolean, browser: string, system: string}} Session */
/** @typedef {{id: string, issued_at: string, valid: boolean, pid: number, player_name?: string}} Launcher */
/** @typedef {{sessions: Session[], launchers: Launcher[]}} SignIns */

/** @param {string} what */
const open = (what) => change({ change: what }, { isDialog: true });

/**
 * Returns the name of a session, empty if it is unknown.
 * @param {Session} session
 */
const nameOf = ({ browser, system }) => (browser && system ? t("account.device", { browser, system }) : browser || system);

/** The user's data, and the sessions. The URL has which dialog is open. */
export default function Account() {
  const about = useSite();
  const read = useRead(async (signal) => {
    const [list] = await Promise.all([request("GET", "/api/user/sessions", undefined, signal), site()]);
    return /** @type {SignIns} */ (list);
  });
  const signIns = read.value;

  /**
   * @param {SignIns} left
   * @param {string} path
   * @param {string} done
   */
  async function end(left, path, done) {
    focusOn("#sessions");
    if (await attempt(signIns, left, () => request("DELETE", path))) notify(done);
  }

  const account = user.value;
  if (!account) return null;
  // What is said of an unverified address would move what is below.
  if (!account.verified && !about) return html`<section class="column"><h1 tabindex="-1">${t("account.title")}</h1><${Reading} ...${read} /></section>`;
  const { sessions, launchers } = signIns.value ?? { sessions: [], launchers: [] };
  const others = sessions.filter(({ current }) => !current).length + launchers.length;

  /**
   * @param {string} label
   * @param {any} value
   * @param {string} what which dialog changes it
   * @param {string} name of the button
   */
  const row = (label, value, what, name) => html`<div class="card setting">
    <div><h2>${label}</h2>${value}</div>
    <button type="button" aria-label=${name} onClick=${() => open(what)}>${t("action.change")}</button>
  </div>`;

  return html`<section class="column">
    <h1 tabindex="-1">${t("account.title")}</h1>
    ${row(t("field.nickname"), html`<p><bdi>${account.nickname}</bdi></p>`, "nickname", t("account.changeNickname"))}
    ${row(t("field.email"), html`<p><bdi>${account.email}</bdi></p>
      ${account.verified && html`<p class="quiet">${t("account.verified")}</p>`}
      ${!account.verified && about?.mail && html`<${Unverified} text=${t("account.unverified")} />`}`,
    "email", t("account.changeEmail"))}
    ${row(t("field.password"), html`<p class="quiet">${t("account.passwordText")}</p>`, "password", t("account.changePassword"))}

    <div class="heading below">
      <h2 id="sessions" tabindex="-1">${t("account.sessions")}</h2>
      ${others > 0 && html`<button type="button" onClick=${() => end({ sessions: sessions.filter(({ current }) => current), launchers: [] }, "/api/user/sessions", t("account.othersEnded"))}>
        ${t("account.endOthers")}</button>`}
    </div>
    <${Reading} ...${read} />
    <ul class=${signIns.value ? "list" : "list reserved"}>
      ${sessions.map((session) => html`<li key=${session.id} class="line">
        <div><p>${nameOf(session) || !session.current && t("account.session")} ${session.current && html`<span class="badge">${t("account.thisSession")}</span>`}</p>
          <p class="quiet">${t("account.since", { time: time(session.created_at) })} ${t("account.used", { time: time(session.refreshed_at) })}</p></div>
        ${!session.current && html`<button type="button" aria-label=${t("account.endSession", { time: time(session.created_at) })}
          onClick=${() => end({ sessions: sessions.filter((other) => other !== session), launchers }, "/api/user/sessions/" + session.id, t("account.endedBrowser"))}>${t("account.end")}</button>`}
      </li>`)}
      ${launchers.map((launcher) => html`<li key=${launcher.id} class="line">
        <div><p>${launcher.player_name ? t("account.launcherOf", { player: launcher.player_name }) : t("account.launcher")}</p>
          <p class="quiet">${t("account.since", { time: time(launcher.issued_at) })} ${!launcher.valid && t("account.stale")}</p></div>
        <button type="button" aria-label=${t("account.endLauncher", { time: time(launcher.issued_at) })}
          onClick=${() => end({ sessions, launchers: launchers.filter((other) => other !== launcher) }, "/api/user/sessions/" + launcher.id, t("account.endedLauncher"))}>${t("account.end")}</button>
      </li>`)}
    </ul>

    <h2 class="below">${t("account.more")}</h2>
    <p class="links"><a href=${href("/score")}>${t("score.title")}</a><a href=${href("/reports")}>${t("reports.title")}</a><a href=${href("/connect")}>${t("connect.title")}</a></p>
    <h2 class="below">${t("account.delete")}</h2>
    <p>${t("account.deleteText")}</p>
    <button type="button" class="danger" onClick=${() => open("delete")}>${t("account.delete")}</button>
    <${Change} what=${parameter("change")} account=${account} about=${about} onPassword=${(/** @type {SignIns} */ list) => { signIns.value = list; }} />
  </section>`;
}

/**
 * The dialog that changes something of the account.
 * @param {{what: string, account: import("../session.js").User, about: import("../session.js").Site | undefined, onPassword: (signIns: SignIns) => void}} props
 */
function Change({ what, account, about, onPassword }) {
  // An answer may come after the dialog was closed, and another one opened.
  const close = () => { if (parameter("change") === what) closeDialog("change"); };
  const password = { name: "password", label: t("field.password"), type: "password", autocomplete: "current-password", required: true };

  /** @param {Record<string, string>} values */
  async function setNickname(values) {
    const before = user.value;
    user.value = { ...account, nickname: values.nickname };
    try {
      update((await request("PUT", "/api/user", values)).data);
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
    if (data) update(data);
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
    await signOut().catch(() => {}); // the session has ended with the account
    navigate("/signin", { replace: true });
    notify(t("account.deleted"));
  }

  switch (what) {
    case "nickname":
      return html`<${Dialog} title=${t("account.changeNickname")} onClose=${close}>
        <${Form} action=${t("action.save")} onSubmit=${setNickname} fields=${[
          { name: "nickname", label: t("field.nickname"), autocomplete: "nickname", required: true, maxlength: about?.nickname.max, defaultValue: account.nickname },
        ]} /></${Dialog}>`;
    case "email":
      return html`<${Dialog} title=${t("account.changeEmail")} onClose=${close}>
        <${Form} action=${t("action.save")} onSubmit=${setEmail} fields=${[
          { name: "email", label: t("account.newEmail"), type: "email", autocomplete: "email", required: true }, password,
        ]} /></${Dialog}>`;
    case "password":
      return html`<${Dialog} title=${t("account.changePassword")} onClose=${close}>
        <p>${t("account.passwordEnds")}</p>
        <${Form} action=${t("action.save")} onSubmit=${setPassword} username=${account.email} fields=${[
          { ...password, name: "current_password", label: t("account.currentPassword") },
          { name: "new_password", label: t("field.newPassword"), hint: about && t("field.passwordHint", { n: about.password.min }), type: "password", autocomplete: "new-password", required: true },
        ]} /></${Dialog}>`;
    case "delete":
      return html`<${Dialog} title=${t("account.delete")} onClose=${close}>
        <p>${t("account.deleteWarning")}</p>
        <div class="dangerous"><${Form} action=${t("account.deleteAction")} onSubmit=${remove} fields=${[password]} /></div></${Dialog}>`;
    default:
      return null;
  }
}
