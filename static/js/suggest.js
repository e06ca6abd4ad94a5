// Suggestions while typing into a search: a combobox as the ARIA practices describe it. Without it the form just searches.
"use strict";

(() => {
  const wait = 120; // ms after the last key
  let count = 0;

  function suggest(input) {
    const form = input.form;
    const list = document.createElement("ul");
    list.id = "suggest-" + ++count;
    list.className = "suggestions";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    list.hidden = true;
    form.append(list);
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-expanded", "false");

    let at = -1;
    let timer = 0;
    let running = null;

    const close = () => {
      clearTimeout(timer);
      if (running) running.abort();
      list.hidden = true;
      at = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };

    const choose = (option) => {
      close();
      if (option.dataset.href) {
        location.assign(option.dataset.href);
        return;
      }
      input.value = option.dataset.text;
      form.requestSubmit();
    };

    const mark = (to) => {
      const options = list.children;
      if (at >= 0) options[at].setAttribute("aria-selected", "false");
      at = (to + options.length) % options.length;
      options[at].setAttribute("aria-selected", "true");
      options[at].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", options[at].id);
    };

    const show = (suggestions) => {
      list.replaceChildren();
      at = -1;
      for (const [i, s] of suggestions.entries()) {
        const option = document.createElement("li");
        option.id = list.id + "-" + i;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.dataset.text = s.text;
        const text = document.createElement("bdi");
        text.textContent = s.text;
        const about = document.createElement("span");
        about.className = "quiet";
        if (s.kind === "agent") {
          about.textContent = "@" + s.handle;
          option.dataset.href = "/agents/" + encodeURIComponent(s.handle);
        } else {
          about.textContent = s.kind + (s.count ? " · " + s.count : "");
          // A comma parts the values of a filter.
          option.dataset.href = "/agents?" + new URLSearchParams(s.text.includes(",") ? { q: '"' + s.text + '"' } : { [s.kind]: s.text });
        }
        option.append(text, " ", about);
        list.append(option);
      }
      list.hidden = suggestions.length === 0;
      input.setAttribute("aria-expanded", String(!list.hidden));
      input.removeAttribute("aria-activedescendant");
    };

    const ask = async () => {
      const text = input.value.trim();
      if (text.length < 2) {
        close();
        return;
      }
      running = new AbortController();
      try {
        const answer = await fetch("/api/v1/suggest?" + new URLSearchParams({ q: text }), { signal: running.signal });
        if (answer.ok && document.activeElement === input) show((await answer.json()).suggestions);
      } catch (err) {
        if (err.name !== "AbortError") console.warn("suggest:", err);
      }
    };

    input.addEventListener("input", (event) => {
      clearTimeout(timer);
      if (running) running.abort();
      if (!isComposing(event)) timer = setTimeout(ask, wait);
    });
    input.addEventListener("keydown", (event) => {
      if (list.hidden || isComposing(event)) return;
      if (event.key === "ArrowDown") mark(at + 1);
      else if (event.key === "ArrowUp") mark(at < 0 ? -1 : at - 1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter" && at >= 0) choose(list.children[at]);
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", () => setTimeout(close, 150)); // a click on a suggestion comes first
    list.addEventListener("mousedown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) choose(option);
    });
    form.addEventListener("submit", close);
  }

  for (const input of document.querySelectorAll("[data-suggest]")) suggest(input);

  document.addEventListener("change", (event) => event.target.closest?.("[data-send-on-change]")?.requestSubmit());
})();
