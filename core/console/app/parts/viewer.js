// A figure in three dimensions, which skinview3d draws. That is loaded when the figure is asked for.
import { useEffect, useId, useRef } from "preact/hooks";
import { signal, useSignal } from "@preact/signals";
import { request } from "../session.js";
import { t } from "../words.js";
import { html, pictures } from "./basics.js";
import { Icon } from "./menu.js";
import { capeSheet, light, newSheet, skinSheet } from "./sheet.js";

/** @typedef {"none" | "idle" | "walk" | "run"} Animation */
/** @typedef {"steve" | "alex" | "cape"} Type */
/** @typedef {{image: ImageBitmap | HTMLImageElement, type: Type}} Piece */
/** @typedef {() => Promise<Piece[]>} Read loads what the figure wears: a skin, a cape, or both */

/** The viewer that is open: one at a time, as browsers have few contexts; empty for none. */
export const shown3D = signal("");

/**
 * A figure that wears something, once the button is pressed; until then, and where it cannot be drawn, the children.
 * @param {{id: string, read: Read, name: string, viewer?: string, isEager?: boolean, isSmall?: boolean, isBehind?: boolean, children?: any}} props id: of what it wears; viewer: its name in shown3D; isEager: opens by itself; isSmall: with few buttons; isBehind: seen from there, as a cape alone is
 */
export function Viewer({ id, read, name, viewer, isEager = false, isSmall = false, isBehind = false, children }) {
  const own = useId();
  const self = viewer ?? own;
  const failure = useSignal("");
  const isFailed = useSignal(false);
  const isDrawn = useSignal(false);
  const isPressed = useRef(false);
  const isOpen = shown3D.value === self && !isFailed.value;
  useEffect(() => {
    if (isEager && !(/** @type {any} */ (navigator).connection?.saveData)) shown3D.value = self;
    return () => { if (shown3D.peek() === self) shown3D.value = ""; };
  }, [self]);
  return html`<div class="viewer">
    <div class=${"stage" + (isOpen && isDrawn.value ? " drawn" : "")} aria-busy=${isOpen && !isDrawn.value ? "true" : undefined}>
      <div class="poster">${children}</div>
      ${isOpen
        ? html`<${Figure} id=${id} read=${read} name=${name} isSmall=${isSmall} isBehind=${isBehind} isPressed=${isPressed.current} isDrawn=${isDrawn} onFailure=${(/** @type {string} */ text) => {
            if (!isPressed.current) { // nobody has asked for it yet
              shown3D.value = "";
              return;
            }
            isFailed.value = true;
            failure.value = text;
          }} />`
        : !isFailed.value && html`<button type="button" class="strip" aria-label=${isSmall ? t("viewer.openName", { name }) : undefined} title=${isSmall ? t("viewer.open") : undefined} onClick=${() => {
            isPressed.current = true;
            shown3D.value = self;
          }}><${Icon} name="cube" />${!isSmall && t("viewer.open")}</button>`}
    </div>
    <p class="quiet" role="status">${failure.value}</p>
  </div>`;
}

