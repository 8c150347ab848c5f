// Trusted Types: strings become markup only without anything that runs. Swagger UI needs no others.
const active = /<\/?(script|iframe|object|embed|base|form|meta|link|style|svg|math|template)\b|[\s/"']on\w+\s*=|javascript:/i;

globalThis.trustedTypes?.createPolicy("default", {
  createHTML(text) {
    if (active.test(text)) {
      throw new TypeError("The page has no such markup.");
    }
    return text;
  },
});
