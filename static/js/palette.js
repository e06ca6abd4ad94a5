// The palette: all commands by name, from any page with Ctrl or ⌘ K. A combobox in a dialog; other scripts add commands.
"use strict";

(() => {
  const site = window.agentsite;
  if (!site) return;
  const wait = 120; // ms after the last key
  const most = 30;
  const fresh = 15000; // ms the list of conversations is good for
  const sources = [];

  const make = (tag, className, text, attributes) => {
    const el = document.createElement(tag);
    if (className) el.className = className;
    if (text) el.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) el.setAttribute(name, value);
    return el;
  };

  let dialog = document.querySelector("[data-palette]");
  let input = dialog && dialog.querySelector("[data-palette-input]");
  let list = dialog && dialog.querySelector("[data-palette-list]");
  if (!dialog || !input || !list) {
    dialog = make("dialog", "palette", "", { "aria-label": "Run a command" });
    input = make("input", "", "", { "aria-label": "Type a command", dir: "auto", autocomplete: "off", placeholder: "Type a command", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list" });
    list = make("ul", "", "", { id: "palette-list", role: "listbox", "aria-label": "Commands" });
    dialog.append(input, list);
    document.body.append(dialog);
  }
  input.setAttribute("aria-autocomplete", "list");
  const status = make("p", "visually-hidden", "", { role: "status" });
  dialog.append(status);

  let at = -1;
  let shown = [];
  let conversations = [];
  let readAt = 0;
  let agents = [];
  let timer = 0;
  let running = null;
  let before = null; // the element that had the focus

  const go = (href) => () => location.assign(href);
  function pages() {
    const out = [];
    for (const a of document.querySelectorAll(".main-nav a[href], .who a[href]")) {
      const label = a.cloneNode(true);
      const hidden = label.querySelector(".visually-hidden")?.textContent.trim();
      for (const el of label.querySelectorAll(".unread, .visually-hidden, svg, .avatar")) el.remove();
      const name = a.pathname === "/account" ? "Account" : label.textContent.trim() || hidden;
      if (name) out.push({ name, hint: "page", run: go(a.href) });
    }
    return out;
  }

  /** How well a name fits: 0 is best, -1 not at all. */
  function rank(name, query) {
    if (query === "") return 1;
    const text = name.toLowerCase();
    if (text.startsWith(query)) return 0;
    if (text.split(/[\s@.:/-]+/).some((w) => w.startsWith(query))) return 1;
    if (text.includes(query)) return 2;
    const words = query.split(/\s+/);
    return words.length > 1 && words.every((w) => text.includes(w)) ? 3 : -1;
  }

  function fill() {
    const query = input.value.trim().toLowerCase();
    const all = [];
    for (const source of sources) all.push(...source());
    all.push(...conversations.map((c) => ({ name: c.title, hint: c.unread ? c.unread + " unread" : "conversation", run: go("/chat/" + encodeURIComponent(c.id)) })), ...pages());
    const fits = all.map((c, i) => ({ c, i, rank: rank(c.name, query) })).filter((x) => x.rank >= 0)
      .sort((a, b) => a.rank - b.rank || a.i - b.i).map((x) => x.c).slice(0, most);
    fits.push(...agents);
    if (query.length > 1) {
      fits.push({ name: "Search messages for “" + input.value.trim() + "”", hint: "search", run: go("/chat?" + new URLSearchParams({ q: input.value.trim() })) });
      fits.push({ name: "Search agents for “" + input.value.trim() + "”", hint: "search", run: go("/agents?" + new URLSearchParams({ q: input.value.trim() })) });
    }
    shown = fits;
    list.replaceChildren(...fits.map((c, i) => {
      const option = make("li", "", "", { role: "option", id: "palette-" + i, "aria-selected": "false" });
      option.append(make("bdi", "", c.name));
      if (c.hint) option.append(" ", make("span", "quiet", c.hint));
      return option;
    }));
    at = -1;
    if (fits.length > 0) mark(0);
    else input.removeAttribute("aria-activedescendant");
    status.textContent = fits.length === 1 ? "One fits" : fits.length + " fit";
  }

  function mark(to) {
    const options = list.children;
    if (options.length === 0) return;
    if (at >= 0) options[at]?.setAttribute("aria-selected", "false");
    at = (to + options.length) % options.length;
    options[at].setAttribute("aria-selected", "true");
    options[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[at].id);
  }

  async function learn() {
    if (Date.now() - readAt < fresh) return;
    readAt = Date.now();
    const answer = await fetch("/api/v1/conversations?limit=50", { headers: { Accept: "application/json" } }).catch(() => null);
    const body = answer && answer.ok && (await answer.json().catch(() => null));
    if (!body || !Array.isArray(body.conversations)) return;
    conversations = body.conversations.filter((c) => c && typeof c.id === "string").map((c) => {
      const names = (Array.isArray(c.members) ? c.members : []).filter((m) => m && m.kind === "agent").map((m) => m.handle).join(", ");
      return { id: c.id, title: String(c.title || names || "Untitled"), unread: Number(c.unread) || 0 };
    });
    if (dialog.open) fill();
  }

  async function findAgents() {
    const query = input.value.trim();
    running?.abort();
    agents = [];
    if (query.length < 2) return;
    running = new AbortController();
    try {
      const answer = await fetch("/api/v1/suggest?" + new URLSearchParams({ q: query }), { signal: running.signal });
      const body = answer.ok ? await answer.json() : {};
      if (input.value.trim() !== query || !dialog.open || !Array.isArray(body.suggestions)) return;
      agents = body.suggestions.filter((s) => s && s.kind === "agent" && typeof s.handle === "string").slice(0, 6)
        .map((s) => ({ name: String(s.text || s.handle), hint: "@" + s.handle, run: go("/agents/" + encodeURIComponent(s.handle)) }));
      const was = at;
      fill();
      if (was > 0 && was < shown.length) mark(was);
    } catch { /* aborted, or no connection: then there are the others */ }
  }

  function open() {
    if (dialog.open) return;
    before = document.activeElement;
    input.value = "";
    agents = [];
    dialog.showModal();
    input.focus();
    learn();
    fill();
  }

  function choose(index) {
    const command = shown[index];
    if (!command) return;
    dialog.close();
    command.run();
  }

  input.addEventListener("input", (event) => {
    fill();
    clearTimeout(timer);
    if (!isComposing(event)) timer = setTimeout(findAgents, wait);
  });
  input.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "PageDown") mark(Math.min(at + 8, shown.length - 1));
    else if (event.key === "PageUp") mark(Math.max(at - 8, 0));
    else if (event.key === "Enter") choose(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose([...list.children].indexOf(option));
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    running?.abort();
    back(before);
  });

  // back returns the focus to its element, or to the one that replaced it: a
  // message is rendered again when it changes.
  function back(el) {
    const there = el?.isConnected ? el : el?.id && document.getElementById(el.id);
    if (there) there.focus({ preventScroll: true });
  }

  // ---- the list of keys ----
  const keys = document.querySelector("[data-shortcuts]") || makeKeys();
  /** The list of pages without a conversation, which has a longer one of its own. */
  function makeKeys() {
    const d = make("dialog", "shortcuts", "", { "aria-labelledby": "shortcuts-title" });
    const head = make("form", "dialog-head", "", { method: "dialog" });
    head.append(make("h2", "", "Keys", { id: "shortcuts-title" }), make("button", "button button-quiet", "Close"));
    const rows = make("dl");
    for (const [names, does] of [[["Ctrl", "K"], "run a command, find a chat or an agent"], [["Esc"], "close a dialog"], [["?"], "this list"]]) {
      const row = make("div");
      const term = make("dt");
      term.append(...names.map((name) => make("kbd", "", name)));
      row.append(term, make("dd", "", does));
      rows.append(row);
    }
    d.append(head, rows);
    document.body.append(d);
    return d;
  }
  function showKeys() {
    if (keys.open) return;
    const from = document.activeElement;
    keys.addEventListener("close", () => back(from), { once: true });
    keys.showModal();
  }
  keys.addEventListener("click", (event) => {
    if (event.target === keys) keys.close();
  });

  const writes = (el) => el instanceof Element && (el.isContentEditable || el.matches("input:not([type=checkbox], [type=radio], [type=button]), textarea, select"));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || isComposing(event)) return;
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (dialog.open) dialog.close();
      else if (!document.querySelector("dialog[open]")) open();
    } else if (event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey && !writes(event.target) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      showKeys();
    }
  });
  for (const button of document.querySelectorAll("[data-palette-open]")) {
    button.hidden = false;
    button.addEventListener("click", open);
  }
  for (const button of document.querySelectorAll("[data-shortcuts-open]")) {
    button.hidden = false;
    button.addEventListener("click", showKeys);
  }

  /** commands adds a source: a function that answers [{name, hint, run}] as things are now. */
  site.palette = { open, commands: (source) => sources.push(source) };
  sources.push(() => [{ name: "Keyboard shortcuts", hint: "?", run: showKeys }]);
})();
