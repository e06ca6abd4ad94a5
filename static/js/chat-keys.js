// The keyboard in a conversation: moving between messages, actions on the one that has the focus, and the commands of
// the palette.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, $, messages, transcript, scroll } = chat;
  const palette = window.agentsite.palette;

  const focused = () => {
    const row = document.activeElement && document.activeElement.closest("[data-seq]");
    return row && row.parentElement === messages ? row : null;
  };
  function focusRow(row) {
    if (!row) return false;
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest", behavior: "instant" });
    return true;
  }
  const ownLast = () => {
    const mine = messages.querySelectorAll("article.message-mine[data-seq]:not([data-gone])");
    return mine[mine.length - 1] || null;
  };
  const onlyMessages = (row, way) => {
    do row = way(row);
    while (row && !transcript.isMessage(row));
    return row;
  };

  async function walk(back) {
    const at = focused();
    if (!at) return focusRow(back ? lastMessage() : scroll.lastInView() || lastMessage());
    let to = onlyMessages(at, back ? transcript.previous : transcript.next);
    if (!to) {
      await (back ? chat.window.earlier() : chat.window.later());
      to = onlyMessages(at, back ? transcript.previous : transcript.next);
    }
    return focusRow(to);
  }
  function lastMessage() {
    const row = transcript.last();
    return row && !transcript.isMessage(row) ? onlyMessages(row, transcript.previous) : row;
  }
  function firstUnread() {
    const line = $("unread");
    const row = line && line.nextElementSibling;
    if (!row) return;
    scroll.to(row, true);
  }
  const write = () => chat.compose?.focus();
  async function newest() {
    await chat.window.toEnd();
    focusRow(lastMessage());
  }
  const side = () => {
    const fold = $("side");
    if (fold) {
      fold.open = true;
      fold.querySelector("summary, input, button, a[href]")?.focus();
    }
  };

  const alone = {
    j: () => walk(false),
    k: () => walk(true),
    g: newest,
    n: firstUnread,
    "/": write,
  };
  const onRow = {
    r: (row) => chat.actions.act(row, "reply"),
    e: (row) => chat.actions.act(row, "edit"),
    c: (row) => chat.actions.act(row, "copy"),
    l: (row) => chat.actions.act(row, "link"),
    m: (row) => chat.actions.openMenu(row),
    "+": (row) => chat.actions.openMenu(row, "[name=emoji]"),
  };
  const writes = (el) => el.isContentEditable || el.matches("input:not([type=checkbox], [type=radio], [type=button]), textarea, select");

  // Menus are closed by app.js, which comes before us.
  let menuOpen = false;
  document.addEventListener("keydown", () => {
    menuOpen = document.querySelector("[data-menu][open]") !== null;
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || isComposing(event)) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (menuOpen) return;
      if (chat.compose?.leave()) event.preventDefault();
      else if (chat.answers?.runs() && (target === chat.text || !writes(target))) {
        event.preventDefault();
        chat.answers.stop();
      } else if (target === chat.text) {
        event.preventDefault();
        chat.scroll.scroller.focus({ preventScroll: true });
      } else if (focused()) {
        event.preventDefault();
        write();
      }
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "." && chat.answers) {
      event.preventDefault();
      chat.answers.stop();
      return;
    }
    if (event.key === "ArrowUp" && target === chat.text && chat.compose.empty() && chat.compose.mode() === "" && !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const row = ownLast();
      if (row && chat.actions.act(row, "edit")) event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || writes(target)) return;
    if (target.closest("[data-actions][open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const row = focused();
    if (row && target === row && (key === "ArrowDown" || key === "ArrowUp")) {
      event.preventDefault();
      walk(key === "ArrowUp");
    } else if (row && onRow[key]) {
      event.preventDefault();
      onRow[key](row);
    } else if (alone[key] && !event.shiftKey) {
      event.preventDefault();
      alone[key]();
    } else if (event.key.length === 1 && key !== "?" && key !== " " && !target.closest("a, button, summary") && chat.text) {
      write(); // whoever just types, writes
    }
  });

  // ---- commands of the palette in this conversation ----
  if (!palette) return;
  palette.commands(() => {
    const list = [];
    const offer = (name, run, hint) => list.push({ name, hint: hint || "", run });
    const row = focused();
    if (chat.compose) offer("Write a message", write, "/");
    offer("Newest message", newest, "G");
    if ($("unread")) offer("First unread message", firstUnread, "N");
    if (chat.answers?.runs()) offer("Stop the answers", () => chat.answers.stop(), "Esc");
    const last = row || lastMessage();
    if (last && chat.compose) offer("Reply to the last message", () => chat.actions.act(last, "reply"));
    const own = ownLast();
    if (own) offer("Change my last message", () => chat.actions.act(own, "edit"), "↑");
    if (last && chat.actions.may(last, "again")) offer("Regenerate the last answer", () => chat.actions.act(last, "again"));
    if (last && chat.actions.may(last, "branch")) offer("Continue in a new chat", () => chat.actions.act(last, "branch"));
    if ($("file-input")) offer("Send files", () => $("file-input").click());
    if ($("side")) offer("Members and settings of this conversation", side);
    for (const el of root.querySelectorAll("[data-side] a[href], [data-command]")) {
      const name = el.dataset.command || el.textContent.trim().replace(/\s+/g, " ");
      if (name && !el.closest("[data-member]")) offer(name, () => el.click());
    }
    return list;
  });
})();
