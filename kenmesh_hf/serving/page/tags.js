// The list of tags by MeSH category, and under an opened tag what it rests on and where it stands in the tree.

import { byId, element } from "./dom.js";
import { headingReasons, placeInMesh, reasonsOf } from "./reasons.js";
import { scrollToFirstMark } from "./text.js";

export class TagList {
  // `opened` is told the tag whose reasons are shown, or null; `branched` gets a descriptor to show only or to hide.
  constructor(categories, { opened, branched }) {
    this.categories = categories;
    this.opened = opened;
    this.branched = branched;
    this.open = null;
    byId("groups").addEventListener("keydown", (event) => this.#move(event));
  }

  show(tags, article) {
    this.article = article;
    if (this.open && !tags.some((tag) => tag.ui === this.open)) this.#announce(null);
    byId("groups").replaceChildren(...this.#groups(tags).map((group) => this.#section(group)));
  }

  clear() {
    this.open = null;
  }

  #groups(tags) {
    const groups = new Map();
    for (const tag of tags) {
      const letter = tag.tree_numbers[0]?.[0] || "";
      if (!groups.has(letter)) groups.set(letter, []);
      groups.get(letter).push(tag);
    }
    return [...groups];
  }

  #section([letter, tags]) {
    const id = `category-${letter || "none"}`;
    const name = letter ? this.categories[letter] || letter : "Without a place in the tree";
    const heading = element("h3", { id }, name, element("span", { className: "muted", textContent: ` ${letter}` }));
    const list = element("ul", { className: "tags" }, ...tags.map((tag) => this.#item(tag)));
    const section = element("section", { className: "category" }, heading, list);
    section.setAttribute("aria-labelledby", id);
    return section;
  }

  #item(tag) {
    const fill = element("span", { className: "fill" });
    fill.style.width = `${100 * tag.score}%`;
    const button = element(
      "button",
      { type: "button", className: "tag", id: `tag-${tag.ui}` },
      headingOf(tag),
      element("span", { className: "bar" }, fill),
      element("span", { className: "score", textContent: tag.score.toFixed(2) }),
    );
    const why = element("div", { className: "why", id: `why-${tag.ui}`, hidden: true });
    button.setAttribute("aria-controls", why.id);
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => this.#toggle(tag, button, why));
    if (tag.ui === this.open) this.#expand(tag, button, why);
    return element("li", {}, button, why);
  }

  #toggle(tag, button, why) {
    const wasOpen = this.open === tag.ui;
    for (const other of document.querySelectorAll(".tag[aria-expanded=true]")) {
      other.setAttribute("aria-expanded", "false");
      byId(other.getAttribute("aria-controls")).hidden = true;
    }
    if (!wasOpen) this.#expand(tag, button, why);
    this.#announce(wasOpen ? null : tag);
  }

  #announce(tag) {
    this.open = tag?.ui ?? null;
    this.opened(tag);
  }

  #expand(tag, button, why) {
    button.setAttribute("aria-expanded", "true");
    why.replaceChildren(
      ...headingReasons(tag),
      ...reasonsOf(tag.evidence, this.article.journal),
      placeInMesh(tag.ui),
      this.#actions(tag),
    );
    why.hidden = false;
  }

  #actions(tag) {
    const branch = { key: tag.ui, name: tag.name, numbers: tag.tree_numbers };
    const action = (text, run, className = "quiet") => {
      const button = element("button", { type: "button", textContent: text, className });
      button.addEventListener("click", run);
      return button;
    };
    return element(
      "div",
      { className: "row" },
      action("See it in the text", scrollToFirstMark, "quiet narrow"),
      action("Show only this and below", () => this.branched(branch, true)),
      action("Hide this and below", () => this.branched(branch, false)),
    );
  }

  // Arrow keys go from tag to tag, Escape closes the open one.
  #move(event) {
    const tags = [...document.querySelectorAll("#groups .tag")];
    const here = tags.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && here >= 0) {
      event.preventDefault();
      tags[Math.min(Math.max(here + step, 0), tags.length - 1)].focus();
    } else if (event.key === "Escape" && this.open) {
      const button = byId(`tag-${this.open}`);
      button.click();
      button.focus();
    }
  }
}

// The descriptor as NLM writes headings: a star at what is a major topic, the aspects behind the name.
function headingOf(tag) {
  const qualifiers = tag.qualifiers || [];
  const own = tag.major && !qualifiers.some((item) => item.major);
  const aspects = qualifiers.flatMap((item) => [
    element("span", { className: "aspect", textContent: `/${item.name}` }),
    ...star(item.major),
  ]);
  return element("span", { className: "name" }, tag.name, ...star(own), ...aspects);
}

function star(major) {
  if (!major) return [];
  const mark = element("span", { className: "star", textContent: "★", title: "major topic" });
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", "major topic");
  return [mark];
}
