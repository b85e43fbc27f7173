// Small helpers for the page's elements.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function say(id, message) {
  const place = byId(id);
  place.textContent = message || "";
  place.hidden = !message;
}

// Fills a datalist while its input is being typed in; `find` gives options for the text so far.
export function suggest(input, list, find) {
  let timer;
  let asked = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    const text = input.value.trim();
    if (text.length < 2) return list.replaceChildren();
    timer = setTimeout(async () => {
      const turn = ++asked;
      const options = await find(text).catch(() => []);
      // A slow answer for older text must not replace a newer one.
      if (turn === asked) list.replaceChildren(...options.map((option) => element("option", option)));
    }, 120);
  });
}
