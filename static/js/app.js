// Small comforts on top of pages that work without them. Loaded on every page, before any other script of ours.
"use strict";

(() => {
  // The server sanitises the HTML that it renders; this policy is the only way for it into a page.
  const rules = {
    createHTML: (html) => html,
    // The worker that shows notices is the only script that a page loads by its address.
    createScriptURL(url) {
      if (url !== "/push-worker.js") throw new TypeError("not a script of this portal");
      return url;
    },
  };
  const policy = window.trustedTypes ? window.trustedTypes.createPolicy("agentsite", rules) : rules;

  /** Parses HTML rendered by our server into a fragment. */
  function fragment(html) {
    const template = document.createElement("template");
    template.innerHTML = policy.createHTML(html);
    return template.content;
  }

  // ---- times in the reader's own zone ----
  const formats = {
    time: { hour: "2-digit", minute: "2-digit" },
    date: { day: "numeric", month: "short", year: "numeric" },
    datetime: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  };
  const formatters = {};
  for (const [name, options] of Object.entries(formats)) {
    formatters[name] = new Intl.DateTimeFormat(undefined, options);
  }
  const sameDay = (a, b) => a.toDateString() === b.toDateString();

  function localTimes(root) {
    const now = new Date();
    for (const el of root.querySelectorAll("time[datetime][data-show]")) {
      const at = new Date(el.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      let show = el.dataset.show;
      if (show === "time" && !sameDay(at, now)) show = "datetime";
      if (show === "datetime" && sameDay(at, now)) show = "time";
      if (show === "datetime" && at.getFullYear() !== now.getFullYear()) show = "date";
      el.textContent = (formatters[show] || formatters.datetime).format(at);
      el.title = at.toLocaleString();
      delete el.dataset.show;
    }
  }

  // ---- copying ----
  const canCopy = Boolean(navigator.clipboard && navigator.clipboard.writeText);
  const copyTemplate = document.querySelector("[data-copy-template]");

  // Elements that scroll sideways can be focused by keyboard; elements that fit are skipped.
  const wideTables = window.ResizeObserver && new ResizeObserver((list) => {
    for (const { target } of list) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });

  function copyButtons(root) {
    if (!canCopy || !copyTemplate) return;
    for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
    for (const pre of root.querySelectorAll(".prose pre, .data pre")) {
      if (pre.parentElement.classList.contains("code")) continue;
      const wrap = document.createElement("div");
      wrap.className = "code";
      pre.replaceWith(wrap);
      pre.tabIndex = 0;
      pre.dataset.copySource = "";
      wrap.append(pre, copyTemplate.content.cloneNode(true));
      wrap.querySelector("[data-copy]").hidden = false;
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = button.parentElement.querySelector("[data-copy-source]");
    if (!source) return;
    const label = button.querySelector(".copy-label");
    try {
      await navigator.clipboard.writeText(source.innerText.trim());
      label.textContent = "Copied";
    } catch {
      label.textContent = "Select and copy by hand";
    }
    button.classList.add("copy-done");
    setTimeout(() => {
      button.classList.remove("copy-done");
      label.textContent = "Copy";
    }, 1800);
  });

  // Copied text has the source of its formulas.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!event.clipboardData || event.defaultPrevented || selection.rangeCount === 0) return;
    const part = selection.getRangeAt(0).cloneContents();
    const formulas = part.querySelectorAll("math");
    if (formulas.length === 0) return;
    for (const math of formulas) math.replaceWith((math.querySelector("annotation") || math).textContent);
    const copied = document.createElement("div");
    copied.className = "prose visually-hidden";
    copied.append(part);
    document.body.append(copied);
    event.clipboardData.setData("text/plain", copied.innerText.trim());
    event.clipboardData.setData("text/html", copied.innerHTML);
    copied.remove();
    event.preventDefault();
  });

  /** Prepares HTML that has just come into the page. */
  function enhance(root) {
    localTimes(root);
    copyButtons(root);
    if (wideTables) for (const table of root.querySelectorAll(".prose :is(table, .math-block, .math-long)")) wideTables.observe(table);
  }

  // ---- forms ----
  document.addEventListener("keydown", (event) => {
    const area = event.target;
    if (event.key !== "Enter" || event.shiftKey || isComposing(event) || event.defaultPrevented) return;
    if (!(area instanceof HTMLTextAreaElement) || !("enterSends" in area.dataset)) return;
    const touchOnly = matchMedia("(hover: none) and (pointer: coarse)").matches;
    if (touchOnly && !event.ctrlKey && !event.metaKey) return; // there Enter is the only way to a new line
    event.preventDefault();
    if (area.value.trim() !== "") area.form.requestSubmit();
  });

  if (!CSS.supports("field-sizing", "content")) {
    const grow = (area) => {
      area.style.height = "auto";
      area.style.height = area.scrollHeight + 2 + "px";
    };
    document.addEventListener("input", (event) => {
      if (event.target instanceof HTMLTextAreaElement) grow(event.target);
    });
  }

  // A form posted twice by an impatient finger is posted once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 3000);
  });

  // ---- search while typing: the same page, fetched, and its result part exchanged ----
  function liveSearch(form) {
    const selector = form.dataset.liveSearch;
    const field = form.querySelector("input[type=search]");
    let timer = 0;
    let running = null;
    const run = async () => {
      const url = new URL(form.action);
      url.search = new URLSearchParams(new FormData(form)).toString();
      if (running) running.abort();
      running = new AbortController();
      const target = document.querySelector(selector);
      target.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(url, { headers: { Accept: "text/html" }, signal: running.signal });
        if (!answer.ok) return;
        const fresh = fragment(await answer.text()).querySelector(selector);
        if (!fresh) return;
        const fold = target.querySelector("[data-open-when-wide]");
        const freshFold = fresh.querySelector("[data-open-when-wide]");
        if (fold && freshFold) freshFold.open = fold.open;
        target.replaceWith(fresh);
        enhance(fresh);
        const status = document.querySelector("[data-search-status]");
        if (status) status.textContent = fresh.querySelector("h2[id]")?.textContent.trim() || "";
        document.dispatchEvent(new CustomEvent("agentsite:found"));
        history.replaceState(null, "", url);
      } catch (err) {
        if (err.name !== "AbortError") console.warn("search:", err);
      } finally {
        document.querySelector(selector)?.removeAttribute("aria-busy");
      }
    };
    field.addEventListener("input", (event) => {
      clearTimeout(timer);
      if (!isComposing(event)) timer = setTimeout(run, 180);
    });
    // The next page ends a search that runs: its failure is none.
    const cancel = () => {
      clearTimeout(timer);
      if (running) running.abort();
    };
    form.addEventListener("submit", cancel);
    addEventListener("pagehide", cancel);
  }

  // ---- folds and menus ----
  function folds() {
    if (CSS.supports("selector(::details-content)")) return; // the style sheet does it
    const wide = matchMedia("(min-width: 52.01rem)");
    const set = () => {
      for (const el of document.querySelectorAll("[data-open-when-wide]")) el.open = wide.matches;
    };
    wide.addEventListener("change", set);
    set();
  }

  function menus() {
    const close = (event) => {
      for (const menu of document.querySelectorAll("[data-menu][open]")) {
        if (event.type === "keydown" ? event.key === "Escape" : !menu.contains(event.target)) {
          menu.open = false;
          if (event.type === "keydown") menu.querySelector("summary").focus();
        }
      }
    };
    document.addEventListener("click", close);
    document.addEventListener("keydown", close);
  }

  window.agentsite = { fragment, enhance, scriptURL: (url) => policy.createScriptURL(url) };
  enhance(document);
  folds();
  menus();
  for (const form of document.querySelectorAll("[data-live-search]")) liveSearch(form);
  document.querySelector("[data-focus]")?.focus();
})();
