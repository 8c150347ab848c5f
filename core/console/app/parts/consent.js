// The box with which new users accept the terms of the site.
import { APIError, knownSite, siteAnew } from "../session.js";
import { t } from "../words.js";
import { html, sitePage } from "./basics.js";

/** Returns the fields of the box: none on a site without terms. */
export function consent() {
  const version = knownSite.value?.terms_version;
  const hint = html`<a href=${sitePage("terms")} target="_blank">${t("register.readTerms")}</a>`;
  return version ? [{ name: "terms_version", type: "checkbox", value: version, "aria-required": "true", label: t("register.accept"), hint }] : [];
}

/**
 * Reads the site anew if the terms have changed meanwhile.
 * @param {unknown} error of the registration
 */
export async function reconsider(error) {
  if (error instanceof APIError && error.fields.terms_version) await siteAnew();
}
