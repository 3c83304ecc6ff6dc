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
// The span of an event moves from word to word. Its numbers count code points, as Python does.
document.querySelectorAll("[data-text]").forEach((box) => {
  const text = Array.from(box.dataset.text);
  const edges = { span_start: [], span_end: [] };
  text.forEach((character, i) => {
    const inside = /\S/u.test(character);
    if (inside && !/\S/u.test(text[i - 1] ?? " ")) edges.span_start.push(i);
    if (inside && !/\S/u.test(text[i + 1] ?? " ")) edges.span_end.push(i + 1);
  });
  const field = (name) => box.querySelector(`[name="${name}"]`);
  const show = () => {
    const [start, end] = ["span_start", "span_end"].map((name) => Number(field(name).value));
    box.querySelector(".words").textContent = text.slice(start, end).join("");
  };
  box.querySelectorAll("[data-edge]").forEach((button) => {
    button.addEventListener("click", () => {
      const input = field(button.dataset.edge);
      const [now, places] = [Number(input.value), edges[button.dataset.edge]];
      const next = button.dataset.step === "1" ? places.find((p) => p > now) : places.findLast((p) => p < now);
      if (next !== undefined) input.value = next;
      show();
    });
  });
  box.addEventListener("input", show);
  show();
});
// The nearest terms fill the field of the term.
const term = document.querySelector("[data-search]");
const choices = document.querySelectorAll("[data-choose]");
const showChosen = () => choices.forEach((button) => {
  button.setAttribute("aria-pressed", String(button.dataset.choose === term.value.trim()));
});
choices.forEach((button) => button.addEventListener("click", () => {
  term.value = button.dataset.choose;
  showChosen();
}));
if (term) {
  term.addEventListener("input", showChosen);
  showChosen();
}
document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = false; });
// A long text is read from the event under review on; the page itself stays where it is.
const reading = document.querySelector(".reading");
const current = reading?.querySelector("mark.current");
if (current) reading.scrollTop = current.offsetTop - (reading.clientHeight - current.offsetHeight) / 2;
