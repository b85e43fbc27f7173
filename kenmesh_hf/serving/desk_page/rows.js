// The list of a collection's articles: filters, a piece at a time, and which one is looked at.

import { byId, element } from "../dom.js";
import { DescriptorField } from "./choosing.js";
import { getRows } from "./server.js";

const PIECE = 100;
// Most articles that the server gives at once.
const LARGEST = 500;
const STATES = { todo: "", done: "done", skipped: "skipped" };
const number = (value) => value.toLocaleString("en");

export class Rows {
  // `picked` is told the number of the article that is wanted, `listed` the whole answer of the server.
  constructor({ picked, listed, failed }) {
    Object.assign(this, { picked, listed, failed });
    this.rows = [];
    this.total = 0;
    this.ended = true;
    this.collection = null;
    this.current = null;
    this.descriptor = null;
    this.asked = 0;
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    let timer;
    byId("words").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.reload(), 150);
    });
    for (const id of ["state", "sort"]) byId(id).addEventListener("change", () => this.reload());
    new DescriptorField(byId("descriptor"), { chosen: (found) => this.#filterBy(found) });
    byId("descriptor").addEventListener("input", () => !byId("descriptor").value && this.descriptor && this.#filterBy(null));
    byId("more").addEventListener("click", () => this.#more());
    byId("rows").addEventListener("scroll", ({ target }) => {
      if (target.scrollHeight - target.scrollTop - target.clientHeight < 200) this.#more();
    });
  }

  #filterBy(descriptor) {
    this.descriptor = descriptor;
    byId("descriptor").value = descriptor?.name ?? "";
    this.reload();
  }

  open(collection) {
    this.collection = collection;
    this.current = null;
    return this.reload();
  }

  async reload() {
    this.rows = [];
    await this.#load(0);
  }

  // After many changes: a short list is asked for anew; of a long one, whoever is far down stays there.
  async refresh() {
    if (this.rows.length <= PIECE) return this.#load(0);
    const { collection, asked } = this;
    const length = this.rows.length;
    for (let start = 0; start < length; start += LARGEST) {
      const found = await getRows(collection, { ...this.#filter(), start, limit: LARGEST });
      if (asked !== this.asked) return;
      this.update(found.articles);
    }
  }

  async #more() {
    if (!this.ended && !this.loading) await this.#load(this.rows.length);
  }

  #filter() {
    const [state, q, sort] = ["state", "words", "sort"].map((id) => byId(id).value.trim());
    return { state, q, ui: this.descriptor?.ui ?? "", sort };
  }

  async #load(start) {
    const turn = ++this.asked;
    this.loading = true;
    try {
      // Behind the last one and not at a place: what was decided meanwhile may no longer fit, so places move.
      const piece = start ? { after: this.rows[start - 1].id } : { start };
      const found = await getRows(this.collection, { ...this.#filter(), ...piece, limit: PIECE });
      if (turn !== this.asked) return;
      const before = this.rows.slice(0, start);
      const known = new Set(before.map(({ id }) => id));
      const fresh = found.articles.filter(({ id }) => !known.has(id));
      this.rows = [...before, ...fresh];
      // The number is that of the list as it was begun: what no longer fits stays in sight.
      if (!start) this.total = found.total;
      this.ended = !fresh.length || found.articles.length < PIECE || this.rows.length >= this.total;
      this.#draw(start);
      this.listed(found);
    } catch (error) {
      this.failed(error);
    } finally {
      if (turn === this.asked) this.loading = false;
    }
  }

  #draw(start = 0) {
    const items = this.rows.slice(start).map((row) => this.#item(row));
    if (start) byId("rows").append(...items);
    else byId("rows").replaceChildren(...items);
    byId("total").textContent = this.total ? number(this.total) : "None fits.";
    byId("more").hidden = this.ended;
  }

  #item(row) {
    const button = element("button", { type: "button", className: "row-button", id: `row-${row.id}` });
    button.addEventListener("click", () => this.picked(row.id));
    const item = element("li", {}, button);
    this.#fill(button, row);
    return item;
  }

  #fill(button, row) {
    const doubt = row.tagged ? `about ${row.doubt.toFixed(1)} doubtful` : "not tagged yet";
    const note = [row.pmid, row.problem ? "could not be tagged" : doubt].filter(Boolean).join(" · ");
    button.replaceChildren(
      element("span", { className: "row-title", textContent: row.title || "(no title)" }),
      element("span", { className: "row-state", textContent: STATES[row.state] }),
      element("span", { className: "row-note", textContent: note }),
    );
    button.setAttribute("aria-current", String(row.id === this.current));
  }

  // What others, or the tagging, changed; an article stays in sight even if the filter would no longer find it.
  update(changed) {
    const news = new Map(changed.map((row) => [row.id, row]));
    this.rows = this.rows.map((row) => {
      const now = news.get(row.id);
      if (now) this.#fill(byId(`row-${row.id}`), now);
      return now ?? row;
    });
  }

  mark(id) {
    byId(`row-${this.current}`)?.setAttribute("aria-current", "false");
    this.current = id;
    const button = byId(`row-${id}`);
    button?.setAttribute("aria-current", "true");
    button?.scrollIntoView({ block: "nearest" });
  }

  place() {
    return this.rows.findIndex((row) => row.id === this.current);
  }

  // The article so many places further on; null at either end.
  async beside(step) {
    const place = this.place() + step;
    if (place >= this.rows.length) await this.#more();
    return this.rows[place]?.id ?? null;
  }
}
