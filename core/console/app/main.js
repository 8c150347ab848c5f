// The frame of all pages: header, choices of theme and language, and the page that the URL names.
import { render } from "preact";
import { useEffect, useErrorBoundary } from "preact/hooks";
import { batch, effect, signal } from "@preact/signals";
import { html, logo, notify, Notices, operator, Picture, sentence, siteName, sitePage, Sitting, subject } from "./parts/basics.js";
import { Icon, Menu } from "./parts/menu.js";
import { forgetLists, href, navigate, nextPath, place, restoreScroll, signInPath, target } from "./router.js";
import { ban, countReports, openReports, signOut, start, user } from "./session.js";
import { recall, remember } from "./start.js";
import { language, languages, load, t } from "./words.js";

/** @typedef {{title: import("./words.js").Key, icon?: import("./parts/menu.js").IconName, open?: boolean, admin?: boolean, needs?: string, load: () => Promise<{default: any}>}} Page icon: in the navigation; open: for visitors; admin: for administrators only; needs: a parameter without which there is no page */

/** @type {Record<string, Page>} */
const pages = {
  "/": { title: "home.title", icon: "home", load: () => import("./pages/home.js") },
  "/players": { title: "players.title", icon: "player", load: () => import("./pages/players.js") },
  "/closet": { title: "closet.title", icon: "hanger", load: () => import("./pages/closet.js") },
  "/library": { title: "library.title", icon: "grid", open: true, load: () => import("./pages/library.js") },
  "/texture": { title: "texture.title", open: true, needs: "tid", load: () => import("./pages/texture.js") },
  "/signin": { title: "signin.title", open: true, load: () => import("./pages/signin.js") },
  "/register": { title: "register.title", open: true, load: () => import("./pages/register.js") },
  "/verify": { title: "verify.title", open: true, load: () => import("./pages/verify.js") },
  "/upload": { title: "upload.title", icon: "plus", load: () => import("./pages/upload.js") },
  "/account": { title: "account.title", load: () => import("./pages/account.js") },
  "/reports": { title: "reports.title", load: () => import("./pages/reports.js") },
  "/notifications": { title: "notifications.title", load: () => import("./pages/notifications.js") },
  "/score": { title: "score.title", load: () => import("./pages/score.js") },
  "/connect": { title: "connect.title", icon: "plug", open: true, load: () => import("./pages/connect.js") },
  "/reset": { title: "reset.title", open: true, load: () => import("./pages/reset.js") },
  "/admin": { title: "counts.title", admin: true, load: () => import("./pages/admin/counts.js") },
  "/admin/reports": { title: "adminreports.title", admin: true, load: () => import("./pages/admin/reports.js") },
  "/admin/textures": { title: "admintextures.title", admin: true, load: () => import("./pages/admin/textures.js") },
  "/admin/refusals": { title: "refusals.title", admin: true, load: () => import("./pages/admin/refusals.js") },
  "/admin/users": { title: "adminusers.title", admin: true, load: () => import("./pages/admin/users.js") },
  "/admin/players": { title: "adminplayers.title", admin: true, load: () => import("./pages/admin/players.js") },
  "/admin/notifications": { title: "announce.title", admin: true, load: () => import("./pages/admin/notifications.js") },
  "/admin/audit": { title: "audit.title", admin: true, load: () => import("./pages/admin/audit.js") },
};

/** What a banned user sees in place of every page. @type {Page} */
const bannedPage = { title: "banned.title", open: true, load: () => import("./parts/banned.js") };

/** The pages that the navigation leads to: for users, for visitors, for administrators. */
const navigation = ["/", "/players", "/upload", "/closet", "/library"];
const openNavigation = ["/library", "/connect"];
const administration = ["/admin", "/admin/reports", "/admin/textures", "/admin/users", "/admin/players", "/admin/notifications", "/admin/audit"];

/** The pages that a signed-in user has no use for, or that have links to the page for signing in. */
const entrances = ["/signin", "/register", "/reset", "/verify"];

/** @typedef {{Page: any, title: import("./words.js").Key}} Shown */

/** The page that is shown: at the beginning none. */
const shown = signal(/** @type {Shown} */ ({ Page: null, title: "missing.title" }));
/** What takes files that are dropped on any page; it is loaded after the first one. */
const dropTarget = signal(/** @type {any} */ (null));

/** Makes elements of the announcement's HTML. Nothing is drawn before it is loaded, as the page would jump. */
const rich = signal(/** @type {((content: string) => any) | null} */ (null));
const isAnnounced = Object.keys(operator.announcement).length > 0;
if (isAnnounced) import("./parts/rich.js").then((part) => { rich.value = part.rich; }, () => { rich.value = () => ""; });

const words = load();
words.catch(() => {}); // the sentence of the index page stays
/** The last user, if the session did not end since. */
let before = /** @type {import("./session.js").User | null | undefined} */ (null);
let isStarting = false;

