import { useLayoutEffect, useRef } from "preact/hooks";
import { doubleClick } from "../router.js";
import { t } from "../words.js";
import { html } from "./basics.js";

/**
 * A dialog over the page. The browser keeps the focus within it; it is removed by Escape.
 * @param {{title: string, onClose: () => void, children?: any}} props
 */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const opened = useRef(performance.now());
  useLayoutEffect(() => { // before another key is pressed: it would move the focus on the page behind
    const shown = /** @type {HTMLDialogElement} */ (dialog.current);
    shown.showModal();
    // The first field of a form, or what is marked; the browser would take the button that closes.
    const first = shown.querySelector("form :is(input, textarea, select):not([hidden]), [data-first]") ?? shown.querySelector("h2");
    if (first instanceof HTMLElement) first.focus();
    if (first instanceof HTMLInputElement) first.select();
    return () => shown.close(); // what had the focus gets it back, but not when the element is only removed
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onCancel=${(/** @type {Event} */ event) => {
    event.preventDefault(); // it closes by being removed
    onClose();
  }} onPointerDown=${(/** @type {PointerEvent} */ { target, currentTarget, clientX: x, clientY: y, timeStamp }) => {
    if (timeStamp - opened.current < doubleClick) return;
    const shown = /** @type {HTMLDialogElement} */ (currentTarget);
    const { left, right, top, bottom } = shown.getBoundingClientRect();
    if (target !== shown || x >= left && x <= right && y >= top && y <= bottom) return;
    // It is beside the dialog. What was typed would be lost.
    const fields = /** @type {NodeListOf<HTMLInputElement>} */ (shown.querySelectorAll("input:not([hidden], [type=checkbox]), textarea"));
    if (![...fields].some((field) => field.value !== field.defaultValue)) onClose();
  }}>
    <div class="title">
      <h2 id="dialog-title" tabindex="-1">${title}</h2>
      <button type="button" class="plain" aria-label=${t("dialog.close")} onClick=${onClose}>×</button>
    </div>
    ${children}
  </dialog>`;
}

/**
 * Asks before what cannot be undone.
 * @param {{title: string, text: string, action: string, isHarmless?: boolean, onConfirm: () => void, onClose: () => void, children?: any}} props children: choices
 */
export function Confirm({ title, text, action, isHarmless = false, onConfirm, onClose, children }) {
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${text}</p>
    ${children}
    <div class="buttons">
      <button type="button" data-first onClick=${onClose}>${t("dialog.cancel")}</button>
      <button type="button" class=${isHarmless ? "main" : "danger"} onClick=${onConfirm}>${action}</button>
    </div>
  </${Dialog}>`;
}
