// The desk: a collection of articles, one of them looked at, and every decision saved at once.

import { byId, say } from "../dom.js";
import { showText } from "../text.js";
import { DescriptorField } from "./choosing.js";
import { Collections } from "./collections.js";
import { ask, askConflict, askName, askQualifiers, knownName } from "./dialogs.js";
import { Keys } from "./keys.js";
import { Rows } from "./rows.js";
import { Saving } from "./saving.js";
import { getArticle, getChanges, getDesk, getQualifiers, makeAgain, takeBack } from "./server.js";
import { headingOf, TagRows } from "./tag_rows.js";

const LOOK_AGAIN = 2000;
const STATES = { todo: "to do", done: "done", skipped: "skipped" };
const desk = { shown: null, opened: null, now: 0, rows: null, tags: null, collections: null, saving: null };

const tell = (text) => (byId("news").textContent = text);
const fail = (error) => say("problem", error.message);

async function start() {
  try {
    const { qualifiers, name } = await getDesk();
    document.title = `${name} · KenMeSH desk`;
    build(qualifiers);
    await desk.collections.start();
  } catch (error) {
    fail(error);
  }
  setInterval(lookAgain, LOOK_AGAIN);
}

function build(hasQualifiers) {
  desk.rows = new Rows({ picked: open, listed, failed: fail });
  desk.tags = new TagRows({
    decide: (action, tag, more) => decide(action, { ui: tag.ui, ...more }),
    qualify,
    opened: (tag) => showText(desk.shown.article, tag),
    hasQualifiers,
  });
  desk.saving = new Saving({ saved, conflict, failed: refused, waiting });
  desk.collections = new Collections({ chosen: openCollection, name, told: tell });
  const back = () => desk.tags.move(0) || byId("tags-pane").focus();
  new DescriptorField(byId("add"), {
    chosen: (found) => {
      byId("add").focus();
      inTurn(() => decide("add", { ui: found.ui }))();
    },
    left: back,
  });
  byId("who").textContent = knownName() || "Your name…";
  bind(back, hasQualifiers);
}

function bind(back, hasQualifiers) {
  const toggle = (action, state) => () => {
    const { tag } = desk.tags;
    if (tag) decide(state(tag) ? "clear" : action, { ui: tag.ui });
  };
  const accepted = ({ decision }) => decision === "accepted" || decision === "added";
  const commands = [
    [["n"], "next article", () => go(1), "next"],
    [["p"], "previous article", () => go(-1), "previous"],
    [["j", "ArrowDown"], "next heading", () => desk.tags.move(1)],
    [["k", "ArrowUp"], "previous heading", () => desk.tags.move(-1)],
    [["a"], "accept the heading, or take that back", toggle("accept", accepted)],
    [["s"], "strike it out, or take that back", toggle("strike", ({ decision }) => decision === "struck")],
    [["m"], "make it a major topic, or not", () => desk.tags.tag && decide("major", { ui: desk.tags.tag.ui, major: !desk.tags.tag.major })],
    hasQualifiers && [["q"], "choose its qualifiers", () => desk.tags.tag && qualify(desk.tags.tag)],
    [["e"], "explain it: reasons and words", () => desk.tags.toggle()],
    [["d"], "add a descriptor by any of its terms", field("add")],
    [["f"], "done, and on to the next article", () => finish("done"), "done"],
    [["l"], "skip it for now, and on to the next", () => finish("skip"), "skip"],
    [["o"], "put it back to do", () => decide("reopen"), "reopen"],
    [["u", "Ctrl+z"], "undo my last decision", () => step(takeBack, "Taken back"), "undo"],
    [["r", "Ctrl+y", "Ctrl+Shift+z"], "redo it", () => step(makeAgain, "Made again"), "redo"],
    [["/"], "find articles", field("words")],
    [["Escape"], "back to the headings", back],
    [["?"], "these keys", () => ask("help-dialog"), "help"],
  ]
    .filter(Boolean)
    .map(([keys, text, run, button]) => [keys, text, run.atOnce ? run : inTurn(run), button]);
  new Keys(commands);
  for (const [, , run, button] of commands) if (button) byId(button).addEventListener("click", run);
  byId("who").addEventListener("click", async () => (byId("who").textContent = (await askName()) || "Your name…"));
  for (const id of ["words", "descriptor"]) {
    byId(id).addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && back());
  }
}

// What is typed behind such a key is text and no command, so the field is entered at once.
const field = (id) => Object.assign(() => byId(id).focus(), { atOnce: true });

// Whoever types faster than articles come decides on the one that will be there, not on the one before.
let before = Promise.resolve();
function inTurn(run) {
  return () => (before = before.then(run).catch(fail));
}

// Who decides; asked once.
async function name() {
  const known = knownName() || (await askName());
  byId("who").textContent = known || "Your name…";
  return known;
}

async function openCollection(id) {
  byId("list-pane").hidden = false;
  hideArticle();
  desk.opened = null;
  await desk.rows.open(id);
  const [first] = desk.rows.rows;
  if (first) await open(first.id);
}

function hideArticle() {
  desk.shown = null;
  byId("article").hidden = byId("tags-pane").hidden = true;
}

function listed({ now, counts }) {
  // Changes of articles that are not in the list yet are told by the list itself.
  desk.now ||= now;
  desk.opened = counts.opened_at;
  desk.collections.show(counts);
}

