// The list of chats beside an open one, while the page is open: a chat with a new message moves up and shows how many
// wait, one that was read elsewhere no longer does.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  const list = document.querySelector(".chats-body");
  if (!chat || !list) return;
  const most = 99;

  const rowOf = (id) => list.querySelector('.chats-row[href="/chat/' + CSS.escape(id) + '"]');

  /** Shows how many messages of a chat wait. */
  function mark(row, n) {
    row.classList.toggle("chat-unread", n > 0);
    let number = row.querySelector(".unread");
    if (n === 0) {
      number?.remove();
      return;
    }
    if (!number) {
      number = document.createElement("span");
      number.className = "unread";
      row.append(number);
    }
    const about = document.createElement("span");
    about.className = "visually-hidden";
    about.textContent = " unread";
    number.replaceChildren(n > most ? most + "+" : String(n), about);
  }
  const unreadOf = (row) => parseInt(row.querySelector(".unread")?.textContent || "0", 10) || 0;

  /** Returns the list of today's chats, which follows the pinned ones. */
  function today() {
    const headings = [...list.querySelectorAll("h2")];
    const found = headings.find((h) => h.textContent === "Today");
    if (found) return found.nextElementSibling;
    const heading = document.createElement("h2");
    heading.textContent = "Today";
    const rows = document.createElement("ul");
    const before = headings.find((h) => h.textContent !== "Pinned");
    if (before) before.before(heading, rows);
    else (headings.at(-1)?.nextElementSibling || list.querySelector(".chats-links")).after(heading, rows);
    return rows;
  }

  /** Makes the row of a chat that the list does not have. */
  function addRow(id, title) {
    const item = document.createElement("li");
    const row = document.createElement("a");
    row.className = "chats-row";
    row.href = "/chat/" + encodeURIComponent(id);
    const label = document.createElement("span");
    label.className = "chats-title";
    const name = document.createElement("bdi");
    name.textContent = title || "Untitled";
    label.append(name);
    row.append(label);
    item.append(row);
    return row;
  }

  function moveUp(row) {
    const item = row.closest("li") || row.parentElement;
    const from = item.parentElement;
    if (from?.previousElementSibling?.textContent === "Pinned") return; // these keep their order
    const to = today();
    if (to.firstElementChild === item) return;
    const focused = item.contains(document.activeElement);
    to.prepend(item);
    if (focused) row.focus();
    if (from && from !== to && from.childElementCount === 0) {
      from.previousElementSibling.remove();
      from.remove();
    }
  }

  document.addEventListener("agentsite:news", ({ detail: e }) => {
    const row = rowOf(e.conversation_id) || addRow(e.conversation_id, e.title);
    const name = row.querySelector(".chats-title bdi");
    if (e.title && name) name.textContent = e.title;
    for (const el of row.querySelectorAll(".dots, .dots + .visually-hidden")) el.remove(); // the answer has come
    if (e.conversation_id !== chat.id) mark(row, unreadOf(row) + 1);
    moveUp(row);
  });
  // The numbers of all chats, newest first, when the stream of news opens: those whose number grew got messages that
  // did not come by it. A chat without a row is added if it is newer than one that has a row.
  document.addEventListener("agentsite:counts", ({ detail: counts }) => {
    const others = counts.filter((c) => c.id !== chat.id);
    const last = others.findLastIndex((c) => rowOf(c.id));
    const grown = others.filter((c, i) => {
      const row = rowOf(c.id);
      return row ? Math.min(c.unread, most) > unreadOf(row) : i < last && c.unread > 0;
    });
    for (const c of grown.reverse()) moveUp(rowOf(c.id) || addRow(c.id, c.title));
    for (const c of others) {
      const row = rowOf(c.id);
      if (row) mark(row, c.unread);
    }
  });
  document.addEventListener("agentsite:read", ({ detail: id }) => {
    const row = rowOf(id);
    if (row) mark(row, 0);
  });
  chat.on("titled", (title) => {
    const name = rowOf(chat.id)?.querySelector(".chats-title bdi");
    if (name) name.textContent = title;
  });
  chat.on("said", () => {
    const row = rowOf(chat.id);
    if (row) moveUp(row);
  });
})();
