import { useEffect, useRef } from "preact/hooks";
import { attempt, Form, html, notify, Picture, Reading, sentence, useRead, useSite, useSubject } from "../../parts/basics.js";
import { BanDialog, permissionName, textureNumber } from "../../parts/admin.js";
import { Confirm, Dialog } from "../../parts/dialog.js";
import { editing, Filter, Pager, parameter, Results, Search, useList } from "../../parts/list.js";
import { ask, asked, change, href, navigate } from "../../router.js";
import { request, user as account } from "../../session.js";
import { number, t, time } from "../../words.js";

/** @typedef {import("../../session.js").User & {register_at: string, ban_reason?: string, banned_until?: string}} User */
/** @typedef {{tid: number, pivot: {item_name: string}}} Item */

/** The users, or, with a parameter uid, one of them. */
export default function Users() {
  const uid = parameter("uid");
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) section.current?.querySelector("h1")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [uid]);
  return html`<section ref=${section}>${uid ? html`<${One} key=${uid} uid=${uid} />` : html`<${All} />`}</section>`;
}

function All() {
  const page = useList("/api/admin/users", { nickname: parameter("nickname"), email: parameter("email"), perPage: 20 });
  return html`<h1 tabindex="-1">${t("adminusers.title")}</h1>
    <div class="search">
      <${Search} label=${t("adminusers.nickname")} name="nickname" />
      <${Search} label=${t("adminusers.email")} name="email" />
      <form class="filter" onSubmit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const uid = String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("uid")).trim();
        if (uid) navigate("/admin/users?uid=" + encodeURIComponent(uid));
      }}>
        <input name="uid" aria-label=${t("adminusers.uid")} placeholder=${t("adminusers.uid")} />
        <button>${t("adminusers.open")}</button>
      </form>
    </div>
    <${Results} ...${page} none=${t("adminusers.none")} />
    <ul class="list">${page.list.value?.data.map((/** @type {User} */ user) => html`<li key=${user.uid}>
      <a class="row" href=${href("/admin/users?uid=" + user.uid)}>
        <span><bdi>${user.nickname}</bdi>${user.permission !== 0 && html` <span class="badge">${permissionName(user.permission)}</span>`}</span>
        <span class="quiet"><bdi>${user.email}</bdi></span>
        <span class="quiet">${t("admin.user", { uid: String(user.uid) })} · ${t("adminusers.scoreOf", { score: number(user.score) })}</span>
      </a></li>`)}</ul>
    <${Pager} label=${t("adminusers.pages")} list=${page.list} />`;
}

/** @typedef {"nickname" | "email" | "password" | "score" | "ban" | "unban" | "raise" | "lower" | "delete"} Question */

/**
 * A user, and what administrators may change of it.
 * @param {{uid: string}} props
 */
