import { html, Reading, useRead } from "../parts/basics.js";
import { Copy } from "../parts/copy.js";
import { site } from "../session.js";
import { t } from "../words.js";

/** How to use the site in launchers and mods. */
export default function Connect() {
  const read = useRead(site);
  const { value: about } = read.value;

  return html`<section class="column">
    <h1 tabindex="-1">${t("connect.title")}</h1>
    <${Reading} ...${read} />
    ${about && html`<p>${t("connect.text")}</p>
      <${Launchers} path=${about.launchers ?? ""} />
      <${Mods} pictures=${about.textures_url ?? location.origin} />`}
  </section>`;
}

/** @param {{name: string, url: string}} props */
const Project = ({ name, url }) => html`<a href=${url} target="_blank" rel="noopener noreferrer">${name}</a>`;

/** @param {{path: string}} props path of the API of launchers, empty without one */
function Launchers({ path }) {
  const address = location.origin + path + "/";
  const link = "authlib-injector:yggdrasil-server:" + encodeURIComponent(address);
  if (!path) return html`<h2 class="below">${t("connect.launchers")}</h2><p class="card note">${t("connect.noLaunchers")}</p>`;
  return html`<h2 class="below">${t("connect.launchers")}</h2>
    <ol class="steps">
      <li>${t("connect.enter")} <${Copy} text=${address} label=${t("connect.copyAddress")} />
        <p class="drag">${t("connect.drag")} <span class="button dragged" draggable="true" onDragStart=${(/** @type {DragEvent} */ event) => {
          event.dataTransfer?.setData("text/plain", link);
          if (event.dataTransfer) event.dataTransfer.effectAllowed = "copy";
        }}>${t("connect.dragged")}</span></p></li>
      <li>${t("connect.signIn")}</li>
    </ol>
    <p class="links"><${Project} name="authlib-injector" url="https://github.com/yushijinhun/authlib-injector" /><${Project} name="HMCL" url="https://hmcl.huangyuhui.net" /></p>
    <h3>${t("connect.server")}</h3>
    <p>${t("connect.serverText")}</p>
    <${Copy} text=${`java -javaagent:authlib-injector.jar=${address} -jar server.jar`} label=${t("connect.copyCommand")} />`;
}

/** @param {{pictures: string}} props pictures: the address of pictures and of the files for games */
function Mods({ pictures }) {
  const { hostname } = new URL(pictures);
  const loader = JSON.stringify({ name: hostname, type: "CustomSkinAPI", root: pictures + "/csl/" }, null, 2);
  const uni = JSON.stringify({ rootURIs: [pictures + "/usm"], legacySkinURIs: [], legacyCapeURIs: [] }, null, 2);
  return html`<h2 class="below">${t("connect.mods")}</h2>
    <p>${t("connect.modsText")}</p>
    <h3><${Project} name="CustomSkinLoader" url="https://modrinth.com/mod/customskinloader" /></h3>
    <p>${t("connect.save")} <code dir="ltr">${`.minecraft/CustomSkinLoader/ExtraList/${hostname}.json`}</code></p>
    <${Copy} text=${loader} label=${t("connect.copyLoader")} />
    <h3>UniSkinMod</h3>
    <p>${t("connect.save")} <code dir="ltr">.minecraft/config/UniSkinMod/UniSkinMod.json</code></p>
    <${Copy} text=${uni} label=${t("connect.copyUni")} />
    <h3>${t("connect.others")}</h3>
    <p>${t("connect.othersText")}</p>
    <${Copy} text=${pictures + "/skin/{name}.png"} label=${t("connect.copySkin")} />
    <${Copy} text=${pictures + "/cape/{name}.png"} label=${t("connect.copyCape")} />
    <p>${t("connect.old")}</p>
    <${Copy} text=${pictures + "/legacy/{name}.png"} label=${t("connect.copyLegacy")} />`;
}
