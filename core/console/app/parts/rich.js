// The HTML of notifications, as elements that are made one by one: the page's policy allows no HTML in
// text. The API writes it from Markdown, well-formed and with few kinds of elements.
import { h } from "preact";

const kept = new Set(["p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"]);
const empty = new Set(["br", "hr", "img", "input"]);

/** @type {Record<string, string>} */
const entities = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };

/** @param {string} text */
function decode(text) {
  return text.replace(/&(?:#(\d+)|#[xX]([0-9a-fA-F]+)|(\w+));/g, (all, decimal, hex, name) => {
    if (name) return entities[name] ?? all;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

/**
 * Returns an element, or only its children if the kind is not kept.
 * @param {string} name
 * @param {string} attributes
 * @param {any[]} children
 */
function element(name, attributes, children) {
  if (/^h[1-6]$/.test(name)) return h("h3", null, children);
  if (kept.has(name)) return h(name, null, empty.has(name) ? undefined : children);
  const href = decode(/\shref="([^"]*)"/.exec(attributes)?.[1] ?? "");
  if (name === "a" && /^(https?|mailto):/i.test(href)) return h("a", { href, target: "_blank", rel: "noopener noreferrer" }, children);
  return name === "img" ? decode(/\salt="([^"]*)"/.exec(attributes)?.[1] ?? "") : children;
}

/**
 * Returns the elements of HTML.
 * @param {string} content
 */
export function rich(content) {
  /** @type {{name: string, attributes: string, children: any[]}[]} */
  const open = [{ name: "", attributes: "", children: [] }];
  const close = () => {
    const { name, attributes, children } = /** @type {typeof open[0]} */ (open.pop());
    open[open.length - 1].children.push(element(name, attributes, children));
  };
  for (const [, slash, tag, attributes, text] of content.matchAll(/<(\/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s[^>]*)?)\/?>|([^<]+|<)/g)) {
    const name = tag?.toLowerCase();
    if (text) open[open.length - 1].children.push(decode(text));
    else if (!slash) {
      open.push({ name, attributes, children: [] });
      if (empty.has(name)) close();
    } else if (open.some((other) => other.name === name)) {
      while (open[open.length - 1].name !== name) close();
      close();
    }
  }
  while (open.length > 1) close();
  return open[0].children;
}
