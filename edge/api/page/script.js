"use strict";
const form = document.querySelector("form");
const field = form.elements.player;
const status = document.getElementById("status");

// The addresses as they are in the page, with {subject} in place of the examples' own.
const pattern = (path) => path.replace("/" + form.dataset.subject, "/{subject}");
const addresses = [...document.querySelectorAll("code.address")].map((code) => [code, pattern(code.textContent)]);
const pictures = [...document.images].map((image) => [image, pattern(image.getAttribute("src"))]);

const uuid = /^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

function show(player) {
  const value = encodeURIComponent(player);
  const kind = uuid.test(player) ? "uuid" : "name";
  const values = { subject: form.dataset.subject };
  if (player) Object.assign(values, { subject: (kind === "uuid" ? "uuid/" : "player/") + value, [kind]: value });
  const fill = (path) => path.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  for (const [code, path] of addresses) code.textContent = fill(path);
  for (const [image, path] of pictures) image.src = image.parentElement.href = fill(path);
}

let timer;
function say(text, seconds) {
  clearTimeout(timer);
  status.textContent = text;
  if (seconds) timer = setTimeout(say, seconds * 1000, "");
}

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

addresses.forEach(([code], number) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const address = location.origin + code.textContent;
    say((await copy(address)) ? "Copied " + address : "Please copy it by hand: " + address, 10);
  });
  code.id = "address-" + number;
  button.id = "copy-" + number;
  button.setAttribute("aria-labelledby", button.id + " " + code.id);
  code.after(button);
});

for (const [image] of pictures) {
  image.addEventListener("error", () => say("This site has no such player, or it has no skin."));
}
for (const origin of document.querySelectorAll(".origin")) origin.textContent = location.origin;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  say("");
  show(field.value.trim());
});
form.hidden = false;
