// Completion of @names while typing: a list box that the text field leads, as the ARIA practices describe it.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat || !chat.text) return;
  const { $, make, announce, text } = chat;
  const list = $("mentions");
  if (!list) return;
  const most = 8;
  let start = -1; // of the @ in the text
  let at = -1;

  text.setAttribute("aria-autocomplete", "list");
  text.setAttribute("aria-controls", list.id);

  function close() {
    if (list.hidden) return;
    list.hidden = true;
    list.replaceChildren();
    start = at = -1;
    text.removeAttribute("aria-activedescendant");
  }

  /** The @word that ends at the caret. */
  function word() {
    if (text.selectionStart !== text.selectionEnd) return null;
    const before = text.value.slice(0, text.selectionStart);
    const found = /(^|[\s(])@([\p{L}\p{N}._@-]{0,100})$/u.exec(before);
    return found && { start: before.length - found[2].length - 1, query: found[2].toLowerCase() };
  }

  function rank(member, query) {
    const handle = member.ref.toLowerCase();
    const label = member.label.toLowerCase();
    if (handle.startsWith(query)) return 0;
    if (label.startsWith(query)) return 1;
    if (label.split(/\s+/).some((w) => w.startsWith(query))) return 2;
    return query !== "" && (handle.includes(query) || label.includes(query)) ? 3 : -1;
  }

  function open() {
    const found = word();
    if (!found) return close();
    const seen = new Set();
    const fits = chat.members()
      .filter((m) => m.handle !== chat.me && !seen.has(m.ref) && seen.add(m.ref))
      .map((m) => ({ ...m, rank: rank(m, found.query) }))
      .filter((m) => m.rank >= 0)
      .sort((a, b) => a.rank - b.rank || Number(b.agent) - Number(a.agent) || a.ref.localeCompare(b.ref))
      .slice(0, most);
    // A name written out needs no completion.
    if (fits.length === 0 || (fits.length === 1 && fits[0].ref.toLowerCase() === found.query)) return close();
    start = found.start;
    list.replaceChildren(...fits.map((m, i) => {
      const option = make("li", "", "", { role: "option", id: list.id + "-" + i, "aria-selected": "false", "data-ref": m.ref });
      const face = m.el.querySelector(".avatar");
      if (face) option.append(face.cloneNode(true));
      option.append(make("bdi", "", m.label), " ", make("span", "quiet", "@" + m.ref));
      return option;
    }));
    const was = list.hidden;
    list.hidden = false;
    at = -1;
    mark(0);
    if (was) announce(fits.length === 1 ? "One name fits" : fits.length + " names fit; choose with the arrow keys");
  }

  function mark(to) {
    const options = list.children;
    if (at >= 0) options[at]?.setAttribute("aria-selected", "false");
    at = (to + options.length) % options.length;
    options[at].setAttribute("aria-selected", "true");
    options[at].scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-activedescendant", options[at].id);
  }

  function choose(option) {
    const end = text.selectionStart;
    const from = start;
    close();
    const space = text.value.charAt(end) === " " ? "" : " ";
    text.setRangeText("@" + option.dataset.ref + space, from, end, "end");
    if (space === "") text.selectionStart = text.selectionEnd = text.selectionEnd + 1;
    text.dispatchEvent(new Event("input", { bubbles: true }));
    close();
    announce(option.querySelector("bdi").textContent + " is addressed");
  }

  text.addEventListener("input", (event) => !isComposing(event) && open());
  text.addEventListener("click", open);
  text.addEventListener("keydown", (event) => {
    if (list.hidden || isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "Escape") close();
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && at >= 0) choose(list.children[at]);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  });
  text.addEventListener("keyup", (event) => {
    if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) open();
  });
  text.addEventListener("blur", () => setTimeout(close, 150)); // a click on a name comes first
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(option);
  });
})();