pages[target.peek().path]?.load().catch(() => {}); // meanwhile it is found out who the user is

effect(() => {
  const at = target.value;
  const account = user.value;
  const isBanned = ban.value !== null;
  if (account === undefined && !isBanned) {
    begin();
    return;
  }
  const hasEnded = account === null && Boolean(before) && !isBanned;
  if (account?.uid !== before?.uid) {
    forgetLists();
    if (isAdministrator(account)) countReports();
  }
  before = account;
  let page = /** @type {Page | undefined} */ (isBanned ? bannedPage : pages[at.path]);
  if (account === null && page && (!page.open || hasEnded && !entrances.includes(at.path))) {
    navigate(signInPath(), { replace: true });
    return;
  }
  if (account && (at.path === "/signin" || at.path === "/register")) {
    navigate(nextPath(), { replace: true });
    return;
  }
  if (page?.admin && !isAdministrator(account) || page?.needs && !at.query.get(page.needs)) page = undefined;
  if (!page) {
    show(at, { Page: Missing, title: "missing.title" });
    return;
  }
  const { title } = page;
  page.load().then(
    (module) => {
      show(at, { Page: module.default, title });
      if (!dropTarget.peek()) import("./parts/drop.js").then((part) => { dropTarget.value = part.default; }, () => {}); // the next page says what is wrong
    },
    async () => {
      const reason = await findReason();
      show(at, { Page: failed(() => t(reason)), title: "error.title" });
    },
  );
});

/**
 * Shows a page, if the URL still names it.
 * @param {import("./router.js").Place} at
 * @param {Shown} page
 */
function show(at, page) {
  if (target.peek() !== at) return;
  batch(() => {
    place.value = at;
    shown.value = page;
  });
}

/** Continues the session of this browser. Without an answer, the next page tries again. */
async function begin() {
  if (isStarting) return;
  isStarting = true;
  try {
    await start();
  } catch (error) {
    if (ban.peek()) return;
    if (user.peek() === null) words.then(() => notify(sentence(error), "failed"), () => {});
    else show(target.peek(), { Page: failed(() => sentence(error)), title: "error.title" });
  } finally {
    isStarting = false;
  }
}

/**
 * Finds out why a page cannot be loaded. The files of another release are at another address.
 * @returns {Promise<import("./words.js").Key>}
 */
async function findReason() {
  try {
    const { ok, status } = await fetch(import.meta.url, { method: "HEAD", cache: "no-store" });
    if (status === 404) return "error.release";
    return ok ? "error.unknown" : "error.unavailable";
  } catch {
    return "error.offline";
  }
}

/** @param {import("./session.js").User | null | undefined} account */
function isAdministrator(account) {
  return (account?.permission ?? 0) > 0;
}

/**
 * Returns a page that says what went wrong.
 * @param {() => string} reason as a sentence
 */
function failed(reason) {
  return () => html`<section class="narrow"><h1 tabindex="-1">${t("error.title")}</h1><p role="alert">${reason()}</p>
    <button type="button" class="main" onClick=${() => location.reload()}>${t("error.reload")}</button></section>`;
}

/**
 * The page, or what went wrong in it, until the URL names another one.
 * @param {{Page: any}} props
 */
function Boundary({ Page }) {
  const at = place.value;
  const [error, reset] = useErrorBoundary((error) => console.error(error));
  useEffect(() => reset, [at, Page]);
  return html`<${error ? Broken : Page} />`;
}

const Broken = failed(() => t("error.unknown"));

function Missing() {
  return html`<section class="narrow"><${Sitting} /><h1 tabindex="-1" class="none">${t("missing.title")}</h1><p class="none">${t("missing.text")}</p>
    <p class="buttons ways"><a class="button main" href=${href("/library")}>${t("closet.library")}</a></p></section>`;
}

effect(() => {
  if (language.value && shown.value.Page) document.title = (subject.value || t(shown.value.title)) + " · " + siteName;
});

const storedTheme = "veneer.theme";
/** @typedef {"system" | "light" | "dark"} Theme */
const theme = signal(/** @type {Theme} */ (recall(storedTheme) || "system"));
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  remember(storedTheme, theme.value);
});

/**
 * A choice between values. It goes back to the former one if that stays.
 * @param {{label: string, state: import("@preact/signals").Signal<string>, values: Record<string, string>, choose: (value: any) => Promise<void> | void}} props
 */
function Choice({ label, state, values, choose }) {
  return html`<label class="choice">
    <span>${label}</span>
    <select onChange=${async (/** @type {any} */ { currentTarget: select }) => {
      await choose(select.value);
      select.value = state.value;
    }}>
      ${Object.entries(values).map(([name, text]) => html`<option key=${name} value=${name} selected=${name === state.value}>${text}</option>`)}
    </select>
  </label>`;
}

