// A live conversation. The page is complete without it: this is the ground that the other chat-*.js files, which come
// after it in the same file, stand on. Needs app.js and live.js.
"use strict";

(() => {
  const root = document.getElementById("chat");
  const site = window.agentsite;
  if (!root || !site || !site.live || !root.dataset.conversation) return;

  const $ = (name) => root.querySelector("[data-" + name + "]");
  const api = "/api/v1/conversations/" + encodeURIComponent(root.dataset.conversation);
  const page = "/chat/" + encodeURIComponent(root.dataset.conversation);

  // ---- events between the parts of the script ----
  const listeners = new Map();
  const on = (name, fn) => {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(fn);
  };
  const emit = (name, ...args) => {
    for (const fn of listeners.get(name) || []) fn(...args);
  };

  // ---- messages to the reader ----
  const stateLine = $("state");
  const announcer = $("announce");
  const errorLine = $("error");
  function say(state) {
    if (!stateLine) return;
    stateLine.textContent = state;
    stateLine.hidden = state === "";
  }
  function announce(text) {
    if (announcer) announcer.textContent = text;
  }
  function fail(message) {
    if (!errorLine) {
      if (message) announce(message);
      return;
    }
    errorLine.hidden = message === "";
    (errorLine.querySelector("[data-error-text]") || errorLine).textContent = message;
  }

  /** Asks the API. Answers {ok, status, body, message}: status 0 is no connection, message is for people. */
  async function ask(method, url, body) {
    const options = { method, headers: { Accept: "application/json" } };
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let answer;
    try {
      answer = await fetch(url, options);
    } catch {
      return { ok: false, status: 0, body: {}, message: "There is no connection to the portal. Try again." };
    }
    const content = await answer.json().catch(() => ({}));
    return { ok: answer.ok, status: answer.status, body: content || {}, message: answer.ok ? "" : refusal(answer, content) };
  }

  function refusal(answer, content) {
    let message = (content && content.error && typeof content.error.message === "string" && content.error.message) || "This did not work (" + answer.status + ").";
    if (answer.status === 429) {
      const seconds = Number(answer.headers.get("Retry-After"));
      if (seconds > 0) message += " You can try again in " + (seconds === 1 ? "a second." : seconds + " seconds.");
    }
    return message;
  }

  // ---- small things ----
  const partsText = (parts) => (Array.isArray(parts) ? parts : []).map((p) => (p && typeof p.text === "string" ? p.text : "")).join("");
  const guest = root.dataset.meKind === "guest";
  /** Whether a sender of this kind and handle is the reader. */
  const isMe = (kind, handle) => handle === root.dataset.me && (guest ? kind === "guest" : kind === "person" || kind === "operator");
  const isMine = (sender) => Boolean(sender) && isMe(sender.kind, sender.handle);
  const newID = () => (crypto.randomUUID ? crypto.randomUUID() : Date.now().toString(36) + "-" + Math.random().toString(36).slice(2));
  const isSeq = (n) => Number.isSafeInteger(n) && n > 0;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  /** Makes an element: make("p", "class names", "text", {attribute: value}). */
  function make(tag, className, text, attributes) {
    const el = document.createElement(tag);
    if (className) el.className = className;
    if (text) el.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) el.setAttribute(name, value);
    return el;
  }

  /** Storage that may be full or forbidden: then nothing is kept. */
  const keep = {
    get(key) {
      try {
        return localStorage.getItem(key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        if (value === null) localStorage.removeItem(key);
        else localStorage.setItem(key, value);
        return true;
      } catch {
        return false;
      }
    },
    keys(prefix) {
      try {
        return Object.keys(localStorage).filter((k) => k.startsWith(prefix)).sort();
      } catch {
        return [];
      }
    },
  };
  // Stored data belongs to one person in one conversation.
  const keyOf = (what) => "agentsite:" + what + ":" + root.dataset.me + ":" + root.dataset.conversation;

  function members() {
    return [...root.querySelectorAll("[data-member]")].map((el) => ({
      el,
      ref: el.dataset.member,
      handle: el.dataset.handle || el.dataset.member,
      label: (el.querySelector("[data-member-name]") || el).textContent.trim() || el.dataset.member,
      agent: el.dataset.kind === "agent",
    }));
  }
  const memberOf = (handle) => members().find((m) => m.handle === handle || m.ref === handle);

  site.chat = {
    root, api, page, $, on, emit, say, announce, fail, ask, partsText, isMe, isMine, isSeq, newID, make, keep, keyOf, calm, members, memberOf,
    me: root.dataset.me,
    id: root.dataset.conversation,
    messages: $("messages"),
    form: $("composer"),
    text: $("composer") && $("composer").elements.text,
  };
})();
