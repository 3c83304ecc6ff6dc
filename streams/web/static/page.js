"use strict";
// Live reports: the server sends escaped HTML.
const live = document.querySelector("[data-stream]");
const MOST = 50;
if (live) {
  const source = new EventSource(live.dataset.stream);
  const pause = document.getElementById("pause");
  let paused = false;
  source.addEventListener("report", (event) => {
    if (paused) return;
    live.insertAdjacentHTML("afterbegin", event.data);
    while (live.children.length > MOST) live.lastElementChild.remove();
  });
  source.addEventListener("rate", (event) => {
    document.getElementById("rate").textContent = event.data;
  });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
  });
}
// What this browser keeps for its user.
const kept = (name) => {
  try { return JSON.parse(localStorage.getItem(name)) ?? {}; } catch { return {}; }
};
const keep = (name, value) => {
  try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* the browser keeps nothing */ }
};
// Shortcuts: data-key names the key of a button, a box or a field. `?` lists them, and there they are changed.
const keys = document.getElementById("keys");
const KEPT_KEYS = `keys ${location.pathname}`;
const named = (target) => target.closest("label, button, a");
const shortcuts = [...document.querySelectorAll("[data-key]:not([data-key='?'])")]
  .map((target) => ({ target, usual: target.dataset.key }));
const setKeys = (mine) => shortcuts.forEach(({ target, usual }) => {
  target.dataset.key = mine[usual] ?? usual;
  target.setAttribute("aria-keyshortcuts", target.dataset.key);
  named(target).querySelectorAll("kbd").forEach((mark) => { mark.textContent = target.dataset.key; });
});
setKeys(kept(KEPT_KEYS));
// The letter that the key gives, also with Caps Lock; its place on a keyboard without Latin letters.
const pressed = (event) => {
  const key = event.key.toLowerCase();
  const found = /^[a-z0-9?]$/.test(key) ? key : /^(?:Key|Digit|Numpad)(.)$/.exec(event.code)?.[1].toLowerCase();
  return event.shiftKey && /[a-z]/.test(found) ? undefined : found;
};
const isTyping = (event) => event.target.matches("input:not([type=checkbox]), select, textarea");
const isCommand = (event) => event.ctrlKey || event.metaKey || event.altKey;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isTyping(event)) event.target.blur();
  if (isTyping(event) || isCommand(event) || event.repeat || keys.open) return;
  const key = pressed(event);
  const target = key && document.querySelector(`[data-key="${key}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input:not([type=checkbox])")) {
    target.focus();
    target.select();
  } else {
    target.click();
  }
});
// A key that another action has is swapped with it.
const changeKey = (changed, key) => {
  const other = key && shortcuts.find(({ target }) => target.dataset.key === key);
  const mine = kept(KEPT_KEYS);
  if (other) mine[other.usual] = changed.target.dataset.key;
  mine[changed.usual] = key;
  keep(KEPT_KEYS, mine);
  setKeys(mine);
  listKeys();
};
const listKeys = () => keys.querySelectorAll("input").forEach((field, i) => {
  field.value = shortcuts[i].target.dataset.key;
});
const keyField = (shortcut) => {
  const label = named(shortcut.target).cloneNode(true);
  label.querySelectorAll("kbd, input, datalist").forEach((part) => part.remove());
  const [row, field] = [document.createElement("label"), document.createElement("input")];
  row.append(label.textContent.trim(), " ", field);
  field.addEventListener("keydown", (event) => {
    const key = ["Backspace", "Delete"].includes(event.key) ? "" : pressed(event);
    if (key === undefined || key === "?" || isCommand(event)) return;
    event.preventDefault();
    changeKey(shortcut, key);
  });
  field.addEventListener("input", listKeys);
  return row;
};
document.querySelector("[data-key='?']").addEventListener("click", () => {
  keys.querySelector(".keys").replaceChildren(...shortcuts.map(keyField));
  listKeys();
  keys.showModal();
});
document.getElementById("usual-keys").addEventListener("click", () => {
  keep(KEPT_KEYS, {});
  setKeys({});
  listKeys();
});
// A field is completed from the server; of one with several names, the last of them.
document.querySelectorAll("[data-search]").forEach((field) => {
  let timer;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const end = "many" in field.dataset ? field.value.lastIndexOf(",") + 1 : 0;
      const before = field.value.slice(0, end) + (end ? " " : "");
      const wanted = encodeURIComponent(field.value.slice(end).trim());
      const answer = await fetch(`${field.dataset.search}?q=${wanted}`);
      if (!answer.ok) return;
      field.list.replaceChildren(...(await answer.json()).map(({ value, label }) => {
        const option = document.createElement("option");
        option.value = before + value;
        option.textContent = label;
        return option;
      }));
    }, 150);
  });
});
// Filters of the search that this browser keeps, by their names.
const saved = document.getElementById("saved");
const filterRow = ([name, query]) => {
  const [row, link, remove] = ["li", "a", "button"].map((one) => document.createElement(one));
  [link.textContent, link.href] = [name, `/search?${query}`];
  [remove.textContent, remove.type] = [`Forget ${name}`, "button"];
  remove.addEventListener("click", () => {
    const { [name]: _, ...others } = kept("filters");
    keep("filters", others);
    listFilters();
  });
  row.append(link, " ", remove);
  return row;
};
const listFilters = () =>
  document.getElementById("filters").replaceChildren(...Object.entries(kept("filters")).map(filterRow));
saved?.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = saved.querySelector("input");
  keep("filters", { ...kept("filters"), [field.value.trim()]: saved.dataset.filter });
  field.value = "";
  listFilters();
});
if (saved) listFilters();
// Each table that the server gives in no file can be saved as CSV, with an apostrophe before what a spreadsheet would read as a formula.
const cellOf = ({ innerText }) => {
  const text = innerText.replace(/\s+/g, " ").trim();
  return `"${(/^[=+@\-\uff1d\uff0b\uff0d\uff20]/.test(text) && isNaN(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
};
document.querySelectorAll(".wide > table:not([data-in-file])").forEach((table) => {
  const button = document.createElement("button");
  [button.textContent, button.type] = ["Save as CSV", "button"];
  button.addEventListener("click", () => {
    const lines = [...table.rows].map((row) => [...row.cells].map(cellOf).join(",") + "\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "text/csv" }));
    link.download = "table.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  table.parentElement.after(button);
});
document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = false; });
