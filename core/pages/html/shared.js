// Copies addresses, and shows the figure in three dimensions when it is asked for.
const said = document.createElement("p");
said.className = "copied";
said.setAttribute("role", "status");
document.body.append(said);
const say = (text) => {
  said.textContent = text;
  setTimeout(() => { if (said.textContent === text) said.textContent = ""; }, 5000);
};

// Browsers have no clipboard for pages without TLS, other than that of a selection.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused.focus();
    return isCopied;
  }
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt()};`);
const { copied, byHand } = document.querySelector(".shared").dataset;
for (const buttons of document.querySelectorAll(".copy .buttons")) {
  buttons.hidden = false;
  const code = buttons.previousElementSibling;
  const { alt = "" } = code.dataset;
  const url = new URL(code.textContent, location.href).href;
  const forms = { url, html: `<img src="${escaped(url)}" alt="${escaped(alt)}">`, markdown: `![${alt.replace(/[[\]\\]/g, "\\$&")}](${url})` };
  for (const button of buttons.querySelectorAll("button")) {
    button.addEventListener("click", async () => {
      const text = forms[button.dataset.as];
      say((await copy(text)) ? copied : byHand + " " + text);
    });
  }
}

const stage = document.querySelector(".stage");
const figures = stage.querySelector(".figures");
const controls = stage.querySelector(".controls"); // null for a player that wears nothing
const [view, play] = stage.querySelectorAll("button");
const { console: files, skin, cape, model, label, failed, lost } = stage.dataset;

async function image(url) {
  const loaded = new Image();
  loaded.crossOrigin = "anonymous";
  loaded.src = url;
  await loaded.decode();
  return loaded;
}

async function show() {
  const canvas = document.createElement("canvas");
  // The library would report it to the console before it throws. It gets the same context.
  if (!canvas.getContext("webgl2", { antialias: false })) throw new Error(failed);
  const [{ skinSheet, capeSheet, light }, skinImage, capeImage] = await Promise.all([
    import(files + "/app/parts/sheet.js"), skin && image(skin), cape && image(cape), import(files + "/vendor/skinview3d.js"),
  ]);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  const { clientWidth: width, clientHeight: height } = figures;
  const viewer = new skinview3d.SkinViewer({ canvas, width, height, renderPaused: true });
  light(viewer);
  viewer.controls.enableZoom = false; // the wheel and two fingers move the page
  viewer.controls.addEventListener("change", () => viewer.renderPaused && viewer.render());
  if (skinImage) {
    const { sheet, drawing } = skinSheet(skinImage);
    // It hides all layers of a sheet without transparency, and this texel is of no part of the figure.
    if (sheet.height === sheet.width) drawing.clearRect(0, 0, sheet.width / 64, sheet.width / 64);
    viewer.loadSkin(sheet, { model });
    viewer.playerWrapper.rotation.y = -Math.PI / 8;
  }
  if (capeImage) {
    const { sheet, hasCape, hasElytra } = capeSheet(capeImage);
    viewer.loadCape(sheet, { backEquipment: hasElytra && !hasCape ? "elytra" : "cape" });
    if (!skinImage) viewer.playerWrapper.rotation.y = (Math.PI * 7) / 8; // seen from behind
  }
  viewer.animation = new skinview3d.WalkingAnimation();
  figures.replaceChildren(canvas);

  let isPlaying = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let isSeen = true;
  const update = () => {
    viewer.renderPaused = !isPlaying || !isSeen || document.visibilityState !== "visible";
    play.textContent = isPlaying ? play.dataset.pause : play.dataset.play;
    if (viewer.renderPaused) viewer.render();
  };
  new IntersectionObserver((entries) => { isSeen = entries.at(-1).isIntersecting; update(); }).observe(figures);
  new ResizeObserver(() => { viewer.setSize(figures.clientWidth, figures.clientHeight); viewer.render(); }).observe(figures);
  document.addEventListener("visibilitychange", update);
  play.addEventListener("click", () => { isPlaying = !isPlaying; update(); });
  play.hidden = false;
  update();
  play.focus();
}

if (controls) {
  controls.hidden = false;
  view.addEventListener("click", async () => {
    view.hidden = true;
    try {
      await show();
    } catch (error) {
      view.hidden = false;
      view.focus();
      say(error.message === failed ? failed : lost); // of another release the files are gone
    }
  });
}
