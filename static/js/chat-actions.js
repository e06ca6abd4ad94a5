// The actions of one message, in place: the script takes over the forms and links of its menu one by one. The events of
// the stream decide the final state.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, page, $, on, ask, fail, announce, make, messages, transcript, scroll } = chat;
  const { enhance } = window.agentsite;

  const rowAt = (el) => {
    const row = el.closest("article[data-seq]");
    return row && row.parentElement === messages ? row : null;
  };
  const menuOf = (row) => row.querySelector("[data-actions]");
  const actionsTemplate = document.querySelector("[data-actions-template]");

  /** Fills the menu of a message with its actions, once. */
  function fill(row) {
    const menu = menuOf(row);
    const body = menu && menu.querySelector(".actions-body");
    if (!body || body.matches("[data-act]") || !actionsTemplate) return;
    const form = actionsTemplate.content.firstElementChild.cloneNode(true);
    const seq = row.dataset.seq;
    const at = page + "/m/" + seq;
    const part = (name) => form.querySelector('[data-do="' + name + '"]');
    form.setAttribute("action", at + "/react");
    part("reply").setAttribute("href", page + "?reply=" + seq + "#composer");
    part("edit").setAttribute("href", page + "?edit=" + seq + "#composer");
    part("again").setAttribute("formaction", at + "/again");
    part("branch").setAttribute("formaction", at + "/branch");
    part("more").setAttribute("href", at);
    part("unsay").setAttribute("href", at + "#unsay");
    const agent = row.dataset.kind === "agent";
    if (agent) part("edit").remove();
    if (!agent || !row.dataset.task || row.dataset.newer) part("again").remove();
    reveal(form);
    body.replaceWith(form);
  }
  function closeMenu(row, focus = true) {
    const menu = menuOf(row);
    if (!menu || !menu.open) return;
    menu.open = false;
    if (focus) menu.querySelector("summary").focus({ preventScroll: true });
  }

  // ---- reactions ----
  const chipOf = (row, emoji) => [...row.querySelectorAll("[data-reactions] [name=emoji]")].find((b) => b.value === emoji);
  const by = (chip) => (chip.dataset.by || "").split(" ").filter(Boolean);

  /** Shows a reaction of the reader set or taken back, before the portal knows. */
  function showReaction(row, emoji, set) {
    let chip = chipOf(row, emoji);
    if (!chip) {
      if (!set) return;
      const box = row.querySelector("[data-reactions]");
      if (!box) return;
      let form = box.querySelector("form");
      if (!form) {
        form = make("form", "", "", { method: "post", action: page + "/m/" + row.dataset.seq + "/react" });
        box.append(form);
      }
      chip = make("button", "chip", "", { name: "emoji", "data-by": "" });
      chip.value = emoji;
      chip.append(make("span", "", emoji), " ", make("span", "", "0", { "data-count": "" }));
      form.append(chip);
    }
    const who = by(chip).filter((h) => h !== chat.me);
    if (set) who.push(chat.me);
    chip.dataset.by = who.join(" ");
    chip.setAttribute("aria-pressed", String(set));
    chip.querySelector("[data-count]").textContent = String(who.length);
    chip.setAttribute("aria-label", emoji + " " + who.length + " from " + who.join(", "));
    chip.title = who.join(", ");
    if (who.length === 0) {
      if (chip.contains(document.activeElement)) row.focus({ preventScroll: true });
      chip.remove();
    }
  }

  async function react(row, emoji) {
    const seq = transcript.seqOf(row);
    const chip = chipOf(row, emoji);
    const set = !(chip && by(chip).includes(chat.me));
    scroll.hold(() => showReaction(row, emoji, set));
    const answer = await ask(set ? "PUT" : "DELETE", api + "/messages/" + seq + "/reactions/" + encodeURIComponent(emoji));
    if (answer.ok) return;
    const now = transcript.rowOf(seq);
    if (now) scroll.hold(() => showReaction(now, emoji, !set));
    fail(answer.message);
  }

  // ---- copying ----
  async function copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      announce(said);
    } catch {
      fail("This browser does not let the page copy. Select the text and copy it by hand.");
    }
  }
  async function copyText(row) {
    const shown = transcript.plain(row);
    const answer = await ask("GET", api + "/messages/" + (row.dataset.shown || row.dataset.seq));
    const source = answer.ok ? chat.partsText(answer.body.parts) : "";
    await copy(source || shown, "The text is copied");
  }
  const copyLink = (row) => copy(location.origin + page + "?at=" + row.dataset.seq + "#m" + row.dataset.seq, "The link is copied");

  // ---- deleting ----
  function unsay(row) {
    const dialog = make("dialog", "shortcuts confirm-dialog", "", { "aria-label": "Delete the message" });
    dialog.append(make("p", "", "Delete this message? The others see that there was one, but not its content."));
    const form = make("form", "actions", "", { method: "dialog" });
    form.append(make("button", "button button-danger", "Delete", { value: "yes" }), make("button", "button", "Keep", { value: "no", autofocus: "" }));
    dialog.append(form);
    dialog.addEventListener("close", async () => {
      const yes = dialog.returnValue === "yes";
      dialog.remove();
      row.focus({ preventScroll: true });
      if (!yes) return;
      row.classList.add("message-pending");
      const answer = await ask("DELETE", api + "/messages/" + row.dataset.seq);
      row.classList.remove("message-pending");
      if (!answer.ok) fail(answer.message);
      else announce("The message is deleted");
    });
    root.append(dialog);
    dialog.showModal();
  }

  async function again(row) {
    fail("");
    const answer = await ask("POST", api + "/messages/" + row.dataset.seq + "/again", {});
    if (!answer.ok) fail(answer.message);
    else announce("The answer is regenerated");
  }

  async function branch(row) {
    const answer = await ask("POST", api + "/branch", { seq: transcript.seqOf(row) });
    if (answer.ok && typeof answer.body.id === "string") location.assign("/chat/" + encodeURIComponent(answer.body.id));
    else fail(answer.message || "The copy was made, but cannot be shown.");
  }

  const deeds = {
    reply: (row) => chat.compose?.reply(transcript.seqOf(row)),
    edit: (row) => chat.compose?.edit(transcript.seqOf(row)),
    copy: copyText,
    link: copyLink,
    again, branch, unsay,
  };
  /** Reports whether the reader may do it: the page shows only allowed actions. */
  const may = (row, name) => {
    fill(row);
    const el = row.querySelector('[data-do="' + name + '"]');
    if (!el || el.hidden) return false;
    const only = el.dataset.only || "";
    const mine = row.classList.contains("message-mine");
    if (only === "mine") return mine;
    if (only === "mine-or-owner") return mine || root.dataset.role === "owner";
    if (only === "writer") return root.dataset.role !== "reader";
    return true;
  };
  function act(row, name) {
    if (!row || !deeds[name] || !may(row, name)) return false;
    if (["reply", "edit"].includes(name) && !chat.compose) return false;
    closeMenu(row, !["reply", "edit"].includes(name));
    deeds[name](row);
    return true;
  }

  // In the capture phase, so that our links are handled before the window follows them.
  root.addEventListener("click", (event) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const el = event.target.closest("[data-do], [name=emoji]");
    const row = el && rowAt(el);
    if (!row) return;
    if (el.name === "emoji") {
      event.preventDefault();
      closeMenu(row);
      react(row, el.value);
    } else if (act(row, el.dataset.do)) event.preventDefault();
  }, true);

  root.addEventListener("submit", (event) => {
    const row = event.target.matches("[data-again]") && rowAt(event.target);
    if (!row) return;
    event.preventDefault();
    row.focus({ preventScroll: true });
    again(row);
  });

  // Buttons that need the script show themselves.
  const canCopy = Boolean(navigator.clipboard && navigator.clipboard.writeText);
  function reveal(box) {
    for (const el of box.querySelectorAll('[data-do="copy"][hidden], [data-do="link"][hidden]')) el.hidden = !canCopy;
  }
  messages.addEventListener("toggle", (event) => {
    const menu = event.target;
    if (!menu.open || !menu.matches("[data-actions]")) return;
    fill(menu.closest("article"));
    // One menu at a time, and all of it in view.
    for (const other of messages.querySelectorAll("[data-actions][open]")) if (other !== menu) other.open = false;
    menu.querySelector(".actions-body")?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }, true);

  // Filled before it opens, so that it opens in its size.
  messages.addEventListener("click", (event) => {
    const menu = event.target.closest("summary")?.parentElement;
    if (menu?.matches("[data-actions]")) fill(menu.closest("article"));
  }, true);

  // A menu is a list to walk with the arrow keys.
  messages.addEventListener("keydown", (event) => {
    const menu = event.target.closest("[data-actions][open]");
    if (!menu || !["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
    const list = [...menu.querySelectorAll("a[href], button:not([hidden])")].filter((el) => el.getClientRects().length > 0);
    if (list.length === 0) return;
    const at = list.indexOf(document.activeElement);
    const to = event.key === "Home" ? 0 : event.key === "End" ? list.length - 1 : event.key === "ArrowDown" ? (at + 1) % list.length : (at <= 0 ? list.length : at) - 1;
    list[to].focus();
    event.preventDefault();
    event.stopPropagation();
  });

  /** Opens the menu of a message, with the focus in it. */
  function openMenu(row, selector) {
    const menu = menuOf(row);
    if (!menu) return false;
    fill(row);
    menu.open = true;
    const first = menu.querySelector(selector || ".actions-body a, .actions-body button");
    if (first) first.focus({ preventScroll: true });
    return true;
  }

  on("copy-code", (pre) => copy(pre.innerText.trim(), "The code is copied"));
  chat.actions = { act, react, openMenu, may, fill, enhance };
})();
