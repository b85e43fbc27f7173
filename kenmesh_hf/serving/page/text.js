// The article as text in which the words of a tag are marked: the darker, the more its score loses without them.

import { byId, element } from "./dom.js";

const FIELDS = ["title", "abstract"];

// Offsets from the server count characters, as Python does; JavaScript counts UTF-16 units.
function pieces(text, spans) {
  const characters = Array.from(text);
  const cuts = new Set([0, characters.length]);
  spans.forEach(({ start, end }) => cuts.add(start).add(end));
  const places = [...cuts].filter((cut) => cut <= characters.length).sort((a, b) => a - b);
  return places.slice(1).map((end, i) => {
    const covering = spans.filter((span) => span.start <= places[i] && span.end >= end);
    return { text: characters.slice(places[i], end).join(""), covering };
  });
}

function marked({ text, covering }) {
  if (!covering.length) return text;
  const mark = shaded(text, Math.max(...covering.map((span) => span.shade)));
  mark.classList.toggle("word", covering.some((span) => !span.term));
  mark.classList.toggle("term", covering.some((span) => span.term));
  return mark;
}

export function shaded(text, shade) {
  const mark = element("mark", { textContent: text });
  mark.style.setProperty("--shade", shade.toFixed(3));
  return mark;
}

export function strongest(words) {
  return Math.max(...words.map(({ weight }) => Math.abs(weight)));
}

export function shadesOf(words, most = strongest(words)) {
  return words.map((word) => ({ ...word, shade: Math.abs(word.weight) / (most || 1) }));
}

// A word counts wherever it stands.
function spansOf(field, evidence) {
  const places = shadesOf(evidence?.words || []).flatMap(({ also = [], shade, ...first }) =>
    [first, ...also].map((place) => ({ ...place, shade })),
  );
  const spans = places.filter((place) => place.field === field);
  const term = evidence?.term;
  if (term?.field === field) spans.push({ start: term.start, end: term.end, shade: 0, term: true });
  return spans;
}

export function showText(article, tag = null) {
  byId("reading-journal").textContent = article.journal || "";
  for (const field of FIELDS) {
    const parts = pieces(article[field], spansOf(field, tag?.evidence)).map(marked);
    byId(`reading-${field}`).replaceChildren(...parts);
  }
}

export function scrollToFirstMark() {
  const mark = document.querySelector("#reading mark");
  (mark || byId("reading")).scrollIntoView({ behavior: "smooth", block: "center" });
}