function One({ uid }) {
  const about = useSite();
  const read = useRead(async (signal) => {
    const found = await request("GET", "/api/admin/users?uid=" + encodeURIComponent(uid), undefined, signal);
    return { user: /** @type {User | undefined} */ (found.data[0]) };
  });
  const user = read.value;
  const path = "/api/admin/users/" + (user.value?.user?.uid ?? "");
  const { action: question, close } = asked();

  /** @param {Partial<User>} patch which is the body, too */
  async function set(patch) {
    const before = user.value?.user;
    if (!before) return;
    close();
    await attempt(user, { user: { ...before, ...patch } }, () => request("PUT", path + "/" + Object.keys(patch)[0], patch), ({ data }) => ({ user: data }));
  }

  async function remove() {
    await close();
    try {
      await request("DELETE", path);
      notify(t("action.deleted", { name: user.value?.user?.nickname ?? uid }));
      navigate("/admin/users");
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  /**
   * A dialog that asks for a new value.
   * @param {"nickname" | "email" | "password" | "score"} name
   * @param {string} title
   * @param {object} field
   */
  const form = (name, title, field) => html`<${Dialog} title=${title} onClose=${close}>
    <${Form} action=${t("action.save")} username=${name === "password" ? user.value?.user?.email : undefined} fields=${[{ name, autocomplete: "off", required: true, ...field }]} onSubmit=${async (/** @type {any} */ values) => {
      const value = name === "score" ? values.score && Number(values.score) : values[name];
      const answer = await request("PUT", path + "/" + name, { [name]: value });
      user.value = { user: answer.data };
      if (name === "password") notify(t("adminusers.passwordSet"));
      close();
    }} /></${Dialog}>`;

  /**
   * @param {string} title
   * @param {string} text
   * @param {string} action
   * @param {() => void} onConfirm
   */
  const confirm = (title, text, action, onConfirm) => html`<${Confirm} title=${title} text=${text} action=${action} onClose=${close} onConfirm=${onConfirm} />`;

  /**
   * @param {Question} action
   * @param {string} label
   * @param {string} [name] for assistive technology
   */
  const button = (action, label, name) => html`<button type="button" class=${action === "ban" || action === "delete" ? "danger" : ""} aria-label=${name} onClick=${() => ask(action)}>${label}</button>`;

  const shown = user.value?.user;
  useSubject(shown?.nickname ?? "");
  const back = html`<p><a href=${href("/admin/users")}>${t("adminusers.back")}</a></p>`;
  if (!shown) {
    return html`${back}<h1 tabindex="-1">${/^\d+$/.test(uid) ? t("admin.user", { uid }) : uid}</h1><${Reading} ...${read} />${user.value && html`<p role="alert">${t("adminusers.noSuchUser")}</p>`}`;
  }
  const own = account.value;
  const isSelf = own?.uid === shown.uid;
  const isOpen = shown.permission < (own?.permission ?? 0);
  const named = { name: shown.nickname };
  return html`${back}
    <h1 tabindex="-1"><bdi>${shown.nickname}</bdi></h1>
    ${!isOpen && html`<p class="card note">${isSelf ? t("adminusers.self") : t("adminusers.tooHigh")}</p>`}
    <div class="cards">
      <div class="card">
        <h2>${t("adminusers.account")}</h2>
        <dl class="facts values">
          <dt>UID</dt><dd>${shown.uid}</dd>
          <dt>${t("field.nickname")}</dt><dd><bdi>${shown.nickname}</bdi> ${isOpen && button("nickname", t("action.change"), t("adminusers.nicknameTitle"))}</dd>
          <dt>${t("field.email")}</dt><dd><bdi>${shown.email}</bdi> ${isOpen && button("email", t("action.change"), t("adminusers.emailTitle"))}</dd>
          <dt>${t("adminusers.verified")}</dt><dd>
            <label class="check"><input type="checkbox" name="verified" checked=${shown.verified} disabled=${!isOpen} onChange=${(/** @type {any} */ event) => set({ verified: event.currentTarget.checked })} />
              <span>${t("adminusers.isVerified")}</span></label></dd>
          <dt>${t("home.score")}</dt><dd>${number(shown.score)} ${isOpen && button("score", t("action.change"), t("adminusers.scoreTitle"))}</dd>
          <dt>${t("adminusers.registered")}</dt><dd>${time(shown.register_at)}</dd>
          <dt>${t("adminusers.signedIn")}</dt><dd>${time(shown.last_sign_at)}</dd>
        </dl>
      </div>
      <div class="card">
        <h2>${t("adminusers.permission")}</h2>
        <p><span class=${"badge" + (shown.permission < 0 ? " banned" : "")}>${permissionName(shown.permission)}</span>${shown.banned_until && html` ${t("ban.until", { time: time(shown.banned_until) })}`}</p>
        ${shown.ban_reason && html`<p class="said"><bdi>${shown.ban_reason}</bdi></p>`}
        ${isOpen && html`<div class="buttons">
          ${shown.permission < 0 ? button("unban", t("adminusers.unban")) : button("ban", t("adminusers.ban"))}
          ${(own?.permission ?? 0) > 1 && shown.permission === 0 && button("raise", t("adminusers.raise"))}
          ${shown.permission === 1 && button("lower", t("adminusers.lower"))}
          ${button("password", t("adminusers.setPassword"))}
          ${button("delete", t("adminusers.delete"))}
        </div>`}
      </div>
      <div class="card">
        <h2>${t("adminusers.more")}</h2>
        <ul class="more">
          <li><a href=${href("/admin/players?uid=" + shown.uid)}>${t("adminusers.players")}</a></li>
          <li><a href=${href("/admin/textures?uploader=" + shown.uid)}>${t("adminusers.textures")}</a></li>
          <li><a href=${href("/admin/notifications?to=" + shown.uid)}>${t("adminusers.notify")}</a></li>
          <li><a href=${href("/admin/audit?subject=user:" + shown.uid)}>${t("adminusers.acts")}</a></li>
        </ul>
      </div>
    </div>
    <${Closet} uid=${shown.uid} isOpen=${isOpen || isSelf} maxlength=${about?.texture_name.max} />
    ${isOpen && question === "nickname" && form("nickname", t("adminusers.nicknameTitle"), { label: t("field.nickname"), defaultValue: shown.nickname, maxlength: about?.nickname.max })}
    ${isOpen && question === "email" && form("email", t("adminusers.emailTitle"), { label: t("field.email"), type: "email", defaultValue: shown.email })}
    ${isOpen && question === "password" && form("password", t("adminusers.passwordTitle", named), { label: t("field.newPassword"), hint: about && [t("field.passwordHint", { n: about.password.min }), t("adminusers.passwordHint")].join(" "), type: "password", autocomplete: "new-password" })}
    ${isOpen && question === "score" && form("score", t("adminusers.scoreTitle"), { label: t("home.score"), type: "number", min: 0, defaultValue: shown.score })}
    ${isOpen && question === "ban" && html`<${BanDialog} title=${t("adminusers.banTitle", named)} text=${t("adminusers.banText")} onClose=${close}
      onBan=${async (/** @type {object} */ ban) => {
        user.value = { user: (await request("PUT", path + "/permission", { permission: -1, ...ban })).data };
        close();
      }} />`}
    ${isOpen && question === "unban" && confirm(t("adminusers.unbanTitle", named), t("adminusers.unbanText"), t("adminusers.unban"), () => set({ permission: 0 }))}
    ${isOpen && question === "raise" && confirm(t("adminusers.raiseTitle", named), t("adminusers.raiseText"), t("adminusers.raise"), () => set({ permission: 1 }))}
    ${isOpen && question === "lower" && confirm(t("adminusers.lowerTitle", named), t("adminusers.lowerText"), t("adminusers.lower"), () => set({ permission: 0 }))}
    ${isOpen && question === "delete" && confirm(t("action.deleteName", named), t("adminusers.deleteText"), t("adminusers.delete"), remove)}`;
}

/**
 * The closet of a user.
 * @param {{uid: number, isOpen: boolean, maxlength?: number}} props isOpen: whether the administrator may change it; maxlength: of names
 */
function Closet({ uid, isOpen, maxlength }) {
  const path = `/api/admin/users/${uid}/closet`;
  const category = parameter("category") === "cape" ? "cape" : "skin";
  const page = useList(path, { category, q: parameter("q"), perPage: 12 });
  const { remove } = editing(/** @type {{list: import("../../parts/list.js").List<Item>, reload: () => void}} */ (page), (item) => item.tid);
  const { action, close } = asked();
  const isFree = useSite()?.costs.closet_item === 0; // else what is put back would be paid back, too
  return html`<div class="heading">
      <h2>${t("adminusers.closet")}</h2>
      ${isOpen && html`<button type="button" onClick=${() => ask("add")}>${t("adminusers.add")}</button>`}
    </div>
    <div class="search">
      <${Search} label=${t("wardrobe.search")} />
      <${Filter} label=${t("adminusers.category")} name="category" values=${{ "": t("admintextures.skins"), cape: t("admintextures.capes") }} />
    </div>
    <${Results} ...${page} none=${t("adminusers.closetNone")} />
    <ul class="grid">${page.list.value?.data.map((/** @type {Item} */ item) => html`<li key=${item.tid} class="card tile">
      <${Picture} path=${"/preview/" + item.tid} parameter="height" size=${96} width=${96} alt="" />
      <a href=${href("/texture?tid=" + item.tid)}><bdi>${item.pivot.item_name}</bdi></a>
      ${isOpen && html`<button type="button" aria-label=${t("adminusers.removeTitle", { name: item.pivot.item_name })}
        onClick=${() => remove(item, () => request("DELETE", path + "/" + item.tid), t("adminusers.removed", { name: item.pivot.item_name }),
          isFree ? () => request("POST", path, { tid: item.tid, name: item.pivot.item_name }) : undefined)}>${t("adminusers.remove")}</button>`}
    </li>`)}</ul>
    <${Pager} label=${t("wardrobe.pages")} list=${page.list} />
    ${isOpen && action === "add" && html`<${Dialog} title=${t("adminusers.add")} onClose=${close}>
      <${Form} action=${t("adminusers.addAction")} fields=${[
          { name: "tid", label: t("adminusers.tid"), autocomplete: "off" },
          { name: "name", label: t("adminusers.itemName"), maxlength, autocomplete: "off" },
        ]} onSubmit=${async (/** @type {any} */ values) => {
          await request("POST", path, { name: values.name, ...(values.tid && { tid: await textureNumber("tid", values.tid) }) });
          await close();
          change({ q: "", page: "" }, { replace: true });
          page.reload();
        }} /></${Dialog}>`}`;
}
