// Files can be dropped anywhere on the console, and are uploaded then.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { navigate } from "../router.js";
import { t } from "../words.js";
import { html } from "./basics.js";
import { add } from "./upload.js";

/**
 * Takes files that are dropped on the page, but for those that an element of it takes, and none while a
 * dialog is open.
 */
export default function DropTarget() {
  const isOver = useSignal(false);

  useEffect(() => {
    const leaving = new AbortController();
    let isOwn = false; // a picture that is dragged within the page is a file, too
    const hasFiles = (/** @type {DragEvent} */ event) => !isOwn && Boolean(event.dataTransfer?.types.includes("Files"));
    const isBlocked = () => Boolean(document.querySelector("dialog[open]"));
    /**
     * @param {"dragstart" | "dragend" | "dragover" | "dragleave" | "drop"} type
     * @param {(event: DragEvent) => void} handle
     */
    const on = (type, handle) => addEventListener(type, handle, { signal: leaving.signal });
    on("dragstart", () => { isOwn = true; });
    on("dragend", () => { isOwn = false; });
    on("dragover", (event) => {
      if (!hasFiles(event)) return;
      isOver.value = !event.defaultPrevented && !isBlocked();
      if (event.defaultPrevented) return;
      event.preventDefault(); // otherwise the browser would show the file in place of the page
      if (event.dataTransfer) event.dataTransfer.dropEffect = isBlocked() ? "none" : "copy";
    });
    on("dragleave", (event) => {
      if (!event.relatedTarget) isOver.value = false; // it has left the window
    });
    on("drop", (event) => {
      isOver.value = false;
      if (event.defaultPrevented || !hasFiles(event)) return;
      event.preventDefault();
      if (isBlocked() || !event.dataTransfer?.files.length) return;
      add(event.dataTransfer.files);
      navigate("/upload");
    });
    return () => leaving.abort();
  }, []);

  return isOver.value && html`<div class="overlay" role="status"><p>${t("upload.drop")}</p></div>`;
}
