// Talks to the desk's part of the server.

import { answer, asJson, get, query } from "../api.js";

const post = async (path, body) => (await answer(path, asJson(body))).json();

export const getDesk = () => get("api/desk");
export const getArticle = (id) => get(`api/desk/articles/${id}`);
export const getReasons = (id) => get(`api/desk/articles/${id}/reasons`);
export const getQualifiers = (id, ui) => get(`api/desk/articles/${id}/qualifiers?${query({ ui })}`);
export const getRows = (id, filter) => get(`api/desk/collections/${id}/articles?${query(filter)}`);
export const getChanges = (id, since) => get(`api/desk/collections/${id}/changes?${query({ since })}`);
export const sendDecision = (id, body) => post(`api/desk/articles/${id}/decisions`, body);
export const takeBack = (id, who) => post(`api/desk/collections/${id}/undo`, { who });
export const makeAgain = (id, who) => post(`api/desk/collections/${id}/redo`, { who });

export const getLearning = () => get("api/desk/learning");
export const startLearning = (who) => post("api/desk/learning", { who });
export const tagAgain = (id) => post(`api/desk/collections/${id}/tag-again`, {});
export const removeCollection = (id) => answer(`api/desk/collections/${id}`, { method: "DELETE" });

export async function openFile(file, who) {
  const path = `api/desk/collections?${query({ name: file.name, who })}`;
  return (await answer(path, { method: "POST", body: file })).json();
}

// The answer is looked at before it is saved, so that a refusal is told and not downloaded.
export async function exportCollection(id, format, onlyDone) {
  const path = `api/desk/collections/${id}/export?${query({ format, only_done: onlyDone })}`;
  const response = await answer(path);
  const [, name] = /filename="(.+)"/.exec(response.headers.get("Content-Disposition"));
  return { name, content: await response.blob() };
}
