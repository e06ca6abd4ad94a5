// The rows of the transcript that are on the page: messages, their changes, and the lines between them.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, $, on, emit, make, isSeq, isMine, partsText, messages, scroll } = chat;
  const { fragment, enhance } = window.agentsite;

  const rowOf = (seq) => {
    const el = document.getElementById("m" + seq);
    return el && el.parentElement === messages ? el : null;
  };
  const isRow = (el) => Boolean(el) && el.dataset.seq !== undefined;
  const beside = (el, way) => {
    do el = el[way];
    while (el && !isRow(el));
    return el;
  };
  const next = (el) => beside(el, "nextElementSibling");
  const previous = (el) => beside(el, "previousElementSibling");
  const rows = () => [...messages.children].filter(isRow);
  const seqOf = (el) => Number(el.dataset.seq);
  const isMessage = (el) => el.localName === "article";
  const last = () => (messages.lastElementChild && !isRow(messages.lastElementChild) ? previous(messages.lastElementChild) : messages.lastElementChild);

  // ---- lines between rows: days in the reader's own zone, and heads of senders ----
  const dayTemplate = $("day-template");
  const sameBreath = 5 * 60 * 1000; // ms
  const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
  const yearName = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
  const timeOf = (el) => Date.parse(el.dataset.at || el.querySelector("time")?.dateTime || "");
  const two = (n) => String(n).padStart(2, "0");

  function dayOf(el) {
    const at = new Date(timeOf(el));
    return Number.isNaN(at.getTime()) ? "" : at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
  }

  function dayLine(day) {
    const el = dayTemplate ? dayTemplate.content.firstElementChild.cloneNode(true) : make("p", "day");
    el.dataset.day = day;
    const at = new Date(day + "T12:00");
    const ago = Math.round((new Date().setHours(12, 0, 0, 0) - at) / 86400000);
    const time = el.querySelector("time") || el.appendChild(document.createElement("time"));
    time.dateTime = day;
    delete time.dataset.show;
    time.textContent = ago === 0 ? "Today" : ago === 1 ? "Yesterday" : (at.getFullYear() === new Date().getFullYear() ? dayName : yearName).format(at);
    return el;
  }

  /** Updates the lines before a row. */
  function settle(el) {
    if (!el) return;
    const before = previous(el);
    let line = null;
    let bar = false;
    for (let s = el.previousElementSibling; s && s !== before;) {
      const gone = s;
      s = s.previousElementSibling;
      if (gone.dataset.day !== undefined) {
        if (line) gone.remove();
        else line = gone;
      } else bar = true;
    }
    const day = dayOf(el);
    const wanted = day !== "" && (!before || dayOf(before) !== day);
    if (line && (!wanted || line.dataset.day !== day)) {
      line.remove();
      line = null;
    }
    if (wanted && !line) el.before(dayLine(day));
    if (!isMessage(el)) return;
    const goesOn = Boolean(before) && !wanted && !bar && isMessage(before) && before.dataset.sender === el.dataset.sender && before.dataset.kind === el.dataset.kind &&
      timeOf(el) - timeOf(before) < sameBreath && !Number(el.dataset.target) && !("gone" in el.dataset) && !Number(el.dataset.newer) && !("gone" in before.dataset);
    el.classList.toggle("message-follows", goesOn);
  }

  // ---- rows come, change and go ----
  /** Adds the reader's own parts to a row that was rendered for all readers. */
  const blocked = new Set((root.dataset.blocked || "").split(" ").filter(Boolean));

  /** Collapses a live message of a person that the reader blocked, as the page does. */
  function fold(el) {
    const bubble = el.querySelector(":scope > .bubble");
    if (!bubble || el.dataset.kind !== "person" || !blocked.has(el.dataset.sender)) return;
    const box = make("details", "superseded");
    bubble.replaceWith(box);
    box.append(make("summary", "", "Message of a person you blocked"), bubble);
  }

  function personal(el) {
    if (!isMessage(el)) return;
    fold(el);
    if (chat.isMe(el.dataset.kind, el.dataset.sender)) el.classList.add("message-mine");
    for (const chip of el.querySelectorAll("[data-reactions] [data-by]")) {
      const mine = (chip.dataset.by || "").split(" ").includes(chat.me);
      if (mine) chip.setAttribute("aria-pressed", "true");
    }
    fillQuote(el);
  }

  async function fillQuote(el) {
    const quote = el.querySelector("[data-quote]");
    const from = quote && quote.querySelector("[data-quote-from]");
    const text = quote && quote.querySelector("[data-quote-text]");
    if (!from || !text || from.textContent.trim() || text.textContent.trim()) return;
    quote.querySelector("[data-quote-unknown]")?.remove();
    const seq = Number(quote.dataset.quote);
    const row = isSeq(seq) && rowOf(seq);
    if (row && isMessage(row)) {
      from.textContent = nameOf(row);
      text.textContent = plain(row).slice(0, 200);
      return;
    }
    const answer = await chat.ask("GET", api + "/messages/" + seq);
    if (answer.ok && answer.body.sender) {
      const member = chat.memberOf(answer.body.sender.handle);
      from.textContent = member ? member.label : String(answer.body.sender.handle || "");
      text.textContent = partsText(answer.body.parts).slice(0, 200);
    } else text.textContent = "an earlier message";
  }

  const nameOf = (row) => row.querySelector(".message-name")?.textContent.trim() || row.dataset.sender || "";
  const plain = (row) => (row.querySelector("[data-copy-source]") || row.querySelector(".bubble"))?.innerText.trim() || "";

  function place(el) {
    const seq = seqOf(el);
    let before = last();
    while (before && seqOf(before) > seq) before = previous(before);
    if (before) before.after(el);
    else {
      const first = messages.firstElementChild;
      if (first && !isRow(first)) first.after(el); // a separator stays the first
      else messages.prepend(el);
    }
    settle(el);
    settle(next(el));
  }

  /** Puts a row in, or in the place of the one with its seq. */
  function put(el) {
    $("empty")?.remove();
    const old = rowOf(seqOf(el));
    if (old === el) return;
    enhance(el);
    personal(el);
    if (old) exchange(old, el);
    else place(el);
    if ("filed" in el.dataset && root.dataset.meKind !== "guest") chat.window.refresh(seqOf(el)); // to keep its files
  }

  function exchange(old, el) {
    if (old.classList.contains("message-mine")) el.classList.add("message-mine");
    if (old.classList.contains("message-target")) el.classList.add("message-target");
    const focus = old.contains(document.activeElement) ? document.activeElement : null;
    const open = old.querySelector("[data-actions]")?.open;
    old.replaceWith(el);
    scroll.swapped(old, el);
    if (open && el.querySelector("[data-actions]")) {
      chat.actions?.fill(el);
      el.querySelector("[data-actions]").open = true;
    }
    if (focus) refocus(focus, old, el);
    settle(el);
    settle(next(el));
  }

  /** Moves the focus from a row to the one that replaced it. */
  function refocus(focus, old, el) {
    let same = null;
    if (focus.dataset.do) same = el.querySelector('[data-do="' + CSS.escape(focus.dataset.do) + '"]');
    else if (focus.name === "emoji") same = [...el.querySelectorAll("[name=emoji]")].find((b) => b.value === focus.value && b.closest("[data-reactions]") !== null === (focus.closest("[data-reactions]") !== null));
    else if (focus.localName === "summary") same = el.querySelector("[data-actions] summary");
    same = same && same.getClientRects().length > 0 ? same : el;
    if (same === el) el.tabIndex = -1;
    same.focus({ preventScroll: true });
  }

  /** Takes rows off the page. */
  function drop(list) {
    const active = document.activeElement;
    if (active && list.some((el) => el.contains(active))) scroll.scroller.focus({ preventScroll: true });
    let after = null;
    for (const el of list) {
      after = next(el);
      for (let s = el.previousElementSibling; s && !isRow(s);) {
        const separator = s;
        s = s.previousElementSibling;
        separator.remove();
      }
      el.remove();
    }
    if (after && after.isConnected) settle(after);
    if (!last()) messages.replaceChildren();
  }

  // ---- events of the stream ----
  let lastSeq = Number(root.dataset.after) || 0; // the last seq of any kind
  const parse = (html) => (typeof html === "string" && html !== "" ? fragment(html).firstElementChild : null);

  function plainRow(m) {
    if (m.kind === "event") {
      const line = make("p", "event", partsText(m.parts));
      line.id = "m" + m.seq;
      return line;
    }
    const el = make("article", "message" + (m.sender && m.sender.kind === "agent" ? "" : " message-person"));
    el.id = "m" + m.seq;
    el.dataset.sender = (m.sender && String(m.sender.handle)) || "";
    el.dataset.kind = (m.sender && String(m.sender.kind)) || "";
    const head = make("header", "message-head");
    head.append(make("span", "message-name", el.dataset.sender));
    const box = make("div", "bubble");
    box.append(make("div", "streamed", partsText(m.parts)));
    el.append(head, box);
    return el;
  }

  const kinds = new Set(["text", "event", "edit", "unsaid", "react"]);
  let gap = -1;

  /** Takes in one durable change. It answers false when something before it is missing. */
  function onMessage(m) {
    const seq = m.seq;
    if (!isSeq(seq) || seq <= lastSeq || !kinds.has(m.kind)) return true;
    if (seq > lastSeq + 1 && gap !== lastSeq) {
      gap = lastSeq; // requested once
      return false;
    }
    lastSeq = seq;
    if (m.kind === "text" || m.kind === "event") said(m, seq);
    else amended(m);
    return true;
  }

  function said(m, seq) {
    const mine = m.kind === "text" && isMine(m.sender);
    // The row that it replaces is removed in the same moment, so that nothing moves in between.
    scroll.hold(() => {
      emit("said", m, mine);
      if (!chat.window.atTail()) return;
      const el = parse(m.html) || plainRow(m);
      el.dataset.seq = String(seq);
      if (!el.dataset.at && typeof m.created_at === "string") el.dataset.at = m.created_at;
      put(el);
    });
    if (isSeq(m.target) && m.sender && m.sender.kind === "agent") {
      chat.window.refresh(m.target); // it folds the older answer
      chat.window.refresh(m.seq); // it counts the answers
    }
    emit("shown", m, mine);
  }

  const late = new Map(); // targets that changed while rows were under way
  function amended(m) {
    if (!isSeq(m.target)) return;
    if (chat.window.busy()) late.set(m.target, m.html);
    amend(m.target, m.html);
    emit("amended", m);
  }

  function amend(target, html) {
    const old = rowOf(target);
    if (!old) return;
    const el = parse(html);
    if (!el || !isRow(el) || seqOf(el) !== target) {
      chat.window.refresh(target);
      return;
    }
    scroll.hold(() => put(el));
  }

  function takeUp(list) {
    for (const el of list) put(el);
    for (const [target, html] of late) amend(target, html);
    late.clear();
  }

  for (const line of [...messages.querySelectorAll(":scope > [data-day]")]) line.remove();
  for (const el of rows()) settle(el);

  chat.transcript = {
    rows, rowOf, seqOf, next, previous, last, put, drop, takeUp, onMessage, nameOf, plain, isMessage,
    first: () => rows()[0] || null,
    lastSeq: () => lastSeq,
    /** Goes back to an earlier point of the stream: later events are sent again. */
    rewind: (seq) => {
      lastSeq = Math.min(lastSeq, seq);
      gap = -1;
    },
  };
  on("open", () => late.clear());
})();
