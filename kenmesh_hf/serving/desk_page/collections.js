// Collections: opening a file, choosing one, how far it is, and handing it in.

import { byId, element, say } from "../dom.js";
import { exportCollection, getDesk, openFile } from "./server.js";

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export class Collections {
  // `chosen` is told the number of the collection that is wanted, `name` gives who asks.
  constructor({ chosen, name, told }) {
    Object.assign(this, { chosen, name, told });
    this.current = null;
    byId("open-file").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", (event) => this.#open(event.target));
    byId("collection").addEventListener("change", ({ target }) => this.choose(Number(target.value)));
    byId("hand-in").addEventListener("click", () => byId("hand-in-dialog").showModal());
    byId("download").addEventListener("click", () => this.#download());
  }

  async start() {
    const { collections } = await getDesk();
    this.#list(collections);
    const wanted = Number(new URLSearchParams(location.search).get("collection"));
    const known = collections.find(({ id }) => id === wanted) ?? collections[0];
    if (known) await this.choose(known.id);
  }

  #list(collections) {
    const options = collections.map(({ id, name, articles }) =>
      element("option", { value: id, textContent: `${name} (${articles.toLocaleString("en")})` }),
    );
    byId("collection").replaceChildren(...options);
    byId("collection").hidden = byId("hand-in").hidden = !collections.length;
    byId("nothing").hidden = collections.length > 0;
  }

  async choose(id) {
    this.current = id;
    byId("collection").value = id;
    history.replaceState(null, "", `?collection=${id}`);
    await this.chosen(id);
  }

  async #open(input) {
    const [file] = input.files;
    input.value = "";
    const who = file && (await this.name());
    if (!who) return;
    say("problem", "");
    this.told(`Reading ${file.name} …`);
    try {
      const opened = await openFile(file, who);
      this.#list((await getDesk()).collections);
      this.told(described(file.name, opened));
      await this.choose(opened.collection);
    } catch (error) {
      this.told("");
      say("problem", error.message);
    }
  }

  show({ articles, tagged, done, skipped, todo }) {
    byId("progress").hidden = false;
    const waits = tagged < articles ? `${tagged.toLocaleString("en")} of ${plural(articles, "article")} tagged · ` : "";
    byId("progress-text").textContent = `${waits}${done} done · ${skipped} skipped · ${todo} to do`;
    byId("bar").max = articles;
    byId("bar").value = tagged < articles ? tagged : done + skipped;
  }

  async #download() {
    const note = byId("hand-in-note");
    note.textContent = "";
    try {
      const { name, content } = await exportCollection(this.current, byId("format").value, byId("only-done").checked);
      const link = element("a", { href: URL.createObjectURL(content), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      note.textContent = `Saved as ${name}.`;
    } catch (error) {
      note.textContent = error.message;
    }
  }
}

function described(name, { articles, more, skipped }) {
  const lost = Object.values(skipped).reduce((sum, count) => sum + count, 0);
  const first = more ? "the first " : "";
  return `${name}: ${first}${plural(articles, "article")}${lost ? `, ${plural(lost, "record")} not readable` : ""}.`;
}
