// The actions under the last answer, and the other answers to the same question.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { page, $, on, announce, fail, messages, transcript, scroll } = chat;

  // ---- the actions under the last answer ----
  const bar = $("last-actions");
  const part = (name) => bar.querySelector('[data-last-do="' + name + '"]');
  const isAnswer = (row) => row.dataset.kind === "agent" && row.dataset.task && !("gone" in row.dataset) && !row.dataset.newer && ["completed", "failed", "canceled", "rejected"].includes(row.dataset.taskState);

  /** The answer at the end of the transcript, null if it ends otherwise. */
  function lastAnswer() {
    if (!chat.window.atTail() || $("working")?.childElementCount || $("pending")?.childElementCount) return null;
    let row = transcript.last();
    while (row && !transcript.isMessage(row)) row = transcript.previous(row);
    return row && isAnswer(row) ? row : null;
  }
  /** The reader's message before a row, null if another person's is nearer. */
  function questionOf(row) {
    do row = transcript.previous(row);
    while (row && !(transcript.isMessage(row) && row.dataset.kind !== "agent"));
    return row && row.classList.contains("message-mine") && !("gone" in row.dataset) ? row : null;
  }

  function settle() {
    const row = lastAnswer();
    if (!row) {
      if (bar.contains(document.activeElement)) scroll.scroller.focus({ preventScroll: true });
      bar.dataset.idle = "";
      return;
    }
    delete bar.dataset.idle;
    const seq = row.dataset.seq;
    const question = questionOf(row);
    bar.setAttribute("action", page + "/m/" + seq + "/again");
    part("more").setAttribute("href", page + "/m/" + seq);
    part("edit").hidden = !question;
    if (question) part("edit").setAttribute("href", page + "?edit=" + question.dataset.seq + "#composer");
  }

  if (bar) {
    part("copy").hidden = !(navigator.clipboard && navigator.clipboard.writeText);
    let waits = 0;
    const look = new MutationObserver(() => {
      cancelAnimationFrame(waits);
      waits = requestAnimationFrame(settle);
    });
    for (const list of [messages, $("working"), $("pending")]) if (list) look.observe(list, { childList: true });
    bar.addEventListener("click", (event) => {
      const el = event.target.closest("[data-last-do]");
      const row = el && lastAnswer();
      if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const what = el.dataset.lastDo;
      let done = false;
      if (what === "more") done = chat.actions.openMenu(row);
      else if (what === "edit") done = Boolean(questionOf(row)) && chat.actions.act(questionOf(row), "edit");
      else done = chat.actions.act(row, what);
      if (done) event.preventDefault();
    });
    settle();
  }

  // ---- other answers to the same question ----
  const shown = new WeakMap(); // row → {list: [{seq, target, bubble}], at}: the answers from the newest back
  const bubbleOf = (row) => row.querySelector(".bubble");

  function stateOf(row) {
    if (!shown.has(row)) shown.set(row, { list: [{ seq: transcript.seqOf(row), target: Number(row.dataset.target), bubble: bubbleOf(row) }], at: 0 });
    return shown.get(row);
  }

  async function turn(row, way) {
    const state = stateOf(row);
    const to = state.at + (way === "earlier" ? 1 : -1);
    if (to < 0) return;
    if (to === state.list.length) {
      const seq = state.list[state.at].target;
      if (!chat.isSeq(seq)) return;
      let other = transcript.rowOf(seq);
      try {
        other = other || await chat.window.row(seq);
      } catch { /* said below */ }
      if (!other || !bubbleOf(other)) {
        fail("The earlier answer could not be fetched. Try again.");
        return;
      }
      if (to === state.list.length) state.list.push({ seq, target: Number(other.dataset.target), bubble: bubbleOf(other).cloneNode(true) });
    }
    scroll.hold(() => bubbleOf(row).replaceWith(state.list[to].bubble));
    state.at = to;
    if (to === 0) delete row.dataset.shown;
    else row.dataset.shown = String(state.list[to].seq);
    const box = row.querySelector("[data-versions]");
    const count = Number(box.dataset.count || box.querySelector("[data-version-at]").textContent.split("/")[1]);
    box.dataset.count = String(count);
    box.querySelector("[data-version-at]").textContent = count - to + "/" + count;
    ends(box, to < count - 1, to > 0, way);
    announce("Answer " + (count - to) + " of " + count);
  }

  /** Shows which ways there are answers. An end loses its link, and the focus goes to the other way. */
  function ends(box, earlier, later, way) {
    const fit = (name, has) => {
      let el = box.querySelector('[data-version="' + name + '"]');
      if (!el && has) {
        const still = name === "earlier" ? box.firstElementChild : box.lastElementChild;
        el = box.querySelector("[data-version]").cloneNode(false);
        el.dataset.version = name;
        el.title = name === "earlier" ? "Earlier answer" : "Later answer";
        el.setAttribute("aria-label", el.title);
        still.replaceWith(el);
        el.append(still);
      } else if (el && !has) el.replaceWith(el.querySelector("svg"));
    };
    const focused = box.contains(document.activeElement);
    if (earlier) fit("earlier", true);
    fit("later", later);
    fit("earlier", earlier);
    if (focused) (box.querySelector('[data-version="' + way + '"]') || box.querySelector("[data-version]"))?.focus({ preventScroll: true });
  }

  messages.addEventListener("click", (event) => {
    const link = event.target.closest("[data-version]");
    const row = link && link.closest("article[data-seq]");
    if (!row || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    turn(row, link.dataset.version);
  });
})();
