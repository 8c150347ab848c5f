// Where the document's walk-through says the address of a site, the page says that of its own.
const exampleSite = "http://127.0.0.1:8081";

// The operations come first. The text, which is long, stands below them.
function layout({ React }) {
  const element = React.createElement;
  function Page({ getComponent, specSelectors }) {
    if (specSelectors.loadingStatus() === "failed") {
      return element("div", { className: "swagger-ui wrapper" }, element(getComponent("errors", true)));
    }
    if (!specSelectors.specStr()) {
      return element("div", { className: "swagger-ui wrapper" }, "Loading …");
    }
    return element("div", { className: "swagger-ui" },
      element(getComponent("SvgAssets")),
      element("div", { className: "wrapper start" },
        element("p", null,
          "Open ", element("a", { href: "#/auth/login" }, "POST /api/auth/login"),
          " and execute it: from then on this page sends the token. With a token from elsewhere, use Authorize."),
        element(getComponent("AuthorizeBtnContainer", true))),
      element("main", { className: "wrapper" },
        element(getComponent("errors", true)),
        element(getComponent("operations", true)),
        element(getComponent("Models", true))),
      element("section", { id: "about", className: "wrapper" }, element(getComponent("InfoContainer", true))));
  }
  return {
    components: { Page },
    statePlugins: {
      spec: {
        wrapActions: { updateSpec: (update) => (text) => update(text.replaceAll(exampleSite, location.origin)) },
      },
    },
  };
}

// What signs in or out here does so for the page, too.
function follow(response) {
  const path = new URL(response.url, location.href).pathname;
  if (!path.startsWith("/api/auth/") || !response.ok) {
    return response;
  }
  const token = response.body?.token ?? response.body?.data?.token;
  if (token) {
    viewer.preauthorizeApiKey("bearer", token);
  } else if (path === "/api/auth/logout") {
    viewer.authActions.logout(["bearer"]);
  }
  return response;
}

// A token lives as long as the page is open: it is not kept in the browser's
// storage, where it would outlive its purpose.
const viewer = SwaggerUIBundle({
  url: document.getElementById("viewer").dataset.document,
  dom_id: "#viewer",
  plugins: [layout],
  layout: "Page",
  docExpansion: "none",
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  responseInterceptor: follow,
  validatorUrl: null, // else the document would be sent to another host
});

// The viewer looks at the address only when the page opens. Links to operations work later, too.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/")) {
    viewer.layoutActions.parseDeepLinkHash(location.hash);
  }
});
