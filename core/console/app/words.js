// Words in the reader's language, and dates, numbers and plurals by Intl.
import { signal } from "@preact/signals";
import { asked, importWords, languageNames, preferred, remember, storedLanguage } from "./start.js";

/** @typedef {keyof typeof import("./words/en.js").default} Key */
/** @typedef {string | Partial<Record<Intl.LDMLPluralRule, string>>} Text */

/** The tag of a language for documents: with the script if that is not Latin, as zh-Hans. */
const tagOf = (/** @type {string} */ name) => {
  const { language, script } = new Intl.Locale(name).maximize();
  return script === "Latn" ? language : language + "-" + script;
};

/** The languages by their own names. */
export const languages = Object.fromEntries(languageNames
  .map((name) => [name, new Intl.DisplayNames(tagOf(name), { type: "language" }).of(tagOf(name)) ?? name]));

/** @typedef {import("./start.js").Language} Language */

/** @type {Record<Key, Text>} */
let words;

/** @type {[pattern: RegExp, text: string][]} */
let sentences = [];

/** The language of the words that are shown; empty until they are loaded. */
export const language = signal(/** @type {Language | ""} */ (""));

/** The locale of dates, numbers and sizes: the language, with the region that the browser has for it. */
let locale = "en";

/**
 * Returns the browser's locale of a language in the same script, as en-GB of en; zh-TW is none of zh.
 * @param {Language} language
 */
function localeOf(language) {
  const { language: wanted, script } = new Intl.Locale(language).maximize();
  return navigator.languages.find((name) => {
    try {
      const known = new Intl.Locale(name).maximize();
      return known.language === wanted && known.script === script;
    } catch {
      return false; // some browsers have names of POSIX there, as en-US@posix
    }
  }) ?? language;
}

/**
 * Loads a language, and keeps the choice; without one, that of the browser.
 * @param {Language} [chosen]
 */
export async function load(chosen = asked()) {
  const loaded = chosen ?? preferred();
  /** @type {{default: Record<Key, Text>, sentences?: Record<string, string>}} */
  const module = await importWords(loaded);
  if (chosen) remember(storedLanguage, chosen);
  locale = localeOf(loaded);
  words = module.default;
  sentences = Object.entries(module.sentences ?? {}).map(([sentence, text]) => [patternOf(sentence), text]);
  document.documentElement.lang = tagOf(loaded);
  language.value = loaded;
}

/**
 * Returns a pattern of the sentences that Go makes of a format.
 * @param {string} format
 */
function patternOf(format) {
  const verbs = /** @type {Record<string, string>} */ ({ "%d": "(-?\\d+)", "%%": "%" });
  return new RegExp("^" + format.replace(/%.|[.*+?^${}()|[\]\\]/g, (found) => found[0] === "%" ? (verbs[found] ?? "(.*)") : "\\" + found) + "$", "s");
}

/**
 * Returns a sentence of the API in the reader's language, or as it is if that language has none for it.
 * @param {string} sentence
 */
export function translate(sentence) {
  if (!language.value) return sentence; // what is shown follows the language
  for (const [pattern, text] of sentences) {
    const values = pattern.exec(sentence);
    if (values) return text.replace(/\{(\d)\}/g, (_, place) => isolated(values[Number(place)]));
  }
  return sentence;
}

/**
 * Returns words, with values in place of {names}. A value n chooses the plural.
 * @param {Key} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const text = language.value && words[key]; // what is shown follows the language
  const plural = typeof text === "string" ? text : (text[new Intl.PluralRules(language.value).select(Number(values.n))] ?? text.other ?? "");
  return plural.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : isolated(value ?? all);
  });
}

// Right-to-left letters, and the controls that change the direction.
const bidirectional = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Returns a text that leaves the order of the words around it as it is, as bdi does in HTML.
 * @param {string} text
 */
function isolated(text) {
  return bidirectional.test(text) ? "\u2068" + text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "") + "\u2069" : text;
}

/**
 * @param {number} value
 * @param {Intl.NumberFormatOptions} [options]
 */
export function number(value, options) {
  return language.value && new Intl.NumberFormat(locale, options).format(value); // what is shown follows the language
}

/**
 * Returns a time of the API, which is UTC, in milliseconds, as Date.now.
 * @param {string} text YYYY-MM-DD HH:MM:SS
 */
export const utc = (text) => Date.parse(text.replace(" ", "T") + "Z");

/**
 * Returns a time of the API as one of the reader's.
 * @param {string} text
 */
export function time(text) {
  return language.value && new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(utc(text));
}

/**
 * Returns a day of the API.
 * @param {string} text YYYY-MM-DD
 */
export function day(text) {
  return language.value && new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(utc(text + " 00:00:00"));
}

/**
 * Returns a size of the API.
 * @param {number} kibibytes
 */
export function size(kibibytes) {
  return number(kibibytes, { style: "unit", unit: "kilobyte", unitDisplay: "short" });
}

/**
 * Returns a number of bytes in kilobytes or megabytes.
 * @param {number} count
 */
export function bytes(count) {
  const isLarge = count >= 1 << 20;
  return number(count / (isLarge ? 1 << 20 : 1 << 10), { style: "unit", unit: isLarge ? "megabyte" : "kilobyte", maximumFractionDigits: 1 });
}

/**
 * Returns texts as a list of which one is meant.
 * @param {Iterable<string>} texts
 */
export function oneOf(texts) {
  return language.value && new Intl.ListFormat(locale, { type: "disjunction" }).format(texts);
}
