// What becomes of a collection: handing it in, the report, learning from it, tagging it again, taking it away.

import { byId, element } from "../dom.js";
import { exportCollection, getLearning, removeCollection, startLearning, tagAgain } from "./server.js";

const LOOK_AGAIN = 1500;

export class HandingIn {
  // `collection` and `name` give what is handed in and by whom; `removed` is told that it is gone.
  constructor({ collection, name, removed }) {
    Object.assign(this, { collection, name, removed });
    byId("hand-in").addEventListener("click", () => this.#open());
    byId("download").addEventListener("click", () => this.#try("hand-in-note", () => this.#download()));
    byId("learn").addEventListener("click", () => this.#try("learning", () => this.#learn()));
    byId("again").addEventListener("click", () => this.#try("collection-note", () => this.#again()));
    byId("remove").addEventListener("click", () => this.#try("collection-note", () => this.#remove()));
  }

  #open() {
    const id = this.collection();
    byId("report").href = `report/${id}`;
    byId("report-json").href = `../api/desk/collections/${id}/report`;
    for (const note of ["hand-in-note", "collection-note", "learning"]) byId(note).textContent = "";
    byId("hand-in-dialog").showModal();
    this.#try("learning", () => this.#watch());
  }

  // What an action says, or why it failed, stands beside its button.
  async #try(note, run) {
    try {
      byId(note).textContent = await run();
    } catch (error) {
      byId(note).textContent = error.message;
    }
  }

  async #download() {
    const { name, content } = await exportCollection(this.collection(), byId("format").value, byId("only-done").checked);
    const link = element("a", { href: URL.createObjectURL(content), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    return `Saved as ${name}.`;
  }

  async #learn() {
    const who = await this.name();
    if (!who) return "";
    await startLearning(who);
    return this.#watch();
  }

  async #watch() {
    const { running, problem, learned } = await getLearning();
    byId("learned").replaceChildren(...learned.map((report) => element("li", {}, ...described(report))));
    byId("learn").disabled = running;
    if (running && byId("hand-in-dialog").open) setTimeout(() => this.#try("learning", () => this.#watch()), LOOK_AGAIN);
    return running ? "Learning …" : problem || "";
  }

  async #again() {
    const { articles } = await tagAgain(this.collection());
    return articles ? `${articles.toLocaleString("en")} articles are tagged again.` : "There is none.";
  }

  async #remove() {
    if (!confirm("Take this collection off the desk, with everything that was decided on it?")) return "";
    await removeCollection(this.collection());
    byId("hand-in-dialog").close();
    await this.removed();
    return "";
  }
}

// A model that has learned: what its judges say, and how to use it.
function described({ at, out, joined, judging, verdict, before, after, interval, note }) {
  const figure = (value) => value.toFixed(3);
  const told = { better: "It got better", worse: "It got worse" }[verdict] ?? "Whether it got better can’t be told";
  const worth = judging
    ? `micro F1 ${figure(before.MiF)} before, ${figure(after.MiF)} after on ${judging} articles kept apart (95 % of the difference between ${figure(interval[0])} and ${figure(interval[1])})`
    : "no decided article was left to judge by";
  return [
    `${new Date(at).toLocaleString("en")}: ${joined} articles joined. ${told}: ${worth}. To use it, start the server with `,
    element("code", { textContent: `--model ${out}` }),
    judging && note ? element("p", { className: "note muted", textContent: note }) : "",
  ];
}
