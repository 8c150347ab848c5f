// Icons, and buttons that open a menu.
import { useEffect, useId, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { html } from "./basics.js";

/** Lines in a square of 20 units. */
const paths = {
  bell: "M5 8a5 5 0 0 1 10 0c0 4 1.5 6 1.5 6h-13S5 12 5 8M8 17h4",
  close: "M5 5l10 10M15 5L5 15",
  cube: "M10 2.5l6.5 3.7v7.6L10 17.5l-6.5-3.7V6.2zM3.5 6.2L10 10l6.5-3.8M10 10v7.5",
  grid: "M3 3h5.5v5.5H3zM11.5 3H17v5.5h-5.5zM3 11.5h5.5V17H3zM11.5 11.5H17V17h-5.5z",
  heart: "M10 16.5C4 12.5 2.5 10 2.5 7.5a3.7 3.7 0 0 1 7.5-1 3.7 3.7 0 0 1 7.5 1c0 2.5-1.5 5-7.5 9z",
  hanger: "M8 5.5a2 2 0 1 1 3 1.7q-1 .6-1 1.8l7.5 5.2q1 1.8-1 1.8h-13q-2 0-1-1.8L10 9",
  home: "M3 9l7-6 7 6v8h-5v-5H8v5H3z",
  left: "M4 3.5v4.5h4.5M4.5 8a6.5 6.5 0 1 1-.5 4.5",
  more: "M4 9.5h1v1H4zM9.5 9.5h1v1h-1zM15 9.5h1v1h-1z",
  pause: "M7 4v12M13 4v12",
  pen: "M3.5 16.5l1-4 9-9 3 3-9 9z",
  play: "M6 4l10 6-10 6z",
  player: "M7 2.5h6v6H7zM4 17.5v-6h12v6",
  plug: "M7 2.5V7M13 2.5V7M4.5 7h11v2a5.5 5.5 0 0 1-11 0zM10 14.5v3",
  plus: "M10 4v12M4 10h12",
  right: "M16 3.5V8h-4.5M15.5 8a6.5 6.5 0 1 0 .5 4.5",
  upload: "M10 13V3.5M6 7l4-4 4 4M3.5 13v3.5h13V13",
};

/** @typedef {keyof typeof paths} IconName */

/** @param {{name: IconName}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}

/**
 * A button with a menu below it, or above it. It closes by Escape, and by what is pressed in it or besides it.
 * @param {{label: string, face: any, isAbove?: boolean, children?: any}} props face: what the button shows
 */
export function Menu({ label, face, isAbove = false, children }) {
  const isOpen = useSignal(false);
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const id = useId();
  const close = () => { isOpen.value = false; };
  const focus = () => root.current?.querySelector("button")?.focus();
  useEffect(() => {
    if (!isOpen.value) return;
    const leaving = new AbortController();
    const options = { signal: leaving.signal };
    const look = (/** @type {Event} */ event) => { if (!root.current?.contains(/** @type {Node} */ (event.target))) close(); };
    addEventListener("pointerdown", look, options);
    addEventListener("focusin", look, options);
    addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      close();
      focus();
    }, options);
    return () => leaving.abort();
  }, [isOpen.value]);
  return html`<div ref=${root} class="menu">
    <button type="button" class="plain" aria-label=${label} aria-expanded=${isOpen.value ? "true" : "false"} aria-controls=${id} onClick=${() => { isOpen.value = !isOpen.value; }}>${face}</button>
    <div id=${id} class=${isAbove ? "above" : ""} hidden=${!isOpen.value} onClickCapture=${(/** @type {MouseEvent} */ event) => {
      if (!(/** @type {Element} */ (event.target)).closest("a, button")) return;
      focus(); // a dialog gives the focus back to what had it
      close();
    }}>${children}</div>
  </div>`;
}
