// Collections: opening a file, choosing one, and how far it is.

import { byId, element, say } from "../dom.js";
import { HandingIn } from "./handing_in.js";
import { getDesk, openFile } from "./server.js";

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export class Collections {
  // `chosen` is told the number of the collection that is wanted, `name` gives who asks.
  constructor({ chosen, name, told }) {
    Object.assign(this, { chosen, name, told });
    this.current = null;
    byId("open-file").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", (event) => this.#open(event.target));
    byId("collection").addEventListener("change", ({ target }) => this.choose(Number(target.value)));
    new HandingIn({ collection: () => this.current, name, removed: () => this.start() });
  }

  async start() {
    const { collections } = await getDesk();
    this.#list(collections);
    const wanted = Number(new URLSearchParams(location.search).get("collection"));
    const known = collections.find(({ id }) => id === wanted) ?? collections[0];
    if (known) return this.choose(known.id);
    this.current = null;
    byId("list-pane").hidden = byId("article").hidden = byId("tags-pane").hidden = byId("progress").hidden = true;
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
}

function described(name, { articles, more, skipped }) {
  const lost = Object.values(skipped).reduce((sum, count) => sum + count, 0);
  const first = more ? "the first " : "";
  return `${name}: ${first}${plural(articles, "article")}${lost ? `, ${plural(lost, "record")} not readable` : ""}.`;
}
