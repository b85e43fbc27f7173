// Sends decisions one after the other; what could not be sent yet is kept, and sent when the server is back.

import { sendDecision } from "./server.js";

const WAITING = "kenmesh-waiting";
const AGAIN = 1500;
// The desk's own refusals; all else (a token that is no longer known, a server without a desk) may pass.
const REFUSED = [404, 422];

// Pages that come over plain HTTP from another machine have no crypto.randomUUID.
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Saving {
  // `saved` gets the article as it is then, `conflict` the error and the decisions that wait on that article; it
  // says whether to insist.
  constructor({ saved, conflict, failed, waiting }) {
    Object.assign(this, { saved, conflict, failed, waiting });
    this.versions = new Map();
    this.asking = [];
    this.queue = JSON.parse(localStorage.getItem(WAITING) || "[]");
    this.#work();
  }

  know({ id, version }) {
    this.versions.set(id, version);
  }

  add(article, who, action, more = {}) {
    // What follows one's own decision on the same article was decided on what that one will make of it.
    const version = this.#waitingOn(article).length ? undefined : (this.versions.get(article) ?? 0);
    this.queue.push({ article, body: { key: newKey(), who, action, version, ...more } });
    this.#keep();
    this.#work();
  }

  get idle() {
    return !this.queue.length;
  }

  #waitingOn(article) {
    return this.queue.filter((item) => item.article === article);
  }

  // Whether everything is saved, once it is, or as soon as it turns out that it has to wait.
  settled() {
    return this.idle ? Promise.resolve(true) : new Promise((resolve) => this.asking.push(resolve));
  }

  #tellSettled(is) {
    for (const resolve of this.asking.splice(0)) resolve(is);
  }

  // Whoever leaves before the server has answered finds the decision here again.
  #keep() {
    localStorage.setItem(WAITING, JSON.stringify(this.queue));
  }

  async #work() {
    if (this.working) return;
    this.working = true;
    while (this.queue.length) await this.#send(this.queue[0]);
    this.working = false;
  }

  async #send(item) {
    item.body.version ??= this.versions.get(item.article) ?? 0;
    this.#keep();
    try {
      const article = await sendDecision(item.article, item.body);
      this.#drop();
      this.know(article);
      this.waiting(null);
      this.saved(article);
    } catch (error) {
      await this.#handle(error, item);
    }
  }

  async #handle(error, item) {
    if (error.status === 409) {
      this.know(error.body.article);
      const mine = this.#waitingOn(item.article);
      const insist = await this.conflict(error, mine.map(({ body }) => body));
      // What was decided after it was decided on the same sight of the article, so it goes with it.
      if (insist) item.body.version = error.body.article.version;
      else this.#drop(mine);
    } else if (REFUSED.includes(error.status)) {
      this.#drop();
      this.failed(error);
    } else {
      this.waiting(error);
      this.#tellSettled(false);
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }

  #drop(items = [this.queue[0]]) {
    this.queue = this.queue.filter((item) => !items.includes(item));
    this.#keep();
    if (this.idle) this.#tellSettled(true);
  }
}