/** @param {{id: string, read: Read, name: string, isSmall: boolean, isBehind: boolean, isPressed: boolean, isDrawn: import("@preact/signals").Signal<boolean>, onFailure: (text: string) => void}} props */
function Figure({ id, read, name, isSmall, isBehind, isPressed, isDrawn, onFailure }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const strip = useRef(/** @type {HTMLElement | null} */ (null));
  const viewer = useSignal(/** @type {skinview3d.SkinViewer | null} */ (null));
  const worn = useSignal({ hasSkin: false, isSquare: false, hasBoth: false }); // hasBoth: a cape and an elytra
  const animation = useSignal(/** @type {Animation} */ ("idle"));
  const isPlaying = useSignal(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  const isTurning = useSignal(true); // slowly, until it is touched
  const isSeen = useSignal(false);
  const isElytra = useSignal(false);
  const hasLayers = useSignal(true);
  const isSlim = useSignal(false);
  const fail = (/** @type {unknown} */ error) => onFailure(error instanceof NoWebGL ? t("viewer.noWebGL") : t("viewer.failed"));

  useEffect(() => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    const screen = /** @type {HTMLElement} */ (element.parentElement);
    let isGone = false;
    let isOnScreen = false;
    const look = () => { isSeen.value = isOnScreen && document.visibilityState === "visible"; };
    const seen = new IntersectionObserver((entries) => {
      isOnScreen = entries[entries.length - 1].isIntersecting;
      look();
    });
    const size = new ResizeObserver(() => {
      if (!screen.clientWidth) return; // it is on its way out of the page
      viewer.value?.setSize(screen.clientWidth, screen.clientHeight);
      viewer.value?.render();
    });
    // What was drawn is lost with the context, and a still figure is not drawn again by itself.
    const restored = () => viewer.value?.render();
    seen.observe(screen);
    size.observe(screen);
    document.addEventListener("visibilitychange", look);
    element.addEventListener("pointerdown", () => { isTurning.value = false; });
    element.addEventListener("webglcontextrestored", restored);
    if (isPressed) strip.current?.querySelector("button")?.focus({ preventScroll: true }); // the button that was pressed is gone
    open(element, !isPressed).then(
      (made) => {
        if (isGone) close(made);
        else viewer.value = made;
      },
      (error) => { if (!isGone) fail(error); },
    );
    return () => {
      isGone = true;
      isDrawn.value = false;
      seen.disconnect();
      size.disconnect();
      document.removeEventListener("visibilitychange", look);
      if (viewer.value) close(viewer.value);
    };
  }, []);

  const { value: shown } = viewer;
  useEffect(() => {
    if (!shown) return;
    let isGone = false;
    read().then((pieces) => {
      if (isGone) return;
      worn.value = dress(shown, pieces);
      if (!isDrawn.value) shown.playerWrapper.rotation.y = isBehind || !worn.value.hasSkin ? (Math.PI * 7) / 8 : -Math.PI / 8;
      isElytra.value = shown.playerObject.backEquipment === "elytra";
      isSlim.value = pieces.some(({ type }) => type === "alex");
      shown.render();
      isDrawn.value = true;
    }).catch((error) => { if (!isGone) fail(error); });
    return () => { isGone = true; };
  }, [shown, id]);
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
  /**
   * @param {import("@preact/signals").Signal<boolean>} state
   * @param {string} text
   * @param {(shown: skinview3d.SkinViewer, isOn: boolean) => void} set
   */
  const toggle = (state, text, set) => html`<button type="button" aria-pressed=${state.value ? "true" : "false"} onClick=${() => {
    state.value = !state.value;
    if (!shown) return;
    set(shown, state.value);
    shown.render();
  }}>${text}</button>`;

  return html`<div class="screen"><canvas ref=${canvas} role="img" aria-label=${t("viewer.figure", { name })} /></div>
    <div ref=${strip} class="strip" role="group" aria-label=${t("viewer.controls")} data-repeat>
      <button type="button" disabled=${animation.value === "none"} aria-label=${isPlaying.value ? t("viewer.pause") : t("viewer.play")} onClick=${() => { isPlaying.value = !isPlaying.value; }}><${Icon} name=${isPlaying.value ? "pause" : "play"} /></button>
      <button type="button" aria-label=${t("viewer.turnLeft")} onClick=${() => turn(-Math.PI / 4)}><${Icon} name="left" /></button>
      <button type="button" aria-label=${t("viewer.turnRight")} onClick=${() => turn(Math.PI / 4)}><${Icon} name="right" /></button>
      ${!isSmall && html`<label><span class="hidden">${t("viewer.animation")}</span><select onChange=${(/** @type {any} */ event) => {
        animation.value = event.currentTarget.value;
        isTurning.value = isTurning.value && animation.value !== "none";
        isPlaying.value = true;
      }}>${Object.entries({ none: t("viewer.none"), idle: t("viewer.idle"), walk: t("viewer.walk"), run: t("viewer.run") }).map(([value, text]) => html`<option key=${value} value=${value} selected=${value === animation.value}>${text}</option>`)}</select></label>`}
      ${!isSmall && worn.value.hasSkin && toggle(hasLayers, t("viewer.layers"), ({ playerObject }, isOn) => playerObject.skin.setOuterLayerVisible(isOn))}
      ${!isSmall && worn.value.isSquare && toggle(isSlim, t("viewer.slim"), ({ playerObject }, isOn) => { playerObject.skin.modelType = isOn ? "slim" : "default"; })}
      ${worn.value.hasBoth && toggle(isElytra, t("viewer.elytra"), ({ playerObject }, isOn) => { playerObject.backEquipment = isOn ? "elytra" : "cape"; })}
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
 * Loads the file of a texture.
 * @param {{hash: string, type: Type}} texture
 * @returns {Promise<Piece>}
 */
export async function pieceOf({ hash, type }) {
  const image = new Image();
  image.crossOrigin = "anonymous";
  image.src = `${pictures}/textures/${hash}`;
  await image.decode();
  return { image, type };
}

/**
 * Loads textures by their numbers; 0 is none.
 * @param {number[]} tids
 */
export const outfitOf = (...tids) => Promise.all(tids.filter(Boolean).map(async (tid) => pieceOf(await request("GET", "/api/textures/" + tid))));

/**
 * Makes a viewer, which draws nothing by itself yet.
 * @param {HTMLCanvasElement} canvas
 * @param {boolean} isFast whether it is to fail where the processor would draw
 */
async function open(canvas, isFast) {
  // The library would report it to the console before it throws. It gets the same context.
  if (!canvas.getContext("webgl2", { antialias: false, failIfMajorPerformanceCaveat: isFast })) throw new NoWebGL();
  await import("../../vendor/skinview3d.js");
  const { clientWidth: width, clientHeight: height } = /** @type {HTMLElement} */ (canvas.parentElement);
  const viewer = new skinview3d.SkinViewer({ canvas, width, height, renderPaused: true });
  light(viewer);
  viewer.autoRotateSpeed = 0.6; // in radians a second: once around in 10 seconds
  viewer.controls.enableZoom = false; // the wheel and two fingers move the page
  canvas.style.touchAction = "pan-y";
  viewer.controls.addEventListener("change", () => {
    if (viewer.renderPaused) viewer.render();
  });
  return viewer;
}

/**
 * Puts textures on the figure of a viewer.
 * @param {skinview3d.SkinViewer} viewer
 * @param {Piece[]} pieces
 */
function dress(viewer, pieces) {
  const skin = pieces.find(({ type }) => type !== "cape");
  const cape = pieces.find(({ type }) => type === "cape");
  let isSquare = false;
  if (skin) {
    const { sheet, drawing } = skinSheet(skin.image);
    isSquare = sheet.height === sheet.width;
    // It hides all layers of a sheet without transparency, and this texel is of no part of the figure.
    if (isSquare) drawing.clearRect(0, 0, sheet.width / 64, sheet.width / 64);
    viewer.loadSkin(sheet, { model: skin.type === "alex" ? "slim" : "default" });
  } else viewer.loadSkin(mannequin(), { model: "default" });
  const hasSkin = Boolean(skin);
  if (!cape) {
    viewer.loadCape(null);
    return { hasSkin, isSquare, hasBoth: false };
  }
  const { sheet, hasCape, hasElytra } = capeSheet(cape.image);
  viewer.loadCape(sheet, { backEquipment: hasElytra && !hasCape ? "elytra" : "cape" });
  return { hasSkin, isSquare, hasBoth: hasCape && hasElytra };
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
  drawing.fillStyle = "#b9beb4";
  drawing.fillRect(0, 0, 64, 64);
  for (const [x, y, width, height, depth] of parts) {
    drawing.fillStyle = "#8d938a";
    drawing.fillRect(x, y + depth, depth, height);
    drawing.fillRect(x + depth + width, y + depth, depth, height);
    drawing.fillStyle = "#cdd2c8";
    drawing.fillRect(x + depth, y, width, depth);
  }
  return sheet;
}
