// Which of the scored descriptors are shown: thresholds, check tags, branches. All of it happens in the page.

import { findDescriptors } from "./api.js";
import { byId, element, say, suggest } from "./dom.js";

const PLACE = /^[A-Z](\d\d(\.\d{3})*)?$/;
const CUTS = [
  ["precision", "Fewer, surer"],
  ["own", "Balanced"],
  ["recall", "More"],
];

export class Filters {
  constructor(info, changed) {
    this.info = info;
    this.changed = changed;
    this.checkTags = new Set(info.check_tags);
    this.cut = "own";
    this.branches = [];
    this.#buildCuts();
    this.#buildBranches();
    byId("threshold").addEventListener("input", () => this.#choose(null));
    byId("check-tags").addEventListener("change", changed);
    this.#choose("own");
  }

  apply(tags) {
    const only = this.branches.filter((branch) => branch.only);
    const hidden = this.branches.filter((branch) => !branch.only);
    return tags.filter(
      (tag) =>
        tag.score >= this.#least(tag) &&
        (byId("check-tags").checked || !this.checkTags.has(tag.ui)) &&
        (!only.length || only.some((branch) => within(tag, branch))) &&
        !hidden.some((branch) => within(tag, branch)),
    );
  }

  #least(tag) {
    if (this.cut === "own") return tag.threshold;
    return this.cut ? this.info.presets[this.cut] : Number(byId("threshold").value);
  }

  #buildCuts() {
    const known = CUTS.filter(([name]) => name === "own" || name in this.info.presets);
    const segments = known.map(([name, text]) => {
      const radio = element("input", { type: "radio", name: "cut", value: name, id: `cut-${name}` });
      radio.addEventListener("change", () => this.#choose(name));
      return element("label", {}, radio, element("span", { textContent: text }));
    });
    byId("cuts").replaceChildren(...segments);
  }

  // A named cut, or none while the slider decides.
  #choose(name) {
    this.cut = name;
    const slider = byId("threshold");
    if (name) slider.value = this.info.presets[name] ?? this.info.threshold;
    for (const radio of document.getElementsByName("cut")) radio.checked = radio.value === name;
    byId("threshold-value").textContent = name === "own" ? "the model’s own" : Number(slider.value).toFixed(2);
    this.changed();
  }

  #buildBranches() {
    const input = byId("branch");
    const categories = Object.entries(this.info.categories).map(([letter, name]) => `${name} [${letter}]`);
    suggest(input, byId("branch-names"), async (text) => {
      const fitting = categories.filter((name) => name.toLowerCase().includes(text.toLowerCase()));
      const found = await findDescriptors(text);
      return [...fitting, ...found.map(({ ui, name }) => `${name} [${ui}]`)].map((value) => ({ value }));
    });
    byId("branch-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#addTyped(true);
    });
    byId("without").addEventListener("click", () => this.#addTyped(false));
  }

  async #addTyped(only) {
    const input = byId("branch");
    try {
      this.add(await this.#resolve(input.value.trim()), only);
      input.value = "";
      say("branch-problem", "");
    } catch (error) {
      say("branch-problem", error.message);
    }
    input.focus();
  }

  // "Neoplasms [D009369]", "D009369", "C04.588", "C" or a name → what to compare tree numbers with.
  async #resolve(typed) {
    const key = /\[([A-Z0-9.]+)\]$/.exec(typed)?.[1] || typed;
    if (!key) throw new Error("Type a branch such as C04, or a descriptor, first.");
    const letter = key.toUpperCase();
    if (PLACE.test(letter) && letter in this.info.categories) {
      return { key: letter, name: this.info.categories[letter], numbers: [letter] };
    }
    const [found] = await findDescriptors(key, 1);
    if (!found) throw new Error(`MeSH has no branch or descriptor “${typed}”.`);
    if (PLACE.test(letter)) return { key: letter, name: found.name, numbers: [letter] };
    return { key: found.ui, name: found.name, numbers: found.tree_numbers };
  }

  add({ key, name, numbers }, only) {
    this.branches = this.branches.filter((branch) => branch.key !== key);
    this.branches.push({ key, name, numbers, only });
    this.#showBranches();
  }

  #showBranches() {
    const chips = this.branches.map((branch) => {
      const text = `${branch.only ? "only" : "without"} ${branch.name}`;
      const remove = element("button", { type: "button", textContent: "×", ariaLabel: `Remove: ${text}` });
      remove.addEventListener("click", () => {
        this.branches = this.branches.filter((other) => other !== branch);
        this.#showBranches();
        byId("branch").focus();
      });
      return element("li", {}, `${text} `, remove);
    });
    byId("branches").replaceChildren(...chips);
    this.changed();
  }
}

function within(tag, { key, numbers }) {
  if (tag.ui === key) return true;
  return tag.tree_numbers.some((place) =>
    numbers.some((number) => place === number || place.startsWith(number.length === 1 ? number : `${number}.`)),
  );
}
