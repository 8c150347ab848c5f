import { useRef } from "preact/hooks";
import { t } from "../words.js";
import { html, notify } from "./basics.js";

/**
 * A text with a button that copies it.
 * @param {{text: string, label: string}} props label: what the button copies, for assistive technology
 */
export function Copy({ text, label }) {
  const shown = useRef(/** @type {HTMLElement | null} */ (null));
  async function copy() {
    try {
      await navigator.clipboard.writeText(text); // which plain HTTP lacks
      notify(t("copy.done"));
    } catch {
      if (shown.current) getSelection()?.selectAllChildren(shown.current);
      notify(t("copy.selected"), "failed");
    }
  }
  return html`<div class="copy">
    <code ref=${shown} dir="ltr">${text}</code>
    <button type="button" aria-label=${label} onClick=${copy}>${t("copy.action")}</button>
  </div>`;
}
