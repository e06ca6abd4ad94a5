// Messages that the portal has not accepted yet. They are stored in this browser, for all tabs and beyond their end,
// and sent in order, by one tab at a time; the client_id makes sure that each is accepted once.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat || !chat.form) return;
  const { api, $, on, emit, make, ask, fail, newID, keep, keyOf, messages, scroll } = chat;

  const prefix = keyOf("out") + ":";
  const template = $("pending-template");
  const place = $("pending");
  const firstRetry = 1500; // ms
  const longestRetry = 30000;
  const longestLock = 20000; // another tab may have been put to sleep with the lock
  const items = new Map(); // client_id → item
  const unkept = new Map(); // messages that the browser's storage refused
  const sent = new Map(); // client_id → {id, seq}: accepted, but not yet seen on the stream
  const early = new Map(); // id of a message that was seen → before its answer came
  let flushing = false;
  let tries = 0;
  let timer = 0;

  // ---- storage: one entry per message, so that tabs never overwrite each other's ----
  const keyFor = (item) => prefix + String(item.at).padStart(15, "0") + ":" + item.client_id;
  function read(key) {
    let item;
    try {
      item = JSON.parse(keep.get(key) || "null");
    } catch {
      return null;
    }
    const good = item && typeof item.client_id === "string" && Number.isFinite(item.at) && Array.isArray(item.parts) && keyFor(item) === key;
    return good ? item : null;
  }
  function kept() {
    const list = [...unkept.values(), ...keep.keys(prefix).map(read).filter(Boolean)];
    return list.sort((a, b) => a.at - b.at || (a.client_id < b.client_id ? -1 : 1));
  }
  const isKept = (item) => unkept.has(item.client_id) || keep.get(keyFor(item)) !== null;
  function forget(item) {
    unkept.delete(item.client_id);
    keep.set(keyFor(item), null);
  }

  // ---- its bubbles stand outside of the log: a screen reader hears the message once, when it is really there ----
  const textOf = (item) => chat.partsText(item.parts);
  const filesOf = (item) => item.parts.filter((p) => p && typeof p.url === "string");

  function show(item) {
    if (items.has(item.client_id)) return;
    let el = template && template.content.firstElementChild.cloneNode(true);
    if (!el) {
      el = make("article", "message message-mine message-person message-pending");
      el.append(make("header", "message-head", "", { "data-pending-state": "" }));
      const box = make("div", "bubble");
      box.append(make("div", "streamed", "", { "data-pending-text": "" }));
      el.append(box);
    }
    el.dataset.client = item.client_id;
    el.querySelector("[data-pending-text]").textContent = textOf(item);
    const files = el.querySelector("[data-pending-files]");
    if (files) {
      files.replaceChildren(...filesOf(item).map((p) => make(files.matches("ul, ol") ? "li" : "span", "quiet", p.filename || "file")));
      files.hidden = filesOf(item).length === 0;
    }
    const drop = el.querySelector("[data-pending-drop]");
    if (drop) {
      drop.hidden = true;
      drop.addEventListener("click", () => takeBack(item.client_id));
    }
    items.set(item.client_id, { ...item, el });
    $("empty")?.remove();
    scroll.hold(() => place.append(el));
    tell(item.client_id, "sending…", false);
  }

  function tell(id, state, held) {
    const shown = items.get(id);
    if (!shown) return;
    shown.el.hidden = false;
    const line = shown.el.querySelector("[data-pending-state]");
    if (line && line.textContent !== state) line.textContent = state;
    const drop = shown.el.querySelector("[data-pending-drop]");
    if (drop) drop.hidden = !held;
  }

  function hide(id) {
    const shown = items.get(id);
    if (!shown) return;
    items.delete(id);
    if (shown.el.contains(document.activeElement)) chat.text.focus({ preventScroll: true });
    scroll.hold(() => shown.el.remove());
  }

  /** Gives a message that does not go out back to whoever wrote it. */
  function giveBack(item) {
    forget(item);
    hide(item.client_id);
    emit("given-back", item);
  }
  function takeBack(id) {
    const item = items.get(id);
    if (!item || sent.has(id) || !isKept(item)) return;
    giveBack(item);
  }

  // ---- sending ----
  function add({ text, parts, reply_to, told, share, client_id }) {
    const item = { client_id: client_id || newID(), at: Date.now(), parts: parts || [{ text }] };
    if (reply_to) item.reply_to = reply_to;
    if (told && told.length > 0) {
      item.told = told;
      if (share) item.share = share;
    }
    for (const other of items.values()) if (other.at >= item.at) item.at = other.at + 1;
    if (!keep.set(keyFor(item), JSON.stringify(item))) unkept.set(item.client_id, item);
    fail("");
    show(item);
    chat.window.toEnd();
    flush();
  }

  async function flush() {
    clearTimeout(timer);
    if (flushing) return;
    flushing = true;
    let outcome = "done";
    try {
      if (navigator.locks) {
        const patience = new AbortController();
        const late = setTimeout(() => patience.abort(), longestLock);
        await navigator.locks.request(prefix, { signal: patience.signal }, async () => {
          clearTimeout(late);
          outcome = await drain();
        });
      } else outcome = await drain();
    } catch {
      outcome = await drain(); // whoever has the lock does nothing with it
    } finally {
      flushing = false;
    }
    if (outcome === "later") {
      const wait = Math.min(longestRetry, firstRetry * 2 ** Math.min(tries++, 6)) * (0.5 + Math.random() / 2);
      timer = setTimeout(flush, wait);
    } else {
      tries = 0;
      if (kept().length > 0) flush(); // said while the last one was on its way
    }
  }

  async function drain() {
    for (let item = kept()[0]; item; item = kept()[0]) {
      show(item);
      tell(item.client_id, "sending…", false);
      const outcome = await post(item);
      if (outcome === "later") {
        for (const other of kept()) tell(other.client_id, navigator.onLine ? "waiting for the connection…" : "will be sent when you are online", true);
        return "later";
      }
      if (outcome === "refused") giveBack(item);
      else forget(item);
    }
    return "done";
  }

  async function post(item) {
    const only = item.parts.length === 1 && typeof item.parts[0].text === "string";
    const body = { client_id: item.client_id, ...(only ? { text: item.parts[0].text } : { parts: item.parts }) };
    for (const name of ["reply_to", "told", "share"]) if (item[name]) body[name] = item[name];
    const answer = await ask("POST", api + "/messages", body);
    const unsure = answer.status === 0 || answer.status >= 500 || answer.status === 408;
    if (unsure && !item.tried) {
      item.tried = true; // the portal may have it: it is not given up before that is known
      if (!unkept.has(item.client_id) && isKept(item)) keep.set(keyFor(item), JSON.stringify(item));
    }
    if (unsure || (answer.status === 429 && item.tried)) return "later";
    if (!answer.ok) {
      fail(answer.message);
      if (answer.body.error?.fields?.told) emit("must-tell", item);
      return "refused";
    }
    if (early.has(answer.body.id)) {
      early.delete(answer.body.id);
      hide(item.client_id);
    } else if (messages.querySelector('[data-id="' + CSS.escape(String(answer.body.id)) + '"]')) hide(item.client_id);
    else {
      sent.set(item.client_id, { id: answer.body.id, seq: answer.body.seq });
      tell(item.client_id, answer.body.state === "queued" ? "waiting for the other portal…" : "sent", false);
      if (!chat.link.open()) chat.link.connect();
      setTimeout(() => unseen(item.client_id), 8000);
    }
    emit("accepted", item);
    return "done";
  }

  // Look up messages that were accepted but did not come over the stream.
  function unseen(id) {
    const known = sent.get(id);
    if (!known) return;
    if (Number(known.seq) <= chat.transcript.lastSeq()) {
      sent.delete(id);
      hide(id);
    } else {
      chat.link.again();
      setTimeout(() => unseen(id), 8000);
    }
  }

  on("said", (m, mine) => {
    if (!mine) return;
    for (const [id, known] of sent) {
      if (known.id === m.id) {
        sent.delete(id);
        hide(id);
        return;
      }
    }
    // The stream may be quicker than the answer to the request.
    early.set(m.id, true);
    if (early.size > 50) early.delete(early.keys().next().value);
    const flying = flushing && [...items.values()].find((item) => !sent.has(item.client_id) && textOf(item) === chat.partsText(m.parts) && textOf(item) !== "");
    if (flying) flying.el.hidden = true;
  });

  // Another tab says something, or has sent it.
  addEventListener("storage", (event) => {
    if (event.key === null || !event.key.startsWith(prefix)) return;
    if (event.newValue === null) {
      const id = event.key.slice(prefix.length + 16);
      if (!sent.has(id)) hide(id);
      return;
    }
    const item = read(event.key);
    if (!item) return;
    show(item);
    flush(); // waits for the other tab, and takes over if that is closed
  });

  addEventListener("online", flush);
  on("open", flush);
  addEventListener("pageshow", flush);

  chat.outbox = {
    add,
    flush,
    start() {
      for (const item of kept()) show(item);
      if (items.size > 0) flush();
    },
  };
})();
