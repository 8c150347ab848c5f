// The address in the document's examples. The page replaces it by its own.
const exampleSite = "http://127.0.0.1:8081";

// The operations come first, and the long introduction below them.
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

// A log-in or log-out by one of the operations also sets or clears the page's token.
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

// The token is not persisted in the browser's storage: it is lost when the page closes.
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

// Swagger UI reads the address only when the page opens. This makes links to operations work later, too.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/")) {
    viewer.layoutActions.parseDeepLinkHash(location.hash);
  }
});
