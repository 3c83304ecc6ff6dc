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
// Shortcuts: data-key names the key of a button, a box or a field.
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input:not([type=checkbox])")) {
    target.focus();
    target.select();
  } else {
    target.click();
  }
});
// Enter in a field must not take the first button of the form, which accepts.
document.querySelectorAll("#decision input").forEach((field) => {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      event.target.blur();
    }
  });
});
// Search over the terminology.
document.querySelectorAll("[data-search]").forEach((field) => {
  let timer;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const answer = await fetch(`${field.dataset.search}?q=${encodeURIComponent(field.value)}`);
      if (!answer.ok) return;
      const options = (await answer.json()).map((term) => {
        const option = document.createElement("option");
        option.value = term.llt;
        option.textContent = term.pt;
        return option;
      });
      field.list.replaceChildren(...options);
    }, 150);
  });
});
