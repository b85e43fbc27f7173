// The list of tags by MeSH category, and under an opened tag what it rests on and where it stands in the tree.

import { getDescriptor } from "./api.js";
import { byId, element } from "./dom.js";
import { scrollToFirstMark, shaded, shadesOf, strongest } from "./text.js";

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;

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
      element("span", { className: "name", textContent: tag.name }),
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
    why.replaceChildren(...this.#reasons(tag), this.#tree(tag), this.#actions(tag));
    why.hidden = false;
  }

  #reasons(tag) {
    const { words = [], against = [], neighbours = [], journal = null, term = null } = tag.evidence || {};
    const most = strongest([...words, ...against]);
    return [
      words.length ? fact("Words", wordMarks(words, most)) : fact("Words", "none stands out"),
      against.length ? fact("Against it", wordMarks(against, most)) : null,
      term && fact("Term in the text", `“${term.text}” in the ${term.field}`),
      neighbours.length ? fact("Similar articles", ...neighbourLinks(neighbours)) : null,
      journal !== null && this.article.journal
        ? fact(
            "Journal",
            `${percent(journal)} of the articles of ${this.article.journal} have it`,
            weighed(tag.evidence.journal_weight ?? 0),
          )
        : null,
      element("p", {
        className: "muted",
        textContent: "A number is what the score would lose without that; below zero, what it would gain.",
      }),
    ].filter(Boolean);
  }

  #tree(tag) {
    const place = element("dd", { className: "paths", textContent: "…" });
    getDescriptor(tag.ui)
      .then((found) => place.replaceChildren(...pathsOf(found)))
      .catch((error) => place.replaceChildren(error.message));
    return element("dl", { className: "fact" }, element("dt", { textContent: "Place in MeSH" }), place);
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

function fact(name, ...content) {
  return element(
    "dl",
    { className: "fact" },
    element("dt", { textContent: name }),
    element("dd", {}, ...content),
  );
}

// Words as dark as they are in the text, each with its weight.
function wordMarks(words, most) {
  const marks = shadesOf(words, most).map(({ word, shade, weight }) =>
    element("span", { className: "weighed" }, shaded(word.toLowerCase(), shade), weighed(weight)),
  );
  return element("span", { className: "words" }, ...marks);
}

function weighed(weight) {
  return element("span", { className: "muted", textContent: ` ${weight.toFixed(2).replace("-", "−")}` });
}

function neighbourLinks(neighbours) {
  return neighbours.map(({ pmid, similarity, weight = 0 }) => {
    const href = `https://pubmed.ncbi.nlm.nih.gov/${encodeURIComponent(pmid)}/`;
    const link = element("a", { href, textContent: pmid, target: "_blank", rel: "noreferrer" });
    link.title = `similarity ${similarity.toFixed(2)}`;
    return element("span", { className: "neighbour" }, link, weighed(weight));
  });
}

function pathsOf({ paths, scope_note }) {
  const lines = paths.map((path) => {
    const steps = path.map(({ name }) => element("li", { textContent: name }));
    steps.at(-1)?.append(element("span", { className: "muted", textContent: ` ${path.at(-1).number}` }));
    return element("ol", { className: "path" }, ...steps);
  });
  if (!lines.length) lines.push(element("p", { textContent: "It stands outside the tree." }));
  if (scope_note) lines.push(element("p", { className: "muted", textContent: scope_note }));
  return lines;
}
