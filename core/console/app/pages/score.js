import { useEffect } from "preact/hooks";
import { html, useSite } from "../parts/basics.js";
import { Pager, Results, useList } from "../parts/list.js";
import { href } from "../router.js";
import { refreshUser, user } from "../session.js";
import { number, t, time } from "../words.js";

/** @typedef {{time: string, amount: number, balance: number, reason: string, subject: string}} Change */

/** What changed the score. */
export default function Score() {
  const changes = useList("/api/user/score", { perPage: 20 });
  const about = useSite();
  useEffect(() => {
    refreshUser(); // others may have liked a texture
  }, []);
  const account = user.value;
  return html`<section class="column">
    <h1 tabindex="-1">${t("score.title")}</h1>
    ${account && html`<p>${t("score.now", { n: account.score })}</p>`}
    ${about && html`<${Tariff} ...${about} />`}
    <${Results} ...${changes} none=${t("score.none")}><a class="button main" href=${href("/")}>${t("home.title")}</a></${Results}>
    ${changes.list.value && changes.list.value.data.length > 0 && html`<table class="ledger">
      <thead><tr><th scope="col">${t("score.what")}</th><th scope="col" class="amount">${t("score.change")}</th><th scope="col" class="amount">${t("score.then")}</th></tr></thead>
      <tbody>${changes.list.value.data.map((/** @type {Change} */ change, /** @type {number} */ i) => html`<tr key=${i}>
        <td>${reasonOf(change)} ${textureOf(change)}<p class="quiet">${time(change.time)}</p></td>
        <td class="amount">${signed(change.amount)}</td>
        <td class="amount">${number(change.balance)}</td>
      </tr>`)}</tbody>
    </table>`}
    <${Pager} label=${t("score.pages")} list=${changes.list} />
  </section>`;
}

/** What earns points, and what costs some. @param {import("../session.js").Site} props */
function Tariff({ costs, rewards }) {
  const amounts = /** @type {[string, number][]} */ ([
    [t("score.sign"), rewards.sign_in], [t("score.ofUpload"), rewards.upload], [t("score.ofLike"), rewards.like],
    [t("score.ofPlayer"), -costs.player], [t("score.ofItem"), -costs.closet_item], [t("score.ofPublic"), -costs.texture_kib], [t("score.ofPrivate"), -costs.private_texture_kib],
  ]).filter(([, amount]) => amount !== 0);
  return amounts.length > 0 && html`<details class="card note"><summary>${t("score.tariff")}</summary>
    <dl class="counts">${amounts.map(([name, amount]) => html`<dt>${name}</dt><dd>${signed(amount)}</dd>`)}</dl></details>`;
}

/** @param {number} amount */
const signed = (amount) => number(amount, { signDisplay: "always" });

/**
 * A link to the texture that a change was about.
 * @param {Change} change
 */
function textureOf({ subject }) {
  const tid = /^texture:(\d+)$/.exec(subject)?.[1];
  return tid && html`<a href=${href("/texture?tid=" + tid)}>${t("score.texture", { tid })}</a>`;
}

/**
 * Returns why the score changed, in words.
 * @param {Change} change
 */
function reasonOf({ reason }) {
  switch (reason) {
    case "registration": return t("score.registration");
    case "opening": return t("score.opening");
    case "carried": return t("score.carried");
    case "player": return t("score.player");
    case "player_refund": return t("score.playerRefund");
    case "upload": return t("score.upload");
    case "texture_refund": return t("score.textureRefund");
    case "visibility": return t("score.visibility");
    case "closet_item": return t("score.closetItem");
    case "closet_item_refund": return t("score.closetItemRefund");
    case "upload_reward": return t("score.uploadReward");
    case "like": return t("score.like");
    case "sign": return t("score.sign");
    case "administrator": return t("score.administrator");
    default: return reason;
  }
}