async function open(id) {
  try {
    show(await getArticle(id));
    placed(id);
    if (!document.activeElement?.closest("#list-pane input, #list-pane select, #add")) desk.tags.move(0);
  } catch (error) {
    fail(error);
  }
}

function placed(id) {
  desk.rows.mark(id);
  const place = desk.rows.place() + 1;
  byId("place").textContent = place
    ? `Article ${place} of ${desk.rows.total.toLocaleString("en")}`
    : "This article is not in the list as it is filtered.";
}

function show(shown) {
  const other = shown.id !== desk.shown?.id;
  desk.shown = shown;
  desk.saving.know(shown);
  byId("article").hidden = byId("tags-pane").hidden = false;
  if (other) {
    showText(shown.article);
    say("tag-problem", "");
    byId("reading-pmid").textContent = shown.article.pmid ? `PMID ${shown.article.pmid}` : "";
    const known = shown.headings_in_file.map((heading) => headingOf({ qualifiers: [], ...heading }));
    say("in-file", known.length ? `The file has: ${known.join("; ")}` : "");
  }
  byId("state-now").textContent = `${STATES[shown.state]}${shown.decided && shown.state !== "todo" ? ` (${shown.decided.who})` : ""}`;
  byId("reopen").hidden = shown.state === "todo";
  if (!shown.model) say("tag-problem", "This article is not tagged yet. Its tags appear here by themselves.");
  else say("tag-problem", shown.problem);
  desk.tags.show(shown);
}

async function go(by) {
  const id = await desk.rows.beside(by);
  if (id === null) return tell(by > 0 ? "This is the last article of the list." : "This is the first article of the list.");
  tell("");
  await open(id);
}

async function decide(action, more = {}) {
  const who = desk.shown && (await name());
  if (who) desk.saving.add(desk.shown.id, who, action, { opened_at: desk.opened, ...more });
}

async function finish(action) {
  if (!desk.shown) return;
  if (action === "done" && !desk.shown.model) return tell("Wait until this article is tagged.");
  await decide(action);
  if (knownName()) await go(1);
}

async function qualify(tag) {
  const offered = await getQualifiers(desk.shown.id, tag.ui).catch(() => []);
  if (!offered.length && !tag.qualifiers.length) return tell(`MeSH allows no qualifier with ${tag.name}.`);
  const qualifiers = await askQualifiers(tag, offered);
  desk.tags.move(0);
  if (qualifiers) decide("qualify", { ui: tag.ui, qualifiers });
}

async function step(way, done) {
  const who = await name();
  if (!who) return;
  // What was typed just before counts, too.
  if (!(await desk.saving.settled())) return tell("The last decision is not saved yet; undo and redo wait for it.");
  try {
    const article = await way(desk.collections.current, who);
    tell(`${done}: ${article.article.title}`);
    show(article);
    placed(article.id);
    desk.tags.move(0);
    lookAgain();
  } catch (error) {
    if (error.status === 409) show(error.body.article);
    tell(error.message);
  }
}

function saved(article) {
  if (article.id === desk.shown?.id) show(article);
  lookAgain();
}

function refused(error) {
  fail(error);
  if (desk.shown) open(desk.shown.id);
}

async function conflict(error, decisions) {
  const here = error.body.article.id === desk.shown?.id;
  if (here) show(error.body.article);
  return askConflict(error.body, decisions);
}

function waiting(error) {
  const why = error?.status ? error.message : "The server does not answer.";
  say("problem", error ? `Not saved yet. ${why} It is tried again until it works.` : "");
}

// What others did, and how far the tagging is.
async function lookAgain() {
  const { current } = desk.collections;
  if (!current || document.hidden || desk.looking) return;
  desk.looking = true;
  try {
    const found = await getChanges(current, desk.now);
    // The server was started again with another desk: nothing that is shown here is of it.
    const mine = current === desk.collections.current && desk.opened;
    if (mine && found.counts.opened_at !== desk.opened) return location.reload();
    desk.now = found.now;
    desk.collections.show(found.counts);
    if (found.total > found.articles.length) await desk.rows.refresh();
    else desk.rows.update(found.articles);
    await refresh(found.articles);
  } catch (error) {
    if (error.status === 404) fail(error);
  } finally {
    desk.looking = false;
  }
}

async function refresh(changed) {
  const now = changed.find((row) => row.id === desk.shown?.id);
  if (!now || !desk.saving.idle) return;
  const news = now.version !== desk.shown.version;
  // Another model may have tagged it meanwhile, which shows in its doubt.
  if (!news && Boolean(desk.shown.model) === now.tagged && desk.shown.doubt === now.doubt) return;
  const before = desk.shown;
  const article = await getArticle(now.id);
  // Whoever went on, or decided, meanwhile must not be taken back.
  if (desk.shown?.id !== article.id || desk.shown.version > article.version || !desk.saving.idle) return;
  show(article);
  const made = [desk.shown, ...desk.shown.tags].map(({ decided }) => decided).filter(Boolean);
  const last = made.sort((a, b) => (a.at < b.at ? 1 : -1))[0];
  if (news && before.id === now.id) tell(`${last?.who ?? "Somebody"} changed this article.`);
  if (!before.model) desk.tags.move(0);
}

start();
