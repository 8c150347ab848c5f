// A token given to "Authorize" lives as long as the page is open: it is not
// kept in the browser's storage, where it would outlive its purpose.
SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#viewer",
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null, // else the document would be sent to another host
});