/**
 * Shows the words of another language.
 * @param {import("./words.js").Language} chosen
 */
async function choose(chosen) {
  try {
    await load(chosen);
  } catch {
    notify(t(await findReason()), "failed");
  }
}

async function leave() {
  try {
    await signOut();
    navigate("/signin");
  } catch (error) {
    notify(sentence(error), "failed");
  }
}

/** @param {{paths: string[]}} props */
function Links({ paths }) {
  return paths.map((path) => {
    const { icon, title } = pages[path];
    return html`<a key=${path} class=${path.slice(1)} href=${href(path)} aria-current=${place.value.path === path ? "page" : undefined} data-count=${path === "/admin/reports" && openReports.value || undefined}>
      ${icon && html`<${Icon} name=${icon} />`}<span>${t(title)}</span></a>`;
  });
}

/** Leads to the notifications, with the number of those that are not read. @param {{unread: number}} props */
function Bell({ unread }) {
  return html`<a class="bell" href=${href("/notifications")} aria-label=${unread > 0 ? t("frame.unread", { n: unread }) : t("home.news")}>
    <${Icon} name="bell" />${unread > 0 && html`<b aria-hidden="true">${unread}</b>`}</a>`;
}

/** The menu of the user, or of a visitor. @param {{account: import("./session.js").User | null | undefined}} props */
function AccountMenu({ account }) {
  const face = account ? html`<${Picture} path=${account.avatar ? "/avatar/" + account.avatar : "/avatar/user/0"} parameter="size" size=${32} width=${32} alt="" />` : html`<${Icon} name="more" />`;
  return html`<${Menu} label=${t("frame.menu")} face=${face}>
    ${account && html`<p><bdi>${account.nickname}</bdi></p><${Links} paths=${["/account"]} />`}
    ${isAdministrator(account) && html`<p>${t("frame.administration")}</p><${Links} paths=${administration} />`}
    <${Choice} label=${t("theme.label")} state=${theme} values=${{ system: t("theme.system"), light: t("theme.light"), dark: t("theme.dark") }}
      choose=${(/** @type {Theme} */ value) => { theme.value = value; }} />
    <${Choice} label=${t("language.label")} state=${language} values=${languages} choose=${choose} />
    ${account && html`<button type="button" onClick=${leave}>${t("frame.signOut")}</button>`}
  </${Menu}>`;
}

let isFirst = true;

function Frame() {
  const { Page } = shown.value;
  const { path } = place.value;
  const account = user.value;
  useEffect(() => {
    // After a change of the page the keyboard and screen readers begin at its heading.
    if (!isFirst) /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
    isFirst = false;
    restoreScroll();
  }, [path, Page]);
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {MouseEvent} */ event) => {
      event.preventDefault(); // the fragment may be the token of a link
      document.getElementById("main")?.focus();
    }}>${t("frame.skip")}</a>
    ${isAnnounced && html`<aside class="announcement rich" aria-label=${t("frame.announcement")}>${rich.value?.(operator.announcement[language.value])}</aside>`}
    <header><div class="bar">
      <a class=${logo ? "brand" : "brand own"} href=${account ? href("/") : "/"}>${logo && html`<img src=${logo} alt="" width="28" height="28" />`}<bdi>${siteName}</bdi></a>
      <nav aria-label=${t("frame.pages")}><${Links} paths=${account ? navigation : openNavigation} /></nav>
      ${account?.unread !== undefined && html`<${Bell} unread=${account.unread} />`}
      ${!account && !entrances.includes(path) && !ban.value && html`<a class="button" href=${href(signInPath())}>${t("signin.title")}</a>`}
      <${AccountMenu} account=${account} />
    </div></header>
    <main id="main" tabindex="-1">
      ${pages[path]?.admin && isAdministrator(account) && html`<nav class="chips" aria-label=${t("frame.administration")}><${Links} paths=${administration} /></nav>`}
      <${Boundary} Page=${Page} />
    </main>
    <footer>
      <a href=${href("/connect")}>${t("connect.title")}</a><a href="/api/docs">${t("frame.api")}</a>
      ${operator.pages[language.value].map(({ name, title }) => html`<a key=${name} href=${sitePage(name)}><bdi>${title}</bdi></a>`)}
      ${operator.contact && html`<a href=${operator.contact}>${t("frame.contact")}</a>`}
    </footer>
    ${dropTarget.value && html`<${dropTarget.value} />`}
    <${Notices} />`;
}

// The first page takes the place of the sentence in the index page, once it can be drawn with its words.
let isDrawn = false;
effect(() => {
  if (isDrawn || !language.value || !shown.value.Page || isAnnounced && !rich.value) return;
  isDrawn = true;
  render(html`<${Frame} />`, document.body);
});
