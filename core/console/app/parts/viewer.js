// A figure in three dimensions, which skinview3d draws. That is loaded when the figure is asked for.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../words.js";
import { html, pictures } from "./basics.js";
import { capeSheet, newSheet, skinSheet } from "./sheet.js";

/** @typedef {"none" | "idle" | "walk" | "run"} Animation */
/** @typedef {"steve" | "alex" | "cape"} Type */
/** @typedef {() => Promise<ImageBitmap | HTMLImageElement>} Read loads the file of a texture */

/**
 * A texture on a figure, once the button is pressed; until then, and where it cannot be drawn, the children.
 * @param {{id: string, read: Read, type: Type, name: string, isOpen?: {value: boolean}, isSmall?: boolean, children?: any}} props id: of the file; isOpen: opens it from outside; isSmall: without a choice of animations
 */
export function Viewer({ id, read, type, name, isOpen: isOpenOutside, isSmall = false, children }) {
  const isOpenInside = useSignal(false);
  const isOpen = isOpenOutside ?? isOpenInside;
  const failure = useSignal("");
  return html`<div class="viewer">
    ${isOpen.value && !failure.value
      ? html`<${Figure} key=${id + type} read=${read} type=${type} name=${name} isSmall=${isSmall} onFailure=${(/** @type {string} */ text) => { failure.value = text; }} />`
      : html`<div class="stage">${children}</div>
        <div class="buttons">${!failure.value && html`<button type="button" aria-label=${isSmall ? t("viewer.openName", { name }) : undefined} onClick=${() => { isOpen.value = true; }}>${t("viewer.open")}</button>`}</div>`}
    <p class="quiet" role="status">${failure.value}</p>
  </div>`;
}

/** @param {{read: Read, type: Type, name: string, isSmall: boolean, onFailure: (text: string) => void}} props */
function Figure({ read, type, name, isSmall, onFailure }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const viewer = useSignal(/** @type {skinview3d.SkinViewer | null} */ (null));
  const hasBoth = useSignal(false); // a cape and an elytra
  const animation = useSignal(/** @type {Animation} */ ("idle"));
  const isPlaying = useSignal(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  const isTurning = useSignal(true); // slowly, until it is touched
  const isSeen = useSignal(false);
  const isElytra = useSignal(false);

  useEffect(() => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    const stage = /** @type {HTMLElement} */ (element.parentElement);
    let isGone = false;
    let isOnScreen = false;
    const look = () => { isSeen.value = isOnScreen && document.visibilityState === "visible"; };
    const screen = new IntersectionObserver((entries) => {
      isOnScreen = entries[entries.length - 1].isIntersecting;
      look();
    });
    const size = new ResizeObserver(() => {
      if (!stage.clientWidth) return; // it is on its way out of the page
      viewer.value?.setSize(stage.clientWidth, stage.clientHeight);
      viewer.value?.render();
    });
    // What was drawn is lost with the context, and a still figure is not drawn again by itself.
    const restored = () => viewer.value?.render();
    screen.observe(stage);
    size.observe(stage);
    document.addEventListener("visibilitychange", look);
    element.addEventListener("pointerdown", () => { isTurning.value = false; });
    element.addEventListener("webglcontextrestored", restored);
    open(element, read, type).then(
      (made) => {
        if (isGone) {
          close(made.viewer);
          return;
        }
        hasBoth.value = made.hasBoth;
        viewer.value = made.viewer;
      },
      (error) => {
        if (!isGone) onFailure(error instanceof NoWebGL ? t("viewer.noWebGL") : t("viewer.failed"));
      },
    );
    return () => {
      isGone = true;
      screen.disconnect();
      size.disconnect();
      document.removeEventListener("visibilitychange", look);
      if (viewer.value) close(viewer.value);
    };
  }, []);

  const { value: shown } = viewer;
  useEffect(() => {
    if (!shown) return;
    shown.animation = newAnimation(animation.value);
    shown.render();
  }, [shown, animation.value]);
  useEffect(() => {
    if (!shown) return;
    shown.autoRotate = isTurning.value;
    shown.renderPaused = !isPlaying.value || !isSeen.value || (animation.value === "none" && !isTurning.value);
    shown.render();
  }, [shown, animation.value, isTurning.value, isPlaying.value, isSeen.value]);

  /** @param {number} angle to the viewer's right */
  const turn = (angle) => {
    if (!shown) return;
    isTurning.value = false;
    shown.playerWrapper.rotation.y += angle;
    shown.render();
  };
  const choice = (/** @type {Animation} */ value, /** @type {string} */ text) => html`<button type="button" aria-pressed=${value === animation.value ? "true" : "false"}
    onClick=${() => {
      animation.value = value;
      isTurning.value = isTurning.value && value !== "none";
      isPlaying.value = true;
    }}>${text}</button>`;

  return html`<div class="stage" aria-busy=${shown ? undefined : "true"}><canvas ref=${canvas} role="img" aria-label=${t("viewer.figure", { name })} /></div>
    ${!isSmall && html`<div class="buttons" role="group" aria-label=${t("viewer.animation")}>
      ${choice("none", t("viewer.none"))}${choice("idle", t("viewer.idle"))}${choice("walk", t("viewer.walk"))}${choice("run", t("viewer.run"))}
    </div>`}
    <div class="buttons">
      <button type="button" disabled=${animation.value === "none"} onClick=${() => { isPlaying.value = !isPlaying.value; }}>${isPlaying.value ? t("viewer.pause") : t("viewer.play")}</button>
      <button type="button" aria-label=${t("viewer.turnLeft")} onClick=${() => turn(-Math.PI / 4)}>↶</button>
      <button type="button" aria-label=${t("viewer.turnRight")} onClick=${() => turn(Math.PI / 4)}>↷</button>
      ${hasBoth.value && html`<button type="button" aria-pressed=${isElytra.value ? "true" : "false"} onClick=${() => {
        isElytra.value = !isElytra.value;
        if (!shown) return;
        shown.playerObject.backEquipment = isElytra.value ? "elytra" : "cape";
        shown.render();
      }}>${t("viewer.elytra")}</button>`}
    </div>`;
}

