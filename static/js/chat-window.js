// A long transcript is on the page in part only: a window of rows that moves with the reader. Rows that left the page are
// fetched again, as rendered by the server, when it is needed.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, page, $, on, emit, isSeq, messages, transcript, scroll } = chat;
  const { fragment } = window.agentsite;

  const most = 300; // rows on the page
  const slack = 50;
  const piece = 50; // rows at once
  const near = 1.5; // heights of the view at which more is fetched
  const patience = 3000; // ms after a failure

  // The range of seqs of the rows on the page; edits take seqs without being rows.
  let first = Number(root.dataset.first) || 0;
  let last = Number(root.dataset.last) || Number(root.dataset.after) || 0;
  let begin = "begin" in root.dataset;
  let tail = "end" in root.dataset;
  let running = null; // the fetch under way
  let pauseUntil = 0;

  async function fetchRows(query) {
    const answer = await fetch(page + "/rows?" + new URLSearchParams({ limit: String(piece), ...query }), { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error("rows: " + answer.status);
    const box = fragment(await answer.text()).querySelector("[data-rows]");
    if (!box) throw new Error("rows: no rows");
    return {
      rows: [...box.children].filter((el) => isSeq(Number(el.dataset.seq))),
      first: Number(box.dataset.first) || 0,
      last: Number(box.dataset.last) || 0,
      begin: "begin" in box.dataset,
      end: "end" in box.dataset,
    };
  }

  /** One fetch at a time; answers whether it went through. */
  async function alone(work) {
    while (running) await running;
    let free;
    running = new Promise((resolve) => { free = resolve; });
    root.setAttribute("data-moving", "");
    messages.setAttribute("aria-live", "off"); // old messages must not be announced
    try {
      await work();
      pauseUntil = 0;
      return true;
    } catch {
      pauseUntil = Date.now() + patience;
      setTimeout(look, patience + 50);
      return false;
    } finally {
      running = null;
      root.removeAttribute("data-moving");
      setTimeout(() => messages.setAttribute("aria-live", "polite"), 500);
      free();
    }
  }

  function links() {
    const inner = $("inner");
    const fit = (name, wanted, put) => {
      const there = $(name);
      if (there && !wanted) {
        if (there.contains(document.activeElement)) scroll.scroller.focus({ preventScroll: true });
        there.remove();
      }
      const template = $(name + "-template");
      if (!there && wanted && template) put(template.content.firstElementChild.cloneNode(true));
    };
    fit("earlier", !begin && first > 0, (el) => inner.prepend(el));
    fit("later", !tail, (el) => messages.after(el));
    const link = $("earlier")?.querySelector("a");
    if (link) link.href = page + "?before=" + first;
    const working = $("working");
    if (working) working.hidden = !tail;
  }

  /** Keeps the page small: removes rows far from the visible ones. */
  function trim(above) {
    const list = transcript.rows();
    const many = list.length - most;
    const selection = getSelection();
    if (many <= 0 || (selection && !selection.isCollapsed && messages.contains(selection.anchorNode))) return;
    if (above) {
      transcript.drop(list.slice(0, many));
      first = transcript.seqOf(list[many]);
      begin = false;
    } else {
      transcript.drop(list.slice(most));
      last = transcript.seqOf(list[most - 1]);
      tail = false;
    }
  }

  // Messages that arrived while the window was elsewhere are not on the page: fetch them again.
  function caughtUp(until) {
    if (until < transcript.lastSeq()) {
      transcript.rewind(until);
      emit("behind");
    }
  }

  function earlier() {
    return alone(async () => {
      if (begin || first <= 1) return;
      const got = await fetchRows({ before: String(first) });
      scroll.hold(() => {
        transcript.takeUp(got.rows);
        begin = got.begin || got.first === 0;
        if (got.first > 0) first = got.first;
        trim(false);
        links();
      });
    });
  }

  function later() {
    return alone(async () => {
      if (tail) return;
      const got = await fetchRows({ after: String(last) });
      scroll.hold(() => {
        transcript.takeUp(got.rows);
        if (got.last > last) last = got.last;
        tail = got.end || got.last === 0;
        trim(true);
        links();
      });
      if (tail) caughtUp(last);
    });
  }

  function replace(got) {
    scroll.stay();
    transcript.drop(transcript.rows());
    transcript.takeUp(got.rows);
    first = got.first;
    last = got.last;
    begin = got.begin;
    tail = got.end;
    links();
    if (tail) caughtUp(last);
  }

  async function toEnd() {
    if (!tail) {
      const went = await alone(async () => replace(await fetchRows({}))); // the newest
      if (!went) return;
    }
    scroll.end();
    emit("at-end");
  }

  async function jump(seq, focus = true) {
    if (!isSeq(seq)) return false;
    let row = transcript.rowOf(seq);
    if (!row) {
      const went = await alone(async () => {
        const got = await fetchRows({ at: String(seq) });
        if (got.rows.length > 0) replace(got);
      });
      row = went && transcript.rowOf(seq);
    }
    if (!row) return false;
    for (const old of messages.querySelectorAll(".message-target")) old.classList.remove("message-target");
    row.classList.add("message-target");
    scroll.to(row, focus);
    return true;
  }

  /** Renders one row again, for the reader. */
  async function refresh(seq) {
    if (!transcript.rowOf(seq)) return;
    try {
      const el = await row(seq);
      if (el && transcript.rowOf(seq)) scroll.hold(() => transcript.put(el));
    } catch { /* the next look at the page shows it */ }
  }

  /** Fetches one row, for the reader, without putting it on the page. */
  async function row(seq) {
    const got = await fetchRows({ after: String(seq - 1), limit: "1" });
    return got.rows.find((r) => Number(r.dataset.seq) === seq) || null;
  }

  // ---- following the reader ----
  function look() {
    if (running || Date.now() < pauseUntil) return;
    if (!begin && first > 1 && scroll.above() < near) earlier().then((ok) => ok && look());
    else if (!tail && scroll.below() < near) later().then((ok) => ok && look());
  }
  on("scrolled", look);
  on("shown", (m) => {
    if (!tail) return;
    last = Math.max(last, m.seq);
    if (first === 0) first = m.seq;
    if (transcript.rows().length > most + slack) {
      scroll.hold(() => {
        trim(scroll.follows() || scroll.below() < scroll.above());
        links();
      });
    }
  });
  on("amended", (m) => {
    if (tail) last = Math.max(last, m.seq);
  });

  root.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("a[href]");
    if (!link || !root.contains(link)) return;
    if (link.closest("[data-earlier]")) {
      event.preventDefault();
      const top = transcript.first();
      earlier().then((ok) => {
        if (!ok) location.assign(link.href);
        else if (top && document.activeElement === scroll.scroller) top.focus({ preventScroll: true });
      });
    } else if (link.closest("[data-later]")) {
      event.preventDefault();
      toEnd();
    } else {
      const url = new URL(link.href, location.href);
      const at = /^#m(\d+)$/.exec(url.hash);
      if (url.pathname !== page || url.origin !== location.origin || !at) return;
      event.preventDefault();
      jump(Number(at[1])).then((found) => {
        if (found) history.pushState(null, "", url);
        else location.assign(url);
      });
    }
  });
  const fromHash = () => {
    const at = /^#m(\d+)$/.exec(location.hash);
    if (at) jump(Number(at[1]));
  };
  addEventListener("hashchange", fromHash);
  addEventListener("popstate", fromHash);

  chat.window = {
    jump, toEnd, refresh, row, earlier, later, links,
    atTail: () => tail,
    busy: () => running !== null,
    look,
  };
})();
