import { useEffect } from "preact/hooks";
import { focusOn, html, notify, Picture, Reading, sentence, Sitting, Unverified, useRead, useSite } from "../parts/basics.js";
import { Dressed } from "../parts/dressed.js";
import { Notification } from "../parts/notification.js";
import { href } from "../router.js";
import { APIError, refreshUser, request, site, user } from "../session.js";
import { number, t, time, utc } from "../words.js";

/** @typedef {import("../parts/notification.js").Entry} Entry */

/** What a user has, and what is new. */
export default function Home() {
  const about = useSite();
  const read = useRead(async (signal) => {
    const get = (/** @type {string} */ path) => request("GET", path, undefined, signal);
    const [players, skins, capes, entries, newest] = await Promise.all([get("/api/players"), get("/api/closet?category=skin&perPage=1"), get("/api/closet?category=cape&perPage=1"), get("/api/notifications?perPage=100"), get("/api/textures?perPage=6"), site()]);
    return {
      players: /** @type {import("../parts/dressed.js").Player[]} */ (players), items: skins.total + capes.total,
      entries: /** @type {Entry[]} */ (entries.data).filter((entry) => !entry.read), newest: /** @type {import("../parts/keep.js").Texture[]} */ (newest.data),
    };
  });
  useEffect(() => {
    refreshUser(); // others may have liked a texture
  }, []);

  const account = user.value;
  if (!account) return null;
  const { value: have } = read.value;
  const title = html`<h1 tabindex="-1">${t("home.hello", { name: account.nickname })}</h1>`;
  // What came later would move what is there.
  if (!have || !about) return html`<section>${title}<${Reading} ...${read} /></section>`;
  const { quotas, rewards, costs } = about;
  const [player] = have.players;
  const hasEconomy = Object.values({ ...rewards, ...costs }).some((amount) => amount !== 0);
  return html`<section>
    ${title}
    ${!account.verified && about.mail && html`<div class="card note"><${Unverified} text=${t("home.unverified", { email: account.email })} /></div>`}
    <div class="home">
      <div class="card hero">
        ${player
          ? html`<h2><bdi>${player.name}</bdi></h2><${Dressed} player=${player} size=${400} />
            <a class=${"button " + (player.tid_skin ? "tonal" : "main")} href=${href(`/players?pid=${player.pid}&slot=skin`)}>${t("players.skin")}</a>`
          : html`<${Sitting} /><a class="button main" href=${href("/players")}>${t("players.add")}</a>`}
      </div>
      <div>
        ${(!player || have.items === 0) && html`<div class="card note">
          <h2>${t("home.begin")}</h2>
          <ol class="steps">
            ${!player && html`<li>${t("home.beginPlayer")} <a href=${href("/players")}>${t("home.players")}</a></li>`}
            ${have.items === 0 && html`<li>${t("home.beginSkin")} <a href=${href("/upload")}>${t("closet.upload")}</a> <a href=${href("/library")}>${t("closet.library")}</a></li>`}
            <li>${t("home.beginGame")} <a href=${href("/connect")}>${t("connect.title")}</a></li>
          </ol>
        </div>`}
        <h2>${t("home.news")}</h2>
        ${have.entries.length === 0 && !account.unread && html`<p class="quiet">${t("home.noNews")}</p>`}
        <ul class="list">${have.entries.map((entry) => html`<li key=${entry.id}><${Notification} ...${entry} /></li>`)}</ul>
        <p class="links"><a href=${href("/notifications")}>${t("home.allNews")}</a></p>
        <div class="cards">
          ${hasEconomy && html`<div class="card">
            <h2><a href=${href("/score")}>${t("home.score")}</a></h2>
            <p class="figure">${number(account.score)}</p>
            <${DailySignIn} next=${account.next_sign_at} reward=${rewards.sign_in} />
          </div>`}
          <div class="card">
            <h2>${t("home.have")}</h2>
            <dl class="counts">
              <dt><a href=${href("/players")}>${t("home.players")}</a></dt><dd>${used(have.players.length, quotas.players)}</dd>
              <dt><a href=${href("/closet")}>${t("home.closet")}</a></dt><dd>${used(have.items, quotas.closet_items)}</dd>
            </dl>
          </div>
        </div>
        ${have.newest.length > 0 && html`<h2>${t("home.newest")}</h2>
          <ul class="newest">${have.newest.map(({ tid, name, type }) => html`<li key=${tid}><a class="picture" href=${href("/texture?tid=" + tid)} aria-label=${name}>
            <${Picture} path=${(type === "cape" ? "/preview/" : "/body/") + tid} parameter="height" size=${type === "cape" ? 64 : 112} width=${type === "cape" ? 64 : 56} alt="" /></a></li>`)}</ul>`}
      </div>
    </div>
  </section>`;
}

/**
 * The sign-in for the day, where it earns something.
 * @param {{next: string, reward: number}} props next: from when on it is possible
 */
function DailySignIn({ next, reward }) {
  async function sign() {
    try {
      const { data } = await request("POST", "/api/user/sign");
      notify(t("home.gained", { n: data.gained }));
    } catch (error) {
      if (!(error instanceof APIError) || !error.data?.next_sign_at) { // else it was done in another tab
        notify(sentence(error), "failed");
        return;
      }
    }
    await refreshUser();
    focusOn("#signed");
  }

  if (reward === 0) return null;
  if (utc(next) > Date.now()) return html`<p id="signed" class="quiet" role="status" tabindex="-1">${t("home.next", { time: time(next) })}</p>`;
  return html`<button type="button" onClick=${sign}>${t("home.sign", { n: reward })}</button>`;
}

/**
 * Returns how many there are, of how many there may be if there is a quota.
 * @param {number} count
 * @param {number} [most]
 */
function used(count, most) {
  return most ? t("home.of", { used: count, most }) : number(count);
}
