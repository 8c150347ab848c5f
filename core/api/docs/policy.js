// Trusted Types: strings become markup only without elements and attributes that run, beside the Content-Security-Policy,
// which runs none of these either. Swagger UI needs no others.
const active = new RegExp([
  "</?(script|iframe|object|embed|base|form|meta|link|style|svg|math|template)\\b",
  "<[^>]*[\\s/\"']on\\w+\\s*=",
  "<[^>]*(javascript:|&#|&(tab|newline|colon);)",
].join("|"), "i");

globalThis.trustedTypes?.createPolicy("default", {
  createHTML(text) {
    if (active.test(text)) {
      throw new TypeError("The page has no such markup.");
    }
    return text;
  },
});
