// Opens a file of citations and lets one of its articles be picked.

import { readFile } from "./api.js";
import { byId, element, say } from "./dom.js";

const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export class FilePicker {
  // `picked` is told the article that is looked at, `chosen` that it is wanted (Enter or a double click).
  constructor(limits, { picked, chosen }) {
    this.limits = limits;
    this.articles = [];
    byId("open-file").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", (event) => this.#open(event.target));
    byId("close-file").addEventListener("click", () => this.#close());
    byId("loaded-filter").addEventListener("input", () => this.#list());
    const list = byId("loaded-list");
    list.addEventListener("change", () => picked(this.articles[Number(list.value)]));
    list.addEventListener("dblclick", chosen);
    list.addEventListener("keydown", (event) => event.key === "Enter" && list.value && chosen());
  }

  async #open(input) {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    say("problem", "");
    try {
      if (file.size > this.limits.file_bytes) {
        throw new Error(`${file.name} is larger than ${this.limits.file_bytes / 1e6} MB. Open a smaller file.`);
      }
      const found = await readFile(file);
      this.articles = found.articles;
      byId("loaded-note").textContent = describe(file.name, found);
      byId("loaded-filter").value = "";
      byId("loaded").hidden = false;
      this.#list();
      byId("loaded-list").focus();
    } catch (error) {
      say("problem", error.message);
    }
  }

  #close() {
    this.articles = [];
    byId("loaded").hidden = true;
    byId("open-file").focus();
  }

  #list() {
    const wanted = byId("loaded-filter").value.trim().toLowerCase();
    const options = this.articles.flatMap((article, position) => {
      const text = [article.pmid, article.title || article.abstract.slice(0, 80)].filter(Boolean).join(" · ");
      return text.toLowerCase().includes(wanted) ? [element("option", { value: position, textContent: text })] : [];
    });
    byId("loaded-list").replaceChildren(...options);
  }
}

function describe(name, { articles, more, skipped }) {
  const lost = Object.values(skipped).reduce((sum, count) => sum + count, 0);
  const first = more ? "the first " : "";
  return `${name}: ${first}${plural(articles.length, "article")}${lost ? `, ${plural(lost, "record")} not readable` : ""}`;
}
