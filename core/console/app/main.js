// The frame of all pages: header, choices of theme and language, and the page that the URL names.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import { html, notify, Notices, sentence } from "./parts/basics.js";
import { here, href, navigate, place } from "./router.js";
import { signOut, start, user } from "./session.js";
import { language, languages, load, t } from "./words.js";

/** @typedef {{title: import("./words.js").Key, open?: boolean, admin?: boolean, load: () => Promise<{default: any}>}} Page open: for visitors; admin: for administrators only */

/** @type {Record<string, Page>} */
const pages = {
  "/": { title: "home.title", load: () => import("./pages/home.js") },
  "/players": { title: "players.title", load: () => import("./pages/players.js") },
  "/closet": { title: "closet.title", load: () => import("./pages/closet.js") },
  "/library": { title: "library.title", load: () => import("./pages/library.js") },
  "/texture": { title: "texture.title", load: () => import("./pages/texture.js") },
  "/signin": { title: "signin.title", open: true, load: () => import("./pages/signin.js") },
  "/register": { title: "register.title", open: true, load: () => import("./pages/register.js") },
  "/verify": { title: "verify.title", open: true, load: () => import("./pages/verify.js") },
  "/upload": { title: "upload.title", load: () => import("./pages/upload.js") },
  "/account": { title: "account.title", load: () => import("./pages/account.js") },
  "/reports": { title: "reports.title", load: () => import("./pages/reports.js") },
  "/score": { title: "score.title", load: () => import("./pages/score.js") },
  "/connect": { title: "connect.title", open: true, load: () => import("./pages/connect.js") },
  "/reset": { title: "reset.title", open: true, load: () => import("./pages/reset.js") },
  "/admin/reports": { title: "adminreports.title", admin: true, load: () => import("./pages/admin/reports.js") },
  "/admin/textures": { title: "admintextures.title", admin: true, load: () => import("./pages/admin/textures.js") },
  "/admin/users": { title: "adminusers.title", admin: true, load: () => import("./pages/admin/users.js") },
  "/admin/players": { title: "adminplayers.title", admin: true, load: () => import("./pages/admin/players.js") },
  "/admin/notifications": { title: "announce.title", admin: true, load: () => import("./pages/admin/notifications.js") },
  "/admin/audit": { title: "audit.title", admin: true, load: () => import("./pages/admin/audit.js") },
};

/** The pages that the header leads to. */
const navigation = ["/", "/players", "/closet", "/library", "/upload", "/account"];
const administration = ["/admin/reports", "/admin/textures", "/admin/users", "/admin/players", "/admin/notifications", "/admin/audit"];

/** The page that is shown, by its path. */
const shown = signal({ path: "", Page: /** @type {any} */ (null) });
/** Why there is no page, as a sentence. */
const failure = signal("");
/** What takes files that are dropped on any page; it is loaded after the first one. */
const dropTarget = signal(/** @type {any} */ (null));

effect(() => {
  const { path, query } = place.value;
  let page = /** @type {Page | undefined} */ (pages[path]);
  if (language.value === "" || failure.value) return;
  if (page && !page.open && user.value === undefined) return;
  if (page && !page.open && user.value === null) {
    navigate("/signin?next=" + encodeURIComponent(here()), { replace: true });
    return;
  }
  if (path === "/signin" && user.value) {
    const next = query.get("next");
    navigate(next?.startsWith("/") ? next : "/", { replace: true });
    return;
  }
  if (page?.admin && !isAdministrator(user.value)) page = undefined;
  document.title = (page ? t(page.title) : t("missing.title")) + " · Veneer";
  if (!page) {
    shown.value = { path, Page: Missing };
    return;
  }
  page.load().then(
    (module) => {
      if (place.peek().path === path) shown.value = { path, Page: module.default };
      if (!dropTarget.peek()) import("./parts/drop.js").then((part) => { dropTarget.value = part.default; }, () => {}); // the next page says what is wrong
    },
    () => {
      // The files of another release are at another address.
      failure.value = t("error.release");
    },
  );
});

/** @param {import("./session.js").User | null | undefined} account */
function isAdministrator(account) {
  return (account?.permission ?? 0) > 0;
}

function Missing() {
  return html`<section class="narrow"><h1 tabindex="-1">${t("missing.title")}</h1><p>${t("missing.text")}</p></section>`;
}

const storedTheme = "veneer.theme";
/** @typedef {"system" | "light" | "dark"} Theme */
const theme = signal(/** @type {Theme} */ (localStorage.getItem(storedTheme) ?? "system"));
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(storedTheme, theme.value);
});

/**
 * A choice between values.
 * @param {{label: string, value: string, values: Record<string, string>, onChange: (value: any) => void}} props
 */
function Choice({ label, value, values, onChange }) {
  return html`<label class="choice">
    <span class="hidden">${label}</span>
    <select value=${value} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.value)}>
      ${Object.entries(values).map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}
    </select>
  </label>`;
}

async function leave() {
  try {
    await signOut();
    navigate("/signin");
  } catch (error) {
    notify(sentence(error), "failed");
  }
}

/** @param {{label: string, paths: string[]}} props */
function Navigation({ label, paths }) {
  return html`<nav aria-label=${label}>${paths.map((path) => html`<a key=${path} href=${href(path)} aria-current=${place.value.path === path ? "page" : undefined}>
    ${t(pages[path].title)}</a>`)}</nav>`;
}

let isFirst = true;

function Frame() {
  const { path, Page } = shown.value;
  useEffect(() => {
    // After a change of the page the keyboard and screen readers begin at its heading.
    if (!isFirst) /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
    if (Page) isFirst = false;
  }, [path, Page]);
  if (language.value === "") return null;
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {MouseEvent} */ event) => {
      event.preventDefault(); // the fragment may be the token of a link
      document.getElementById("main")?.focus();
    }}>${t("frame.skip")}</a>
    <header>
      <a class="brand" href=${href("/")}>Veneer</a>
      ${user.value && html`<${Navigation} label=${t("frame.pages")} paths=${navigation} />`}
      <div class="tools">
        <${Choice} label=${t("theme.label")} value=${theme.value} values=${{ system: t("theme.system"), light: t("theme.light"), dark: t("theme.dark") }}
          onChange=${(/** @type {Theme} */ value) => { theme.value = value; }} />
        <${Choice} label=${t("language.label")} value=${language.value} values=${languages} onChange=${load} />
        ${user.value && html`<button type="button" onClick=${leave}>${t("frame.signOut")}</button>`}
      </div>
      ${isAdministrator(user.value) && html`<${Navigation} label=${t("frame.administration")} paths=${administration} />`}
    </header>
    <main id="main" tabindex="-1">
      ${failure.value
        ? html`<section class="narrow"><h1 tabindex="-1">${t("error.title")}</h1><p role="alert">${failure.value}</p>
            <button type="button" class="main" onClick=${() => location.reload()}>${t("error.reload")}</button></section>`
        : Page && html`<${Page} />`}
    </main>
    <footer><a href=${href("/connect")}>${t("connect.title")}</a> <a href="/api/docs">${t("frame.api")}</a></footer>
    ${dropTarget.value && html`<${dropTarget.value} />`}
    <${Notices} />`;
}

render(html`<${Frame} />`, document.body);
Promise.all([load(), start()]).catch(async (error) => {
  if (language.peek() === "") await load();
  if (user.peek() === null) notify(sentence(error), "failed");
  else failure.value = sentence(error);
});
