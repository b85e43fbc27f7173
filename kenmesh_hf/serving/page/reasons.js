// What a tag rests on, and its place in the tree, as the reader sees them under an opened tag.

import { getDescriptor } from "./api.js";
import { element } from "./dom.js";
import { shaded, shadesOf, strongest } from "./text.js";

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;

// Words, similar articles, term and journal; `journalName` is that of the article, if it has one.
export function reasonsOf(evidence, journalName) {
  const { words = [], against = [], neighbours = [], journal = null, term = null } = evidence || {};
  const most = strongest([...words, ...against]);
  return [
    words.length ? fact("Words", wordMarks(words, most)) : fact("Words", "none stands out"),
    against.length ? fact("Against it", wordMarks(against, most)) : null,
    term && fact("Term in the text", `“${term.text}” in the ${term.field}`),
    neighbours.length ? fact("Similar articles", ...neighbourLinks(neighbours)) : null,
    journal !== null && journalName
      ? fact(
          "Journal",
          `${percent(journal)} of the articles of ${journalName} have it`,
          weighed(evidence.journal_weight ?? 0),
        )
      : null,
    element("p", {
      className: "muted",
      textContent: "A number is what the score would lose without that; below zero, what it would gain.",
    }),
  ].filter(Boolean);
}

// Why the tag is a major topic, and why it has each of its qualifiers; nothing where the model does not tell.
export function headingReasons(tag) {
  const { major } = tag.evidence || {};
  const facts = [];
  if (tag.major && major) {
    const place = major.in_title ? "It stands in the title; " : "";
    facts.push(fact("Major topic", `${place}${agreement(major)} have it as one`, weighed(tag.major_score)));
  }
  for (const { name, score, evidence } of tag.qualifiers || []) {
    const words = (evidence?.words || []).map(({ word }) => `“${word.toLowerCase()}”`).join(", ");
    const why = evidence ? `${agreement(evidence)} have it${words ? `; words ${words}` : ""}` : "";
    facts.push(fact(`Under ${name}`, why, weighed(score)));
  }
  return facts;
}

function agreement({ agreeing, carriers }) {
  return `${agreeing} of ${carriers} similar articles with this heading`;
}

// Where a descriptor stands, filled in when the server has answered.
export function placeInMesh(ui) {
  const place = element("dd", { className: "paths", textContent: "…" });
  getDescriptor(ui)
    .then((found) => place.replaceChildren(...pathsOf(found)))
    .catch((error) => place.replaceChildren(error.message));
  return element("dl", { className: "fact" }, element("dt", { textContent: "Place in MeSH" }), place);
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
