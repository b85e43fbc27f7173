// A field in which a descriptor is found by any of its terms: arrow keys go through what fits, Enter takes one.

import { findDescriptors } from "../api.js";
import { element } from "../dom.js";

export class DescriptorField {
  // `chosen` is told the descriptor, `left` that Escape was pressed in an empty list.
  constructor(input, { chosen, left = () => {} }) {
    this.input = input;
    this.chosen = chosen;
    this.left = left;
    this.found = [];
    this.place = -1;
    this.asked = 0;
    // What `found` answers to.
    this.text = "";
    this.list = element("ul", { className: "choices", id: `${input.id}-choices`, hidden: true });
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Descriptors that fit");
    input.after(this.list);
    input.parentElement.classList.add("choosing");
    for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", this.list.id], ["aria-autocomplete", "list"]]) {
      input.setAttribute(name, value);
    }
    input.addEventListener("input", () => this.#look());
    input.addEventListener("keydown", (event) => this.#press(event));
    input.addEventListener("blur", () => setTimeout(() => this.#show([]), 150));
  }

  async #look() {
    const turn = ++this.asked;
    const text = this.input.value.trim();
    const found = text.length < 2 ? [] : await findDescriptors(text).catch(() => []);
    // A slow answer for older text must not replace a newer one.
    if (turn !== this.asked) return;
    this.text = text;
    this.#show(found);
  }

  #show(found) {
    this.found = found;
    this.list.replaceChildren(
      ...found.map((descriptor, place) => {
        const item = element("li", { id: `${this.list.id}-${place}`, textContent: descriptor.name });
        item.append(element("span", { className: "muted", textContent: ` ${descriptor.ui}` }));
        item.setAttribute("role", "option");
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          this.#take(place);
        });
        return item;
      }),
    );
    this.list.hidden = !found.length;
    this.input.setAttribute("aria-expanded", String(found.length > 0));
    this.#mark(found.length ? 0 : -1);
  }

  #mark(place) {
    this.place = place;
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === place)));
    const marked = this.list.children[place];
    if (marked) {
      this.input.setAttribute("aria-activedescendant", marked.id);
      marked.scrollIntoView({ block: "nearest" });
    } else {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  async #press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      this.#mark((this.place + step + this.found.length) % this.found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      // Who types faster than the server answers gets what fits best to the whole of it.
      if (!this.found.length || this.text !== this.input.value.trim()) await this.#look();
      if (this.found.length) this.#take(Math.max(this.place, 0));
    } else if (event.key === "Escape") {
      if (!this.found.length) return this.left();
      event.preventDefault();
      this.#show([]);
    }
  }

  #take(place) {
    const descriptor = this.found[place];
    this.asked++;
    this.input.value = "";
    this.#show([]);
    this.chosen(descriptor);
  }
}
