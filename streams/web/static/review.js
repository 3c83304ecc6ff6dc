"use strict";
// Enter in a field must not take the first button of the form, which accepts.
document.querySelectorAll("#decision input").forEach((field) => {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      event.target.blur();
    }
  });
});
// The span of an event is selected in its text: with the mouse, with arrows and Shift, or by the buttons. It is
// of whole words, and its numbers count code points, as Python does.
const textAt = document.querySelector(".reading .text");
const box = document.querySelector("[data-text]");
const size = (text) => Array.from(text).length;
const wordsOf = (text) => {
  const words = [];
  let at = 0;
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) {
    const end = at + size(segment);
    if (isWordLike || /\p{Extended_Pictographic}/u.test(segment)) words.push({ start: at, end });
    at = end;
  }
  return words;
};
// The pieces of the text as the page has them, without what stands behind mentions.
const piecesOf = (root) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement.closest(".note") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  const pieces = [];
  for (let at = 0; walker.nextNode(); at = pieces.at(-1).end) {
    pieces.push({ node: walker.currentNode, start: at, end: at + size(walker.currentNode.data) });
  }
  return pieces;
};
if (box && textAt) {
  const text = Array.from(box.dataset.text);
  const words = wordsOf(box.dataset.text);
  const pieces = piecesOf(textAt);
  const fields = ["span_start", "span_end"].map((name) => box.querySelector(`[name="${name}"]`));
  const span = () => fields.map((field) => Number(field.value));
  const within = (start, end) =>
    [words.findIndex((word) => word.end > start), words.findLastIndex((word) => word.start < end)];
  let anchor = within(...span())[0];
  // Where a code point is among the nodes, and the reverse.
  const boundary = (place, isEnd) => {
    const { node, start } = pieces.find((piece) => (isEnd ? place <= piece.end : place < piece.end));
    return [node, Array.from(node.data).slice(0, place - start).join("").length];
  };
  const placeOf = (node, offset) => {
    const range = document.createRange();
    range.setStart(textAt, 0);
    range.setEnd(node, offset);
    const piece = pieces.find((one) => one.node === node || range.comparePoint(one.node, 0) > 0);
    if (!piece) return text.length;
    return piece.start + (piece.node === node ? size(node.data.slice(0, offset)) : 0);
  };
  const show = () => {
    const [start, end] = span();
    box.querySelector(".words").textContent = text.slice(start, end).join("");
    if (!CSS.highlights || !(start >= 0 && start < end && end <= text.length)) return;
    const range = document.createRange();
    range.setStart(...boundary(start, false));
    range.setEnd(...boundary(end, true));
    CSS.highlights.set("span", new Highlight(range));
  };
  const choose = (first, last) => {
    if (!words[first] || !words[last] || last < first) return;
    [fields[0].value, fields[1].value] = [words[first].start, words[last].end];
    show();
  };
  document.addEventListener("selectionchange", () => {
    const selection = getSelection();
    if (selection.isCollapsed || !textAt.contains(selection.anchorNode)) return;
    const range = selection.getRangeAt(0);
    const start = textAt.contains(range.startContainer) ? placeOf(range.startContainer, range.startOffset) : 0;
    const isInside = textAt.contains(range.endContainer);
    const [first, last] = within(start, isInside ? placeOf(range.endContainer, range.endOffset) : text.length);
    anchor = first;
    choose(first, last);
  });
  document.addEventListener("keydown", (event) => {
    if (isTyping(event) || isCommand(event) || keys.open || !/^Arrow(Left|Right)$/.test(event.key)) return;
    event.preventDefault();
    getSelection().removeAllRanges();
    const isForward = (event.key === "ArrowRight") === (getComputedStyle(textAt).direction === "ltr");
    const [first, last] = within(...span());
    const focus = (anchor === last ? first : last) + (isForward ? 1 : -1);
    if (!words[focus]) return;
    if (!event.shiftKey) anchor = focus;
    choose(Math.min(anchor, focus), Math.max(anchor, focus));
  });
  box.querySelectorAll("[data-edge]").forEach((button) => button.addEventListener("click", () => {
    const [first, last] = within(...span());
    const step = Number(button.dataset.step);
    if (button.dataset.edge === "span_start") choose(anchor = Math.max(first + step, 0), last);
    else choose(first, last + step);
  }));
  box.addEventListener("input", show);
  box.querySelector(".numbers").hidden = !box.querySelector("[aria-invalid]");
  show();
}
// The nearest terms fill the field of the term.
const term = document.querySelector("#decision [name=term]");
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
// A long text is read from the event under review on; the page itself stays where it is.
const reading = document.querySelector(".reading");
const current = reading?.querySelector("mark.current");
if (current) reading.scrollTop = current.offsetTop - (reading.clientHeight - current.offsetHeight) / 2;
// How many events of the same words are ticked.
const ticks = document.querySelectorAll("[name=event]");
ticks.forEach((tick) => tick.addEventListener("change", () => {
  document.querySelector(".ticked").textContent = [...ticks].filter((one) => one.checked).length;
}));
