// Presence of members, typing, read positions, and the messages that the reader has not seen.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, $, on, emit, make, isSeq, transcript, scroll } = chat;
  const badge = window.agentsite.badge;

  // ---- presence ----
  function onPresence(e) {
    if (!Array.isArray(e.handles)) return;
    const here = new Set(e.handles.filter((h) => typeof h === "string"));
    for (const member of chat.members()) {
      const there = here.has(member.handle) || here.has(member.ref);
      const dot = member.el.querySelector("[data-presence]");
      if (dot) dot.hidden = !there;
      member.el.classList.toggle("member-here", there);
    }
  }

  // ---- typing ----
  const typingHolds = 6000; // ms
  const typingEvery = 3000;
  const typers = new Map(); // handle → timer
  const typingLine = $("typing");
  let typedAt = 0;

  function showTyping() {
    if (!typingLine) return;
    const names = [...typers.keys()].map((h) => chat.memberOf(h)?.label || h);
    const text = names.length === 0 ? "" : names.length === 1 ? names[0] + " is typing…" : names.length === 2 ? names.join(" and ") + " are typing…" : "Several people are typing…";
    scroll.hold(() => {
      (typingLine.querySelector("[data-typing-text]") || typingLine).textContent = text;
      typingLine.hidden = text === "";
    });
  }
  function forget(handle) {
    clearTimeout(typers.get(handle));
    if (typers.delete(handle)) showTyping();
  }
  function onTyping(e) {
    if (typeof e.handle !== "string" || e.handle === chat.me || (!typers.has(e.handle) && typers.size >= 20)) return;
    clearTimeout(typers.get(e.handle));
    const known = typers.has(e.handle);
    typers.set(e.handle, setTimeout(() => forget(e.handle), typingHolds));
    if (!known) showTyping();
  }
  on("said", (m) => m.sender && forget(m.sender.handle));

  /** Sends the others from time to time that the reader types. */
  function typing() {
    if ("private" in root.dataset || Date.now() - typedAt < typingEvery || !navigator.onLine) return;
    typedAt = Date.now();
    if (!chat.link.send({ type: "typing" })) chat.ask("POST", api + "/typing", {});
  }

  // ---- how far others have read ----
  const readers = new Map(); // handle → seq
  const readLine = $("read-by"); // stands under the last row
  function onRead(e) {
    if (typeof e.handle !== "string" || !isSeq(e.seq)) return;
    if (e.handle === chat.me) {
      readElsewhere(e.seq);
      return;
    }
    if (!readers.has(e.handle) && readers.size >= 200) return;
    if ((readers.get(e.handle) || 0) >= e.seq) return;
    readers.set(e.handle, e.seq);
    showRead();
  }
  function showRead() {
    if (!readLine) return;
    // It is about the reader's last message; an agent may have answered since.
    let row = transcript.last();
    while (row && (!transcript.isMessage(row) || row.dataset.kind === "agent")) row = transcript.previous(row);
    const mine = row && row.matches(".message-mine:not([data-gone])");
    const who = mine ? [...readers].filter(([, seq]) => seq >= transcript.seqOf(row)).map(([h]) => chat.memberOf(h)?.label || h) : [];
    const text = who.length === 0 ? "" : "Read by " + (who.length > 3 ? who.length + " people" : who.join(", "));
    if (readLine.textContent === text) return;
    scroll.hold(() => {
      readLine.textContent = text;
      readLine.hidden = text === "";
    });
  }
  on("shown", showRead);
  on("amended", showRead);

  // ---- how far the reader has read ----
  // The server marks the messages on the page as read; later ones are marked once they are visible, many at a time.
  const readWait = 400; // ms
  let readSeq = "end" in root.dataset ? transcript.lastSeq() : Number(root.dataset.read) || 0;
  let readTimer = 0;
  if ("end" in root.dataset) badge?.read(chat.id);

  function seenSeq() {
    if (scroll.follows()) return transcript.lastSeq();
    const row = scroll.lastInView();
    return row ? transcript.seqOf(row) : 0;
  }
  function noteRead() {
    if (readTimer || document.hidden || seenSeq() <= readSeq) return;
    readTimer = setTimeout(() => sendRead(), readWait);
  }
  /** Marks what was seen as read. With leaving it is a request that goes on without the page; its end is returned. */
  function sendRead(leaving = false) {
    clearTimeout(readTimer);
    readTimer = 0;
    const seq = seenSeq();
    if ((document.hidden && !leaving) || seq <= readSeq) return;
    readSeq = seq;
    badge?.read(chat.id);
    if (!leaving && chat.link.send({ type: "read", seq })) return;
    return fetch(api + "/read", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ seq }), keepalive: true }).catch(() => {});
  }
  addEventListener("pagehide", () => readTimer && sendRead(true)); // it was on the screen
  // The next page may list this chat, so it is opened after the mark is stored, or when that takes long.
  const leaveWait = 300; // ms
  document.addEventListener("click", async (e) => {
    const a = e.target.closest?.("a[href]");
    if (!readTimer || !a || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    if (a.target || a.hasAttribute("download") || a.origin !== location.origin || a.pathname === location.pathname) return;
    e.preventDefault();
    await Promise.race([sendRead(true), new Promise((done) => setTimeout(done, leaveWait))]);
    location.href = a.href;
  });
  function readElsewhere(seq) {
    readSeq = Math.max(readSeq, seq);
    if (seq >= transcript.lastSeq()) clear();
  }

  // ---- messages that arrived while the page was hidden ----
  const unreadTemplate = $("unread-template");
  const counter = $("to-end-count");
  let unseen = 0; // while the tab is hidden
  let below = 0; // while the reader is further up
  function line(row) {
    if (!row || $("unread")) return;
    const el = unreadTemplate ? unreadTemplate.content.firstElementChild.cloneNode(true) : make("p", "unread-line", "New");
    el.dataset.unread = "";
    row.before(el);
    row.classList.remove("message-follows");
  }
  function clear() {
    unseen = 0;
    badge?.set(chat.id, 0);
  }
  on("said", (m, mine) => {
    if (mine) $("unread")?.remove();
  });
  on("shown", (m, mine) => {
    if (!mine && m.kind === "text") {
      if (document.hidden) {
        if (unseen === 0) scroll.hold(() => line(transcript.rowOf(m.seq)));
        unseen++;
        badge?.set(chat.id, unseen);
      }
      if (!scroll.follows()) {
        below++;
        if (counter) counter.textContent = below === 1 ? "1 new message" : below + " new messages";
        scroll.offerEnd();
      }
    }
    noteRead();
  });
  on("scrolled", () => {
    if (scroll.follows()) below = 0;
    noteRead();
  });
  on("at-end", () => { below = 0; });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    clear();
    noteRead();
  });

  // ---- a conversation without a title gets one from its first message ----
  async function learnTitle() {
    if (!("untitled" in root.dataset)) return;
    delete root.dataset.untitled;
    const answer = await chat.ask("GET", api);
    if (!answer.ok || typeof answer.body.title !== "string" || answer.body.title === "") return;
    const heading = $("title")?.querySelector("bdi") || $("title");
    if (!heading) return;
    const before = heading.textContent.trim();
    heading.textContent = answer.body.title;
    badge?.rename((title) => title.replace(before, () => answer.body.title));
    const field = root.querySelector('form[action$="/rename"] input[name="title"]');
    if (field && field.value === "") field.value = answer.body.title;
    emit("titled", answer.body.title);
  }
  on("accepted", learnTitle);
  on("said", (m) => { if (m.kind === "text") learnTitle(); }); // of somebody else

  chat.people = { onPresence, onTyping, onRead, typing, noteRead, sendRead };
})();
