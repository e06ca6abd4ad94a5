// The reader's position in a transcript. The scroller is reversed: scrollTop is 0 at the newest message and negative above
// it. At the end the browser keeps the position; elsewhere new, removed or growing rows do not move the visible text.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { $, messages, emit } = chat;
  const scroller = $("transcript");
  const inner = $("inner");
  const toEnd = $("to-end");
  const nearEnd = 48; // px

  let follows = true;
  let anchor = null; // {el, top}: something in view and where it stands
  let at = 0; // scrollTop when it stood there

  const topOf = (el) => el.getBoundingClientRect().top - scroller.getBoundingClientRect().top;

  /** The first row that reaches below the upper edge; rows stand one below the other. */
  function firstInView() {
    const rows = messages.children;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (topOf(rows[middle]) + rows[middle].offsetHeight <= 0) low = middle + 1;
      else high = middle;
    }
    return rows[low] || null;
  }

  function mark() {
    let el = firstInView();
    // The first row may lose its head to a row before it, which would move the following rows.
    const below = el && el.nextElementSibling;
    if (below && topOf(below) < scroller.clientHeight / 2) el = below;
    anchor = el ? { el, top: topOf(el) } : null;
    at = scroller.scrollTop;
  }

  function restore() {
    if (follows) {
      if (scroller.scrollTop !== 0) scroller.scrollTop = 0;
      return;
    }
    if (!anchor || !anchor.el.isConnected) {
      mark();
      return;
    }
    const moved = topOf(anchor.el) - anchor.top;
    if (Math.abs(moved) >= 1) scroller.scrollTop += moved;
    at = scroller.scrollTop;
  }

  let holding = false;
  /** Runs change and keeps the visible text in place. Nested changes count as one. */
  function hold(change) {
    if (holding) {
      change();
      return;
    }
    if (!follows) mark();
    holding = true;
    try {
      change();
    } finally {
      holding = false;
    }
    restore();
  }

  /** An element takes the place of the one that may hold the view. */
  function swapped(old, fresh) {
    if (anchor && anchor.el === old) anchor.el = fresh;
  }

  new ResizeObserver(restore).observe(inner);
  scroller.addEventListener("scroll", () => {
    const followed = follows;
    follows = chat.window.atTail() && scroller.scrollTop > -nearEnd;
    if (follows) toEnd.hidden = true;
    else {
      // Growth since the last check is no scrolling: correct it before the position is stored again.
      if (!followed && anchor && anchor.el.isConnected) {
        anchor.top -= scroller.scrollTop - at;
        restore();
      }
      mark();
    }
    emit("scrolled");
  }, { passive: true });

  function end() {
    follows = true;
    scroller.scrollTop = 0;
    toEnd.hidden = true;
  }

  /** Shows a row in the middle and says which it is. */
  function to(el, focus) {
    follows = false;
    el.scrollIntoView({ block: "center", behavior: "instant" });
    if (focus) {
      el.tabIndex = -1;
      el.focus({ preventScroll: true });
    }
    follows = chat.window.atTail() && scroller.scrollTop > -nearEnd;
    mark();
  }

  /** The last row of which something is to be seen. */
  function lastInView() {
    const height = scroller.clientHeight;
    let el = messages.lastElementChild;
    while (el && (!el.dataset.seq || topOf(el) > height - 8)) el = el.previousElementSibling;
    return el;
  }

  chat.scroll = {
    hold, swapped, end, to, lastInView,
    follows: () => follows,
    /** The distances to both ends of the loaded rows, in heights of the view. */
    above: () => (scroller.scrollHeight - scroller.clientHeight + scroller.scrollTop) / scroller.clientHeight,
    below: () => -scroller.scrollTop / scroller.clientHeight,
    offerEnd: () => {
      if (!follows) toEnd.hidden = false;
    },
    stay: () => {
      follows = false;
      mark();
    },
    scroller,
  };

  toEnd.addEventListener("click", async () => {
    await chat.window.toEnd();
    if (chat.text) chat.text.focus({ preventScroll: true });
    else scroller.focus({ preventScroll: true });
  });
})();
