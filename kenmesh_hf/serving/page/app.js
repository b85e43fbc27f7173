// The page: an article goes in, its tags come out; the other files do the parts.

import { exportTags, findJournals, getExamples, getInfo, tagArticle } from "./api.js";
import { byId, element, say, suggest } from "./dom.js";
import { FilePicker } from "./files.js";
import { Filters } from "./filters.js";
import { TagList } from "./tags.js";
import { showText } from "./text.js";

const FIELDS = ["title", "abstract", "journal"];
const FILES = { json: "json", csv: "csv", ris: "ris", nbib: "nbib", pubmed: "txt", ovid: "txt" };
const number = (value) => value.toLocaleString("en");

const state = { info: null, filters: null, list: null, article: null, tags: [], shown: [], pmid: null, year: null };

async function start() {
  try {
    state.info = await getInfo();
  } catch (error) {
    return say("problem", error.message);
  }
  const { mesh_year: year, descriptors, version, limits } = state.info;
  byId("model").textContent = `${year ? `MeSH ${year} · ` : ""}${number(descriptors)} descriptors · version ${version}`;
  byId("curl").textContent = `curl ${new URL("api/tag", location)} -H 'Content-Type: application/json' \\
  -d '{"title": "…", "abstract": "…", "journal": "…", "evidence": true}'`;
  state.filters = new Filters(state.info, refresh);
  state.list = new TagList(state.info.categories, {
    opened: (tag) => showText(state.article, tag),
    branched: (branch, only) => state.filters.add(branch, only),
  });
  new FilePicker(limits, { picked: fill, chosen: tag });
  suggest(byId("journal"), byId("journal-names"), async (text) =>
    (await findJournals(text)).map(({ name, articles }) => ({ value: name, label: `${number(articles)} articles known` })),
  );
  listen();
  noteLength();
  showExamples(await getExamples().catch(() => []));
}

function listen() {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    tag();
  });
  byId("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) tag();
  });
  // Another text is another article: it must not go out under the PMID of the one that was picked.
  byId("form").addEventListener("input", () => Object.assign(state, { pmid: null, year: null }));
  byId("abstract").addEventListener("input", noteLength);
  byId("clear").addEventListener("click", () => {
    fill({});
    say("problem", "");
    byId("title").focus();
  });
  byId("edit").addEventListener("click", () => edit(true));
  byId("copy").addEventListener("click", () => takeAlong(copy));
  byId("download").addEventListener("click", () => takeAlong(download));
}

function showExamples(examples) {
  const buttons = examples.map((example) => {
    const button = element("button", { type: "button", className: "quiet example", textContent: example.name });
    button.addEventListener("click", () => {
      fill(example);
      tag();
    });
    return button;
  });
  byId("examples").replaceChildren(...buttons);
}

function fill(article) {
  for (const field of FIELDS) byId(field).value = article[field] || "";
  Object.assign(state, { pmid: article.pmid || null, year: article.year || null });
  noteLength();
}

function noteLength() {
  const words = byId("abstract").value.match(/\S+/g)?.length || 0;
  const { abstract_words: read } = state.info;
  byId("abstract-note").textContent =
    words > read ? `${number(words)} words; the model reads the first ${number(read)} or so.` : words ? `${number(words)} words` : "";
}

// What keeps an article from being sent, as a sentence; empty if nothing does.
function problemOf(article) {
  if (!article.title.trim() && !article.abstract.trim()) {
    return "There is no text to tag. Paste a title, an abstract or both, or take an example.";
  }
  const { title_characters: short, abstract_characters: long } = state.info.limits;
  for (const [field, most] of [["title", short], ["abstract", long], ["journal", short]]) {
    const size = article[field].length;
    if (size > most) return `The ${field} has ${number(size)} characters; shorten it to at most ${number(most)}.`;
  }
  return "";
}

async function tag() {
  const button = byId("tag");
  if (button.disabled) return;
  const article = Object.fromEntries(FIELDS.map((field) => [field, byId(field).value]));
  Object.assign(article, { pmid: state.pmid });
  const problem = problemOf(article);
  say("problem", problem);
  if (problem) return;
  button.disabled = true;
  button.textContent = "Tagging…";
  byId("results").setAttribute("aria-busy", "true");
  try {
    state.tags = await tagArticle(article);
    state.article = { ...article, year: state.year };
    state.list.clear();
    showText(state.article);
    edit(false);
    refresh();
    byId("results").focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) byId("results").scrollIntoView({ behavior: "smooth" });
  } catch (error) {
    say("problem", error.message);
  } finally {
    button.disabled = false;
    button.textContent = "Tag this article";
    byId("results").removeAttribute("aria-busy");
  }
}

function edit(editing) {
  byId("writing").hidden = !editing;
  byId("reading").hidden = editing;
  byId("edit").hidden = editing;
  byId("answer").hidden = false;
  byId("empty").hidden = true;
  if (editing) byId("title").focus();
}

function refresh() {
  if (!state.article) return;
  state.shown = state.filters.apply(state.tags);
  state.list.show(state.shown, state.article);
  byId("count").textContent = state.shown.length
    ? `${state.shown.length} of the ${state.tags.length} best descriptors`
    : "No descriptor is left. Lower the least score or remove a branch.";
  byId("export-note").textContent = "";
}

async function takeAlong(take) {
  const format = byId("format").value;
  try {
    const text = await exportTags(format, state.article, state.shown);
    byId("export-note").textContent = await take(text, `mesh-tags.${FILES[format]}`);
  } catch (error) {
    byId("export-note").textContent = error.message;
  }
}

async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
  } else {
    // Pages that come over plain HTTP from another machine have no clipboard; a selection can still be copied.
    const area = element("textarea", { value: text, className: "off-screen" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    byId("copy").focus();
  }
  return "Copied.";
}

function download(text, name) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return `Saved as ${name}.`;
}

start();
