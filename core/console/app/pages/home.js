import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { focusOn, html, notify, Picture, sentence } from "../parts/basics.js";
import { href } from "../router.js";
import { APIError, refreshUser, request, site, user } from "../session.js";
import { number, t, time } from "../words.js";

/** @typedef {{id: string, title: string}} Entry */

/** What a user has, and what is new. */
export default function Home() {
  const counts = useSignal(/** @type {{players: number, skins: number, capes: number} | undefined} */ (undefined));
  const entries = useSignal(/** @type {Entry[] | undefined} */ (undefined));
  const nextSign = useSignal("");
  const about = useSignal(/** @type {import("../session.js").Site | undefined} */ (undefined));
  const verification = useSignal(false);

  useEffect(() => {
    const leaving = new AbortController();
    const read = (/** @type {string} */ path) => request("GET", path, undefined, leaving.signal);
    Promise.all([
      read("/api/players"), read("/api/closet?category=skin&perPage=1"), read("/api/closet?category=cape&perPage=1"), read("/api/user/notifications"), site(),
    ]).then(([players, skins, capes, unread, said]) => {
      counts.value = { players: players.length, skins: skins.total, capes: capes.total };
      entries.value = unread;
      about.value = said;
    }).catch((error) => {
      if (!leaving.signal.aborted) notify(sentence(error), "failed");
    });
    return () => leaving.abort();
  }, []);

  async function sign() {
    try {
      const { data } = await request("POST", "/api/user/sign");
      nextSign.value = data.next_sign_at;
      focusOn("#signed");
      notify(data.gained ? t("home.gained", { n: data.gained }) : t("home.signed"));
      await refreshUser();
    } catch (error) {
      if (error instanceof APIError && error.data?.next_sign_at) {
        nextSign.value = error.data.next_sign_at; // it was done in another tab
        focusOn("#signed");
      } else notify(sentence(error), "failed");
    }
  }

  async function verify() {
    try {
      await request("POST", "/api/user/verification");
      verification.value = true;
      focusOn("#verification");
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }

  const account = user.value;
  if (!account) return null;
  const quotas = about.value?.quotas;
  return html`<section>
    <h1 tabindex="-1">${t("home.hello", { name: account.nickname })}</h1>
    ${!account.verified && about.value?.mail && html`<div class="card note">
      <p id="verification" tabindex="-1">${verification.value ? t("home.verificationSent", { email: account.email }) : t("home.unverified", { email: account.email })}</p>
      ${!verification.value && html`<button type="button" onClick=${verify}>${t("home.verify")}</button>`}
    </div>`}
    <div class="cards">
      <div class="card">
        <h2>${t("home.score")}</h2>
        <p class="figure">${number(account.score)}</p>
        ${nextSign.value
          ? html`<p id="signed" class="quiet" role="status" tabindex="-1">${t("home.next", { time: time(nextSign.value) })}</p>`
          : html`<button type="button" onClick=${sign}>${t("home.sign")}</button>`}
      </div>
      <div class="card">
        <h2>${t("home.have")}</h2>
        <dl class="counts">
          <dt><a href=${href("/players")}>${t("home.players")}</a></dt><dd>${used(counts.value?.players, quotas?.players)}</dd>
          <dt>${t("home.skins")}</dt><dd>${used(counts.value?.skins)}</dd>
          <dt>${t("home.capes")}</dt><dd>${used(counts.value?.capes)}</dd>
          <dt>${t("home.closet")}</dt><dd>${used(counts.value && counts.value.skins + counts.value.capes, quotas?.closet_items)}</dd>
        </dl>
      </div>
      <div class="card">
        <h2>${t("home.avatar")}</h2>
        <${Picture} path=${account.avatar ? "/avatar/" + account.avatar : "/avatar/user/0"} parameter="size" size=${96} width=${96} alt="" />
      </div>
    </div>
    <h2>${t("home.news")}</h2>
    ${entries.value?.length === 0 && html`<p class="quiet">${t("home.noNews")}</p>`}
    <ul class="list">${entries.value?.map((entry) => html`<li key=${entry.id}><${Notification} ...${entry} /></li>`)}</ul>
  </section>`;
}

/**
 * Returns how many there are, of how many there may be if there is a quota.
 * @param {number | undefined} count undefined as long as it is not known
 * @param {number} [most]
 */
function used(count, most) {
  if (count === undefined) return "…";
  return most ? t("home.of", { used: count, most }) : number(count);
}

/**
 * A notification, which is read when it is opened.
 * @param {Entry} props
 */
function Notification({ id, title }) {
  const opened = useSignal(/** @type {{content: any, time: string} | undefined} */ (undefined));
  async function open() {
    try {
      const [read, { rich }] = await Promise.all([request("POST", "/api/user/notifications/" + id), import("../parts/rich.js")]);
      opened.value = { content: rich(read.content), time: read.time };
      focusOn("#notification-" + id);
    } catch (error) {
      notify(sentence(error), "failed");
    }
  }
  if (!opened.value) return html`<button type="button" class="row" aria-expanded="false" onClick=${open}><bdi>${title}</bdi></button>`;
  return html`<article class="card">
    <h3 id=${"notification-" + id} tabindex="-1"><bdi>${title}</bdi></h3>
    <p class="quiet">${time(opened.value.time)}</p>
    <div class="rich">${opened.value.content}</div>
  </article>`;
}
