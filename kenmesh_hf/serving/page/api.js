// Talks to the server; every failure becomes an Error whose message is a sentence for the reader.

// Paths count from where this file lies, whichever page uses it.
export async function answer(path, options) {
  let response;
  try {
    response = await fetch(new URL(path, import.meta.url), options);
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const sentence = body.detail || `The server answered ${response.status} ${response.statusText}.`;
  throw Object.assign(new Error(sentence), { status: response.status, body });
}

export const asJson = (body) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

export const get = async (path) => (await answer(path)).json();
export const query = (text) => new URLSearchParams(text);

export const getInfo = () => get("api/info");
export const getExamples = () => get("examples.json");
export const getDescriptor = (ui) => get(`api/vocabulary/${encodeURIComponent(ui)}`);
export const findDescriptors = (q, limit = 12) => get(`api/vocabulary?${query({ q, limit })}`);
export const findJournals = (q, limit = 12) => get(`api/journals?${query({ q, limit })}`);

// The best descriptors whatever their score: thresholds and branches are then chosen here, at once.
export async function tagArticle(article) {
  const response = await answer("api/tag", asJson({ ...article, top_k: 100, evidence: true }));
  return (await response.json()).tags;
}

export async function exportTags(format, article, tags) {
  const response = await answer("api/export", asJson({ format, articles: [{ ...article, tags }] }));
  return response.text();
}

export async function readFile(file) {
  const response = await answer(`api/articles?${query({ name: file.name })}`, { method: "POST", body: file });
  return response.json();
}
