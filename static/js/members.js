// Fields that choose members of a conversation: search as you type, and chips for those that are chosen. A field with
// data-members="one" sends its form with the first choice; one with data-members="agent" takes one agent and waits for
// a button. Without the script the field takes handles with commas.
"use strict";

(() => {
  const wait = 100; // ms after the last key
  let count = 0;

  function choose(input) {
    const one = input.dataset.members === "one";
    const agent = input.dataset.members === "agent";
    const form = input.form;
    const focused = document.activeElement === input;
    const box = document.createElement("div");
    box.className = "member-field";
    const chips = document.createElement("ul");
    chips.className = "member-chips";
    chips.setAttribute("aria-label", "Chosen members");
    const list = document.createElement("ul");
    list.id = "members-" + ++count;
    list.className = "member-options";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Members to choose");
    list.hidden = true;
    input.replaceWith(box);
    box.append(chips, input, list);
    input.removeAttribute("list"); // this list takes its place
    if (focused) input.focus();
    // A form that is opened is written into at once.
    const fold = input.closest("details.new-chat");
    fold?.querySelector("summary").addEventListener("click", () => setTimeout(() => {
      if (fold.open) (form.querySelector("[autofocus]") || input).focus();
    }));
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"]]) input.setAttribute(name, value);
    const chosen = new Map(); // handle → chip
    let at = -1;
    let timer = 0;
    let running = null;
    let searching = false; // the names for the text are not there yet
    let entered = false; // … and Enter waits for them

    function close() {
      clearTimeout(timer);
      running?.abort();
      searching = entered = false;
      list.hidden = true;
      at = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    }
    function mark(to) {
      const options = list.children;
      if (options.length === 0) return;
      if (at >= 0) options[at].setAttribute("aria-selected", "false");
      at = (to + options.length) % options.length;
      options[at].setAttribute("aria-selected", "true");
      options[at].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", options[at].id);
    }
    function take(option) {
      const ref = option.dataset.ref;
      close();
      if (one) {
        input.value = ref;
        form.requestSubmit();
        return;
      }
      if (agent) {
        input.value = ref;
        form.querySelector("button").focus();
        return;
      }
      input.value = "";
      if (chosen.has(ref)) return;
      const chip = document.createElement("li");
      chip.className = "member-chip";
      const face = option.querySelector(".avatar");
      if (face) chip.append(face.cloneNode(true));
      const name = document.createElement("bdi");
      name.textContent = option.querySelector(".member-title").textContent.trim();
      const drop = document.createElement("button");
      drop.type = "button";
      drop.textContent = "×";
      drop.setAttribute("aria-label", "Remove " + name.textContent);
      drop.addEventListener("click", () => remove(ref));
      chip.append(name, drop);
      chosen.set(ref, chip);
      chips.append(chip);
      input.focus();
    }
    function remove(ref) {
      chosen.get(ref)?.remove();
      chosen.delete(ref);
      input.focus();
    }
    const begins = (option, q) => [option.dataset.ref, option.querySelector(".member-title").textContent.trim()]
      .some((name) => name.toLowerCase().startsWith(q.replace(/^@/, "").toLowerCase()));
    async function ask() {
      const q = input.value.split(",").at(-1).trim();
      running = new AbortController();
      try {
        const answer = await fetch("/chat/members?" + new URLSearchParams({ q }), { headers: { Accept: "text/html" }, signal: running.signal });
        if (!answer.ok || document.activeElement !== input) {
          searching = entered = false;
          return;
        }
        const found = window.agentsite.fragment(await answer.text());
        const options = [...found.querySelectorAll("[role=option]")].filter((o) => !chosen.has(o.dataset.ref) && !(agent && "person" in o.dataset));
        options.forEach((o, i) => { o.id = list.id + "-" + i; });
        at = -1;
        list.replaceChildren(...options);
        list.hidden = options.length === 0;
        input.setAttribute("aria-expanded", String(!list.hidden));
        input.removeAttribute("aria-activedescendant");
        // Enter takes the first name that begins so. Where a choice sends the form, the person marks it.
        if (!one && !agent && q !== "" && options.length > 0 && begins(options[0], q)) mark(0);
        searching = false;
        if (!entered) return;
        entered = false;
        if (at >= 0) take(list.children[at]);
        else form.requestSubmit();
      } catch (err) {
        if (err.name === "AbortError") return;
        searching = entered = false;
        console.warn("members:", err);
      }
    }
    input.addEventListener("input", (event) => {
      clearTimeout(timer);
      running?.abort();
      entered = false;
      searching = !isComposing(event);
      if (searching) timer = setTimeout(ask, wait);
    });
    input.addEventListener("focus", () => list.hidden && ask());
    input.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (event.key === "Backspace" && input.value === "" && chosen.size > 0) remove([...chosen.keys()].at(-1));
      else if (event.key === "Enter" && searching && !one && !agent && input.value.trim() !== "") entered = true;
      else if (list.hidden) return;
      else if (event.key === "ArrowDown") mark(at + 1);
      else if (event.key === "ArrowUp") mark(at < 0 ? -1 : at - 1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter" && at >= 0) take(list.children[at]);
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", close);
    list.addEventListener("mousedown", (event) => event.preventDefault()); // a click on an option leaves the focus
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) take(option);
    });
    form.addEventListener("submit", () => {
      close();
      if (chosen.size > 0) input.value = [...chosen.keys(), input.value.trim()].filter(Boolean).join(", ");
    });
  }

  for (const input of document.querySelectorAll("[data-members]")) choose(input);
})();