/** @param {Animation} name */
function newAnimation(name) {
  switch (name) {
    case "none":
      return null;
    case "idle":
      return new skinview3d.IdleAnimation();
    case "walk":
      return new skinview3d.WalkingAnimation();
    case "run":
      return new skinview3d.RunningAnimation();
  }
}

/** The browser or the machine draws nothing in three dimensions. */
class NoWebGL extends Error {}

/**
 * Returns a function that loads the file of a texture.
 * @param {string} hash
 * @returns {Read}
 */
export function fileOf(hash) {
  return async () => {
    const image = new Image();
    image.crossOrigin = "anonymous";
    image.src = `${pictures}/textures/${hash}`;
    await image.decode();
    return image;
  };
}

/**
 * Makes a viewer, which draws nothing by itself yet.
 * @param {HTMLCanvasElement} canvas
 * @param {Read} read
 * @param {Type} type
 */
async function open(canvas, read, type) {
  // The library would report it to the console before it throws. It gets the same context.
  if (!canvas.getContext("webgl2", { antialias: false })) throw new NoWebGL();
  const [image] = await Promise.all([read(), import("../../vendor/skinview3d.js")]);
  const { clientWidth: width, clientHeight: height } = /** @type {HTMLElement} */ (canvas.parentElement);
  const viewer = new skinview3d.SkinViewer({ canvas, width, height, renderPaused: true });
  viewer.autoRotateSpeed = 0.6; // in radians a second: once around in 10 seconds
  viewer.controls.enableZoom = false; // the wheel and two fingers move the page
  canvas.style.touchAction = "pan-y";
  viewer.controls.addEventListener("change", () => {
    if (viewer.renderPaused) viewer.render();
  });
  if (type !== "cape") {
    const { sheet, drawing } = skinSheet(image);
    // It hides all layers of a sheet without transparency, and this texel is of no part of the figure.
    if (sheet.height === sheet.width) drawing.clearRect(0, 0, sheet.width / 64, sheet.width / 64);
    viewer.loadSkin(sheet, { model: type === "alex" ? "slim" : "default" });
    viewer.playerWrapper.rotation.y = -Math.PI / 8;
    return { viewer, hasBoth: false };
  }
  const { sheet, hasCape, hasElytra } = capeSheet(image);
  viewer.loadSkin(mannequin(), { model: "default" });
  viewer.loadCape(sheet, { backEquipment: hasElytra && !hasCape ? "elytra" : "cape" });
  viewer.playerWrapper.rotation.y = (Math.PI * 7) / 8; // seen from behind
  return { viewer, hasBoth: hasCape && hasElytra };
}

/** @param {skinview3d.SkinViewer} viewer */
function close(viewer) {
  viewer.dispose();
  viewer.renderer.forceContextLoss(); // browsers keep few contexts, and collect them late
}

/** The parts of a figure on a sheet: left, top, width, height, depth. */
const parts = [[0, 0, 8, 8, 8], [16, 16, 8, 12, 4], [40, 16, 4, 12, 4], [32, 48, 4, 12, 4], [0, 16, 4, 12, 4], [16, 48, 4, 12, 4]];

/** Returns the skin of a figure that wears a cape: grey, darker aside, and without layers. */
function mannequin() {
  const { sheet, drawing } = newSheet(64, 64);
  drawing.fillStyle = "#8f948a";
  drawing.fillRect(0, 0, 64, 64);
  for (const [x, y, width, height, depth] of parts) {
    drawing.fillStyle = "#757a70";
    drawing.fillRect(x, y + depth, depth, height);
    drawing.fillRect(x + depth + width, y + depth, depth, height);
    drawing.fillStyle = "#a5aa9f";
    drawing.fillRect(x + depth, y, width, depth);
  }
  return sheet;
}
