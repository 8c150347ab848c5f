// A picture of a sheet that is not uploaded yet: the figure from the front and the back, drawn in the
// page.
import { useEffect, useRef } from "preact/hooks";
import { html } from "./basics.js";
import { capeFaces, capeSheet, skinSheet } from "./sheet.js";

/** Where a face is in the picture, and at which texels of the sheet its front and back are: x, y, width, height. */
const parts = [
  { at: [4, 0], base: [8, 8, 8, 8], back: [24, 8], over: [40, 8], overBack: [56, 8] }, // head
  { at: [4, 8], base: [20, 20, 8, 12], back: [32, 20], over: [20, 36], overBack: [32, 36] }, // body
  { at: [0, 8], base: [44, 20, 4, 12], back: [52, 20], over: [44, 36], overBack: [52, 36] }, // right arm
  { at: [12, 8], base: [36, 52, 4, 12], back: [44, 52], over: [52, 52], overBack: [60, 52], old: [44, 20], oldBack: [52, 20] }, // left arm
  { at: [4, 20], base: [4, 20, 4, 12], back: [12, 20], over: [4, 36], overBack: [12, 36] }, // right leg
  { at: [8, 20], base: [20, 52, 4, 12], back: [28, 52], over: [4, 52], overBack: [12, 52], old: [4, 20], oldBack: [12, 20] }, // left leg
];

/**
 * Draws the figure from the front, and from the back beside it, in units.
 * @param {CanvasRenderingContext2D} context
 * @param {HTMLCanvasElement} sheet
 * @param {boolean} isSlim
 */
function draw(context, sheet, isSlim) {
  const scale = sheet.width / 64;
  const isOld = sheet.height < sheet.width; // without layers but the hat; the left limbs mirror the right ones
  for (const { at, base, back, over, overBack, old, oldBack } of parts) {
    const isArm = at[1] === 8 && base[2] === 4;
    const isRight = at[0] === 0;
    const width = isArm && isSlim ? 3 : base[2];
    // A slim arm is at the body, and its back is one texel nearer to its front on the sheet.
    const x = isArm && isSlim && isRight ? at[0] + 1 : at[0];
    const nearer = base[2] - width;
    const height = base[3];
    /**
     * @param {number[]} from
     * @param {number} to
     * @param {boolean} [isMirrored]
     */
    const copy = ([left, top], to, isMirrored = false) => {
      context.save();
      context.translate(isMirrored ? to + width : to, at[1]);
      if (isMirrored) context.scale(-1, 1);
      context.drawImage(sheet, left * scale, top * scale, width * scale, height * scale, 0, 0, width, height);
      context.restore();
    };
    const behind = 36 - x - width; // the back shows the other side
    const isMirrored = isOld && Boolean(old);
    copy(isMirrored && old ? old : base, x, isMirrored);
    copy(isMirrored && oldBack ? oldBack : [back[0] - nearer, back[1]], behind, isMirrored);
    if (isOld && at[1] > 0) continue;
    copy(over, x); // of an old sheet the hat
    copy([overBack[0] - nearer, overBack[1]], behind);
  }
}

/**
 * Draws a cape from outside, and from inside beside it, in units; if it has no face, its elytra from
 * behind and from the front.
 * @param {CanvasRenderingContext2D} context
 * @param {ReturnType<typeof capeSheet>} cape
 */
function drawCape(context, { sheet, scale, isFaceless }) {
  /**
   * @param {number[]} face
   * @param {number} x
   * @param {number} y
   * @param {number} size how large a unit is drawn
   * @param {boolean} [isMirrored]
   */
  const copy = ([left, top, width, height], x, y, size, isMirrored = false) => {
    context.save();
    context.translate(isMirrored ? x + width * size : x, y);
    if (isMirrored) context.scale(-1, 1);
    context.drawImage(sheet, left * scale, top * scale, width * scale, height * scale, 0, 0, width * size, height * size);
    context.restore();
  };
  if (!isFaceless) {
    copy(capeFaces.outside, 0, 0, 1);
    copy(capeFaces.inside, 12, 0, 1);
    return;
  }
  const half = 0.5; // both wings together are as wide as a face of the cape
  for (const [wing, x, isRightFirst] of /** @type {[number[], number, boolean][]} */ ([[capeFaces.wingBehind, 0, false], [capeFaces.wingFront, 12, true]])) {
    copy(wing, x, 3, half, isRightFirst);
    copy(wing, x + 5, 3, half, !isRightFirst);
  }
}

/** How many units the pictures are wide and high. */
const sizes = { skin: [36, 32], cape: [22, 16] };

/**
 * A picture of a sheet: of a skin the figure, of a cape both sides.
 * @param {{sheet: ImageBitmap, type: import("./upload.js").Type, label: string}} props label: empty beside a text that says the same
 */
export function Figure({ sheet, type, label }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [width, height] = sizes[type === "cape" ? "cape" : "skin"];
  const scale = 8 * Math.max(1, Math.floor(sheet.width / 64));
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    if (type === "cape") drawCape(context, capeSheet(sheet));
    else draw(context, skinSheet(sheet).sheet, type === "alex");
  }, [sheet, type]);
  return html`<canvas ref=${canvas} class="figure-canvas" width=${width * scale} height=${height * scale} role=${label ? "img" : undefined} aria-label=${label || undefined} aria-hidden=${label ? undefined : "true"}></canvas>`;
}
