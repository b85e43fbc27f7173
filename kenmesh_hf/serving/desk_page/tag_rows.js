// The headings of an article: what the model proposes, what was decided, and buttons to decide.

import { byId, element } from "../dom.js";
import { placeInMesh, reasonsOf } from "../reasons.js";
import { getReasons } from "./server.js";

const DECIDED = { accepted: "accepted", struck: "struck out", added: "added" };

export class TagRows {
  // `decide` is told an action and its descriptor, `opened` the tag (with reasons) that is looked at, or null.
  constructor({ decide, qualify, opened, hasQualifiers }) {
    Object.assign(this, { decide, qualify, opened, hasQualifiers });
    this.current = null;
    this.open = null;
    this.reasons = null;
    for (const id of ["proposals", "suggestions"]) {
      byId(id).addEventListener("focusin", ({ target }) => this.#mark(target.closest("li")?.dataset.ui));
    }
  }

  // A new article begins at its first tag; the same one, changed, stays where it was.
  show(article) {
    const same = article.id === this.article?.id;
    const focused = document.activeElement?.closest?.(".decision")?.dataset.ui;
    const act = document.activeElement?.dataset?.act;
    this.article = article;
    if (!same) Object.assign(this, { reasons: null, open: null, current: null });
    const listed = (wanted) => article.tags.filter((tag) => (tag.proposed || tag.decision === "added") === wanted);
    byId("proposals").replaceChildren(...listed(true).map((tag) => this.#item(tag)));
    byId("suggestions").replaceChildren(...listed(false).map((tag) => this.#item(tag)));
    byId("suggestions-heading").hidden = !listed(false).length;
    if (!article.tags.some((tag) => tag.ui === this.current)) this.current = article.tags[0]?.ui ?? null;
    this.#mark(this.current);
    if (same && focused) (byId(`act-${focused}-${act}`) || byId(`tag-${focused}`) || byId("tags-pane")).focus();
  }

  get tag() {
    return this.article?.tags.find((tag) => tag.ui === this.current);
  }

  #item(tag) {
    const item = element("li", { className: "decision" });
    item.dataset.ui = tag.ui;
    item.classList.toggle("kept", tag.kept);
    item.classList.toggle("decided", tag.decision !== "");
    item.classList.toggle("struck", tag.decision === "struck");
    const why = element("div", { className: "why", id: `why-${tag.ui}`, hidden: true });
    item.append(this.#button(tag, why), this.#acts(tag), why);
    if (tag.ui === this.open) this.#expand(tag, item.firstChild, why);
    return item;
  }

  #button(tag, why) {
    const fill = element("span", { className: "fill" });
    fill.style.width = `${100 * (tag.score ?? 0)}%`;
    const name = element("span", { className: "name", textContent: headingOf(tag) });
    const said = tag.decided && tag.decision ? `${DECIDED[tag.decision]} by ${tag.decided.who}` : DECIDED[tag.decision];
    if (said) name.append(element("span", { className: "said", textContent: said }));
    const score = element("span", { className: "score", textContent: tag.score?.toFixed(2) ?? "–" });
    const button = element(
      "button",
      { type: "button", className: "tag", id: `tag-${tag.ui}` },
      name,
      element("span", { className: "bar" }, fill),
      score,
    );
    button.setAttribute("aria-controls", why.id);
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => this.toggle(tag));
    return button;
  }

  #acts(tag) {
    const act = (action, sign, label, pressed, run) => {
      const button = element("button", { type: "button", textContent: sign, className: action, title: label });
      button.id = `act-${tag.ui}-${action}`;
      button.dataset.act = action;
      button.setAttribute("aria-label", `${label}: ${tag.name}`);
      if (pressed !== null) button.setAttribute("aria-pressed", String(pressed));
      button.addEventListener("click", run);
      return button;
    };
    const accepted = tag.decision === "accepted" || tag.decision === "added";
    const struck = tag.decision === "struck";
    return element(
      "div",
      { className: "acts" },
      act("accept", "✓", "Accept", accepted, () => this.decide(accepted ? "clear" : "accept", tag)),
      act("strike", "✗", "Strike out", struck, () => this.decide(struck ? "clear" : "strike", tag)),
      act("major", "★", "Major topic", tag.major, () => this.decide("major", tag, { major: !tag.major })),
      this.hasQualifiers ? act("qualify", "/", "Qualifiers", null, () => this.qualify(tag)) : null,
    );
  }

  toggle(tag = this.tag) {
    if (!tag) return;
    const opening = this.open !== tag.ui;
    if (this.open) {
      byId(`tag-${this.open}`)?.setAttribute("aria-expanded", "false");
      byId(`why-${this.open}`)?.setAttribute("hidden", "");
    }
    this.open = opening ? tag.ui : null;
    if (opening) this.#expand(tag, byId(`tag-${tag.ui}`), byId(`why-${tag.ui}`));
    else this.opened(null);
  }

  async #expand(tag, button, why) {
    button.setAttribute("aria-expanded", "true");
    why.hidden = false;
    const id = this.article.id;
    try {
      this.reasons ??= await getReasons(id);
      if (this.article.id !== id || this.open !== tag.ui) return;
      const evidence = this.reasons[tag.ui];
      const none = element("p", { className: "muted", textContent: "It is not among the model’s best, so it has no reasons." });
      why.replaceChildren(...(evidence ? reasonsOf(evidence, this.article.article.journal) : [none]), placeInMesh(tag.ui));
      this.opened({ ...tag, evidence });
    } catch (error) {
      why.replaceChildren(error.message);
    }
  }

  #mark(ui) {
    if (ui === undefined) return;
    this.current = ui;
    for (const item of document.querySelectorAll(".decision")) item.classList.toggle("current", item.dataset.ui === ui);
  }

  // To the next or previous tag, or to the current one; whether there is any.
  move(step) {
    const uis = [...document.querySelectorAll(".decision")].map((item) => item.dataset.ui);
    if (!uis.length) return false;
    const place = Math.min(Math.max(uis.indexOf(this.current) + step, 0), uis.length - 1);
    this.#mark(uis[place]);
    const button = byId(`tag-${uis[place]}`);
    button.focus({ preventScroll: true });
    button.scrollIntoView({ block: "nearest" });
    return true;
  }
}

// As NLM writes it: an asterisk before what is a major topic, a slash before a qualifier.
export function headingOf({ name, major, qualifiers }) {
  const own = major && !qualifiers.some((item) => item.major);
  const aspects = qualifiers.map((item) => `/${item.major ? "*" : ""}${item.name}`);
  return `${own ? "*" : ""}${name}${aspects.join("")}`;
}
