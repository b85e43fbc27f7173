// Questions to the reader: who they are, what to do where somebody was faster, and which qualifiers to give.

import { byId, element } from "../dom.js";

const NAME = "kenmesh-name";
const DONE = {
  accept: "accepted",
  strike: "struck out",
  clear: "took back the decision on",
  add: "added",
  major: "changed whether it is a major topic:",
  qualify: "changed the qualifiers of",
  done: "marked it as done",
  skip: "skipped it",
  reopen: "put it back to do",
};

// What a dialog was closed with; empty for Escape.
export function ask(id) {
  const dialog = byId(id);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

export const knownName = () => localStorage.getItem(NAME) || "";

export async function askName() {
  byId("name").value = knownName();
  const answer = await ask("name-dialog");
  const name = byId("name").value.trim();
  if (answer && name) localStorage.setItem(NAME, name);
  return knownName();
}

// Whether the reader's own decisions are wanted all the same.
export async function askConflict({ detail, by, article }, decisions) {
  const nameOf = (ui) => article.tags.find((tag) => tag.ui === ui)?.name ?? ui ?? "";
  const line = ({ who, at, action, ui, undone }) =>
    `${who} ${undone ? "took back:" : ""} ${DONE[action]} ${nameOf(ui)} (${new Date(at).toLocaleTimeString("en")})`;
  byId("conflict-text").textContent = detail;
  byId("conflict-list").replaceChildren(...by.map((row) => element("li", { textContent: line(row) })));
  const mine = decisions.map(({ action, ui }) => `${action} ${nameOf(ui)}`.trim());
  byId("conflict-mine").textContent = `You wanted: ${mine.join(", ")}.`;
  return (await ask("conflict-dialog")) === "mine";
}

// The qualifiers chosen for a tag, or null.
export async function askQualifiers(tag, offered) {
  const known = new Map(tag.qualifiers.map((item) => [item.ui, item]));
  const box = (ui, kind, label, checked) => {
    const input = element("input", { type: "checkbox", name: kind, value: ui, checked });
    return element("label", { className: "check" }, input, label);
  };
  byId("qualifier-heading").textContent = `Qualifiers of ${tag.name}`;
  const items = [...offered, ...tag.qualifiers.filter((item) => offered.every(({ ui }) => ui !== item.ui))];
  byId("qualifier-list").replaceChildren(
    ...items.map(({ ui, name }) => {
      const star = box(ui, "major", "★", known.get(ui)?.major ?? false);
      star.firstChild.setAttribute("aria-label", `${name} is a major topic`);
      return element("li", {}, box(ui, "chosen", name, known.has(ui)), star);
    }),
  );
  if ((await ask("qualifier-dialog")) !== "ok") return null;
  const ticked = (kind) => [...byId("qualifier-list").querySelectorAll(`[name=${kind}]:checked`)].map((input) => input.value);
  const [chosen, major] = [new Set([...ticked("chosen"), ...ticked("major")]), new Set(ticked("major"))];
  return [...chosen].map((ui) => ({ ui, major: major.has(ui) }));
}
