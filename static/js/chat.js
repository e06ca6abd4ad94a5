// A live conversation: what others say and what is being answered comes over a WebSocket, what is typed goes out by POST.
// The page is complete without it. Needs app.js.
"use strict";

(() => {
  const chat = document.getElementById("chat");
  if (!chat || !window.agentsite) return;
  const { fragment, enhance } = window.agentsite;

  const api = "/api/v1/conversations/" + encodeURIComponent(chat.dataset.conversation);
  const me = chat.dataset.me;
  const $ = (name) => chat.querySelector("[data-" + name + "]");
  const scroller = $("transcript");
  const inner = $("inner");
  const messages = $("messages");
  const working = $("working");
  const template = $("working-template");
  const stateLine = $("state");
  const announcer = $("announce");
  const toEnd = $("to-end");
  const form = $("composer");
  const text = form && form.elements.text;
  const stop = $("stop");
  const errorLine = $("error");

  // ---- scrolling ----
  // The scroller is reversed: scrollTop is 0 at the newest message and negative above it. At the end the browser keeps
  // us there; anywhere else what grows below must not move what is being read.
  const nearEnd = 48;
  const atEnd = () => scroller.scrollTop > -nearEnd;
  let follows = true;
  let height = inner.offsetHeight;
  new ResizeObserver(() => {
    const grown = inner.offsetHeight - height;
    height += grown;
    if (follows) scroller.scrollTop = 0;
    else if (grown !== 0) scroller.scrollTop -= grown;
  }).observe(inner);
  scroller.addEventListener("scroll", () => {
    follows = atEnd();
    if (follows) toEnd.hidden = true;
  }, { passive: true });
  const goToEnd = () => {
    follows = true;
    scroller.scrollTop = 0;
    toEnd.hidden = true;
  };
  toEnd.addEventListener("click", () => {
    goToEnd();
    if (text) text.focus({ preventScroll: true });
  });
  if (location.hash.startsWith("#m")) {
    follows = false;
    document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
  }

  // ---- unseen messages in the tab's title ----
  let title = document.title;
  let unseen = 0;
  let hiddenAt = 0;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      hiddenAt = Date.now();
      return;
    }
    unseen = 0;
    document.title = title;
    noteRead();
    if (hiddenAt && Date.now() - hiddenAt > longestSleep) letGo();
    connect();
  });

  // ---- messages ----
  const shown = new Set();
  let lastSeq = Number(chat.dataset.after) || 0;
  for (const el of messages.querySelectorAll("[data-seq]")) shown.add(Number(el.dataset.seq));

  function place(el, seq) {
    let before = messages.lastElementChild;
    while (before && !(Number(before.dataset.seq) < seq)) before = before.previousElementSibling;
    if (before) before.after(el);
    else messages.prepend(el);
  }

  function onMessage(m) {
    const seq = Number(m.seq);
    if (!Number.isInteger(seq) || shown.has(seq)) return;
    const el = m.html ? fragment(m.html).firstElementChild : plainMessage(m);
    if (!el) return;
    el.dataset.seq = String(seq);
    shown.add(seq);
    lastSeq = Math.max(lastSeq, seq);
    const mine = m.sender && (m.sender.kind === "person" || m.sender.kind === "guest") && m.sender.handle === me;
    if (mine) el.classList.add("message-mine");
    enhance(el);
    chat.querySelector("[data-empty]")?.remove();
    if (mine) settlePending(m);
    if (m.task && m.task.id) {
      if (!m.task.state || rests(m.task.state)) dropTask(m.task.id);
      else emptyTask(m.task.id);
    }
    place(el, seq);
    if (!follows && !mine) toEnd.hidden = false;
    if (document.hidden && !mine) {
      unseen++;
      document.title = "(" + unseen + ") " + title;
    }
    noteRead();
  }

  // ---- what has been read ----
  // The page itself notes what it showed; what comes later is noted once the tab is looked at, many at a time.
  const readWait = 400; // ms
  let readSeq = lastSeq;
  let readTimer = 0;
  function noteRead() {
    if (readTimer || document.hidden || lastSeq <= readSeq) return;
    readTimer = setTimeout(sendRead, readWait);
  }
  function sendRead() {
    clearTimeout(readTimer);
    readTimer = 0;
    if (document.hidden || lastSeq <= readSeq) return;
    readSeq = lastSeq;
    fetch(api + "/read", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ seq: readSeq }), keepalive: true }).catch(() => {});
  }

  // A conversation without a title gets one from its first message.
  async function learnTitle() {
    if (!("untitled" in chat.dataset)) return;
    delete chat.dataset.untitled;
    const answer = await fetch(api, { headers: { Accept: "application/json" } }).catch(() => null);
    const c = answer && answer.ok && (await answer.json().catch(() => null));
    if (!c || !c.title) return;
    const heading = chat.querySelector("h1 bdi");
    title = document.title = document.title.replace(heading.textContent, () => c.title);
    heading.textContent = c.title;
    const field = chat.querySelector('[data-menu] input[name="title"]');
    if (field && field.value === "") field.value = c.title;
  }

  const partsText = (parts) => (Array.isArray(parts) ? parts : []).map((p) => (p && typeof p.text === "string" ? p.text : "")).join("");

  // plainMessage is for a message that came without its HTML.
  function plainMessage(m) {
    if (m.kind === "event") {
      const line = document.createElement("p");
      line.className = "event";
      line.textContent = partsText(m.parts);
      return line;
    }
    const el = bubble("message", (m.sender && m.sender.handle) || "", partsText(m.parts));
    el.id = "m" + m.seq;
    return el;
  }

  function bubble(className, name, content) {
    const el = document.createElement("article");
    el.className = className;
    const head = document.createElement("header");
    head.className = "message-head";
    head.textContent = name;
    const box = document.createElement("div");
    box.className = "bubble";
    const body = document.createElement("div");
    body.className = "streamed";
    body.textContent = content;
    box.append(body);
    el.append(head, box);
    return el;
  }

  // ---- answers in the making ----
  // A delta names the byte at which its text belongs, so we count bytes as UTF-8, not JavaScript's characters.
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const bytes = (s) => encoder.encode(s).length;
  const tasks = new Map(); // id → {el, streamed, text, have, over}
  const ended = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);
  // Of a task that rests nothing comes before somebody answers it, if ever.
  const rests = (state) => ended(state) || ["input_required", "auth_required"].includes(state);
  const labels = { submitted: "waiting for its turn", working: "answering" };

  function adopt(el) {
    const streamed = el.querySelector("[data-streamed]");
    const task = { el, streamed, text: streamed.textContent, have: bytes(streamed.textContent), over: 0 };
    tasks.set(el.dataset.task, task);
    return task;
  }
  for (const el of working.querySelectorAll("[data-task]")) adopt(el);

  function taskOf(id, agent) {
    const known = tasks.get(id);
    if (known) return known;
    const el = template.content.firstElementChild.cloneNode(true);
    el.dataset.task = id;
    const task = adopt(el);
    name(el, agent);
    chat.querySelector("[data-empty]")?.remove();
    working.append(el);
    showStop();
    return task;
  }

  function name(el, agent) {
    if (!agent || el.dataset.agent === agent) return;
    el.dataset.agent = agent;
    const member = [...chat.querySelectorAll("[data-member]")].find((m) => m.dataset.member === agent || m.dataset.handle === agent);
    const label = member ? member.textContent.trim() : agent;
    el.querySelector("[data-name]").textContent = label;
    const face = member && member.querySelector(".avatar");
    if (face) el.querySelector(".avatar").replaceWith(face.cloneNode(true));
    announcer.textContent = label + " is answering";
  }

  function onDelta(d) {
    if (typeof d.text !== "string" || !d.task_id) return;
    const task = taskOf(d.task_id, d.agent);
    if (task.over) return; // its end has come already
    const offset = Number(d.offset) || 0;
    if (offset > task.have) return; // something is missing; a later delta begins at 0 again
    if (offset < task.have) {
      task.text = decoder.decode(encoder.encode(task.text).subarray(0, offset));
      task.streamed.textContent = task.text;
    }
    task.text += d.text;
    task.have = offset + bytes(d.text);
    if (task.streamed.lastChild) task.streamed.lastChild.appendData(d.text);
    else task.streamed.textContent = task.text;
    task.el.querySelector("[data-bubble]").classList.toggle("bubble-empty", task.text === "");
  }

  function onTask(event) {
    const t = event.task;
    if (!t || !t.id) return;
    if (!rests(t.state)) {
      const task = taskOf(t.id, t.agent);
      clearTimeout(task.over); // it goes on
      task.over = 0;
      name(task.el, t.agent);
      task.el.querySelector("[data-task-state]").textContent = labels[t.state] || "answering";
      showStop();
      return;
    }
    // Its last message takes the bubble's place; wait for it a moment, so that nothing blinks.
    const task = tasks.get(t.id);
    if (!task) return;
    task.over = setTimeout(() => dropTask(t.id), 1500);
    showStop();
  }

  function emptyTask(id) {
    const task = tasks.get(id);
    if (!task) return;
    task.text = "";
    task.have = 0;
    task.streamed.textContent = "";
    task.el.querySelector("[data-bubble]").classList.add("bubble-empty");
  }

  function dropTask(id) {
    const task = tasks.get(id);
    if (!task) return;
    clearTimeout(task.over);
    task.el.remove();
    tasks.delete(id);
    announcer.textContent = "";
    showStop();
  }

  function showStop() {
    if (stop) stop.hidden = ![...tasks.values()].some((t) => !t.over);
  }

  // ---- the socket ----
  const firstWait = 500; // ms
  const longestWait = 20000;
  const longestConnect = 10000;
  const longestSleep = 30000; // a page hidden for longer may hold a socket that died unnoticed
  let socket = null;
  let failures = 0;
  let retry = 0;
  let refused = false;

  function say(state) {
    stateLine.textContent = state;
    stateLine.hidden = state === "";
  }

  function connect() {
    clearTimeout(retry);
    if (socket || refused) return;
    const url = new URL(api + "/live?html=1&after=" + lastSeq, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const ws = new WebSocket(url);
    socket = ws;
    const tooLong = setTimeout(() => ws.close(), longestConnect);
    ws.onopen = () => {
      clearTimeout(tooLong);
      failures = 0;
      say("");
      flush();
    };
    ws.onmessage = (event) => {
      let e;
      try {
        e = JSON.parse(event.data);
      } catch {
        return;
      }
      switch (e && e.type) {
        case "message": onMessage(e); break;
        case "delta": onDelta(e); break;
        case "task": onTask(e); break;
        default: // typing, presence and what is yet to come
      }
    };
    ws.onclose = (event) => {
      clearTimeout(tooLong);
      if (socket !== ws) return;
      socket = null;
      if (event.code === 1008) { // policy: this conversation is not, or no longer, ours
        refused = true;
        say("Not connected. Reload the page");
        return;
      }
      again();
    };
  }

  function again() {
    failures++;
    const wait = Math.min(longestWait, firstWait * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2);
    if (failures > 1 || !navigator.onLine) say(navigator.onLine ? "Reconnecting…" : "Offline");
    clearTimeout(retry);
    retry = setTimeout(connect, wait);
  }

  // letGo forgets the socket without waiting for the network to tell; what we have seen so far is where we resume.
  function letGo() {
    const ws = socket;
    socket = null;
    if (ws) ws.close();
  }

  addEventListener("online", () => {
    failures = 0;
    letGo();
    connect();
    flush();
  });
  addEventListener("offline", () => say("Offline"));
  // A page that goes to sleep lets go of its socket, and takes it up again when it comes back.
  addEventListener("pagehide", () => {
    sendRead();
    letGo();
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });

  // ---- sending ----
  // What has been typed stays in this tab until the server has it: the same client_id is only ever taken once.
  const storeKey = "agentsite:unsent:" + chat.dataset.conversation;
  let queue = [];
  let sending = false;
  let sendRetry = 0;
  const sent = []; // accepted, but not yet seen on the socket

  const newID = () => (crypto.randomUUID ? crypto.randomUUID() : Date.now().toString(36) + "-" + Math.random().toString(36).slice(2));

  function remember() {
    try {
      if (queue.length === 0) sessionStorage.removeItem(storeKey);
      else sessionStorage.setItem(storeKey, JSON.stringify(queue.map(({ client_id, text: t }) => ({ client_id, text: t }))));
    } catch { /* full or forbidden: then a reload forgets */ }
  }

  function fail(message) {
    if (!errorLine) return;
    errorLine.hidden = message === "";
    errorLine.querySelector("[data-error-text]").textContent = message;
  }

  function enqueue(content, clientID) {
    const item = { client_id: clientID || newID(), text: content, el: bubble("message message-mine message-person message-pending", "sending…", content) };
    chat.querySelector("[data-empty]")?.remove();
    pendingBox().append(item.el);
    queue.push(item);
    remember();
    fail("");
    goToEnd();
    flush();
  }

  // Pending bubbles stand outside of the log: a screen reader hears the message once, when it is really there.
  function pendingBox() {
    let box = inner.querySelector("[data-pending]");
    if (!box) {
      box = document.createElement("div");
      box.dataset.pending = "";
      working.before(box);
    }
    return box;
  }

  async function flush() {
    if (sending) return;
    clearTimeout(sendRetry);
    sending = true;
    try {
      while (queue.length > 0) {
        const item = queue[0];
        const outcome = await post(item);
        if (outcome === "later") {
          item.el.querySelector(".message-head").textContent = "waiting for the connection…";
          sendRetry = setTimeout(flush, 2000 + Math.random() * 2000);
          return;
        }
        queue.shift();
        remember();
        if (outcome === "refused") giveBack(item);
      }
    } finally {
      sending = false;
    }
  }

  async function post(item) {
    let answer;
    try {
      answer = await fetch(api + "/messages", {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: JSON.stringify({ client_id: item.client_id, text: item.text }),
      });
    } catch {
      return "later";
    }
    const body = await answer.json().catch(() => ({}));
    if (answer.ok) {
      item.id = body.id;
      item.seq = Number(body.seq);
      for (const notice of chat.querySelectorAll(".composer .goes-to")) notice.remove();
      learnTitle();
      if (shown.has(item.seq) || item.settled) item.el.remove();
      else {
        sent.push(item);
        item.el.querySelector(".message-head").textContent = body.state === "queued" ? "waiting for the other portal…" : "sent";
        if (!socket && !refused) connect();
      }
      return "done";
    }
    if (answer.status >= 500) return "later";
    let message = (body.error && body.error.message) || "This could not be sent (" + answer.status + ").";
    if (answer.status === 429) {
      const seconds = Number(answer.headers.get("Retry-After"));
      if (seconds > 0) message += " You can send again in " + (seconds === 1 ? "a second." : seconds + " seconds.");
    }
    fail(message);
    return "refused";
  }

  // settlePending removes the bubble of a message of ours that has now come back with its seq.
  function settlePending(m) {
    let i = sent.findIndex((p) => p.id === m.id || p.seq === Number(m.seq));
    if (i >= 0) {
      sent.splice(i, 1)[0].el.remove();
      return;
    }
    const inFlight = sending && queue[0];
    if (inFlight && !inFlight.settled && inFlight.text === partsText(m.parts)) {
      inFlight.settled = true;
      inFlight.el.remove();
    }
  }

  function giveBack(item) {
    item.el.remove();
    if (!text) return;
    text.value = text.value.trim() === "" ? item.text : item.text + "\n" + text.value;
    text.focus({ preventScroll: true });
  }

  chat.addEventListener("submit", async (event) => {
    const target = event.target;
    if (target === form) {
      event.preventDefault();
      const content = text.value.trim();
      if (content === "") return;
      text.value = "";
      text.style.height = "";
      enqueue(content);
      text.focus({ preventScroll: true });
    } else if (target.matches("[data-retry]")) {
      event.preventDefault();
      enqueue(target.elements.text.value, target.elements.client_id.value);
      target.remove();
    } else if (target.matches("[data-answer]")) {
      event.preventDefault();
      const alone = chat.querySelectorAll("a[data-member]").length < 2;
      enqueue((alone ? "" : "@" + target.elements.to.value + " ") + event.submitter.value);
    } else if (target.matches("[data-empty] .asks")) {
      event.preventDefault();
      enqueue(event.submitter.value);
    } else if (target === stop) {
      event.preventDefault();
      const button = stop.querySelector("button");
      button.disabled = true;
      try {
        const answer = await fetch(api + "/stop", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
        if (!answer.ok) fail("It could not be stopped (" + answer.status + "). Try again.");
      } catch {
        fail("It could not be stopped: no connection.");
      } finally {
        button.disabled = false;
      }
    }
  });

  try {
    for (const item of JSON.parse(sessionStorage.getItem(storeKey) || "[]")) enqueue(item.text, item.client_id);
  } catch { /* nothing to take up again */ }

  connect();
  const first = chat.querySelector("[data-first]") || text;
  if (first && !("ontouchstart" in window)) first.focus({ preventScroll: first === text });
})();
