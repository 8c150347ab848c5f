// The sheet of a texture as games and our pictures read it, whatever the file says.

/**
 * @param {number} width
 * @param {number} height
 */
export function newSheet(width, height) {
  const sheet = document.createElement("canvas");
  sheet.width = width;
  sheet.height = height;
  return { sheet, drawing: /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d", { willReadFrequently: true })) };
}

/**
 * Reports whether a rectangle is transparent.
 * @param {CanvasRenderingContext2D} drawing
 * @param {number[]} rectangle left, top, width, height
 */
function isBlank(drawing, [x, y, width, height]) {
  return drawing.getImageData(x, y, width, height).data.every((value, i) => i % 4 < 3 || value === 0);
}

/** The parts of a skin without layers, which are opaque. */
const opaque = [[0, 0, 32, 16], [0, 16, 64, 16], [16, 48, 32, 16]];

/**
 * Returns the sheet of a skin by the rules of games. A hat is hidden if the sheet is half as high as wide
 * and no alpha of its right half is below 128; what is no layer is opaque.
 * @param {ImageBitmap | HTMLImageElement} image
 */
export function skinSheet(image) {
  const { width, height } = image;
  const copy = newSheet(width, height);
  const { drawing } = copy;
  drawing.drawImage(image, 0, 0);
  const k = width / 64;
  if (height < width) {
    const { data } = drawing.getImageData(32 * k, 0, 32 * k, 32 * k);
    if (data.every((value, i) => i % 4 < 3 || value >= 128)) drawing.clearRect(32 * k, 0, 32 * k, 16 * k);
  }
  for (const [x, y, w, h] of opaque) {
    if (y * k >= height) continue;
    const part = drawing.getImageData(x * k, y * k, w * k, h * k);
    for (let i = 3; i < part.data.length; i += 4) part.data[i] = 255;
    drawing.putImageData(part, x * k, y * k);
  }
  return copy;
}

/** The faces of a cape and of the left wing of an elytra: left, top, width, height, in units. */
export const capeFaces = { outside: [1, 1, 10, 16], inside: [12, 1, 10, 16], wingBehind: [36, 2, 10, 20], wingFront: [24, 2, 10, 20] };

/**
 * Returns the sheet of a cape, twice as wide as high, with the pixels to a unit and what is on it.
 * @param {ImageBitmap | HTMLImageElement} image which may end beside the cape, or below the elytra
 */
export function capeSheet(image) {
  const { width, height } = image;
  const k = width === 2 * height ? width / 64 : width * 17 === height * 22 ? width / 22 : width / 46;
  const copy = newSheet(64 * k, 32 * k);
  copy.drawing.drawImage(image, 0, 0);
  const scaled = (/** @type {number[]} */ rectangle) => rectangle.map((value) => value * k);
  return {
    ...copy,
    scale: k,
    hasCape: !isBlank(copy.drawing, scaled([0, 0, 22, 17])),
    hasElytra: !isBlank(copy.drawing, scaled([22, 0, 24, 22])),
    isFaceless: [capeFaces.outside, capeFaces.inside].every((face) => isBlank(copy.drawing, scaled(face))),
  };
}

/**
 * Sets the lights of a viewer. Surfaces reflect 1/π. The light at the viewer's upper left shows the front as it is, and the other
 * side darker.
 * @param {skinview3d.SkinViewer} viewer
 */
export function light(viewer) {
  viewer.globalLight.intensity = 0.6 * Math.PI;
  viewer.cameraLight.intensity = 0.7 * Math.PI;
  viewer.cameraLight.decay = 0;
  viewer.cameraLight.position.set(-60, 60, 0);
}
