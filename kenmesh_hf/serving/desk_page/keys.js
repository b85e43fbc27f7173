// Commands by single keys, and the overlay that names them.

import { byId, element } from "../dom.js";

const SWITCH = "kenmesh-single-keys";

export class Keys {
  // `commands`: [keys, what it does, function]; the keys of one command by "or" mean the same.
  constructor(commands) {
    this.commands = new Map();
    for (const [keys, , run] of commands) for (const key of keys) this.commands.set(key, run);
    byId("keys").replaceChildren(
      ...commands.flatMap(([keys, text]) => [
        element("dt", {}, ...keys.flatMap((key, i) => [i ? " " : null, element("kbd", { textContent: shown(key) })])),
        element("dd", { textContent: text }),
      ]),
    );
    const single = byId("single-keys");
    single.checked = localStorage.getItem(SWITCH) !== "off";
    single.addEventListener("change", () => localStorage.setItem(SWITCH, single.checked ? "on" : "off"));
    document.addEventListener("keydown", (event) => this.#press(event, single));
  }

  #press(event, single) {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.defaultPrevented || typing || event.altKey) return;
    const control = event.ctrlKey || event.metaKey;
    const name = control ? `Ctrl+${event.shiftKey ? "Shift+" : ""}${event.key.toLowerCase()}` : event.key;
    // Whoever speaks to the computer, or has a key that sticks, may want letters to do nothing.
    const letter = !control && [...event.key].length === 1;
    const run = this.commands.get(name);
    if (!run || (letter && !single.checked)) return;
    event.preventDefault();
    run();
  }
}

const shown = (key) => ({ ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" })[key] ?? key;
