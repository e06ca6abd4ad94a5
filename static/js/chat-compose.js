// Writing: the draft, the message that it replies to or edits, and its way to the outbox.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat || !chat.form) return;
  const { root, api, page, $, on, ask: request, fail, announce, keep, keyOf, isSeq, form, text, messages, transcript, scroll } = chat;

  // ---- the draft of this conversation ----
  const draftKey = keyOf("draft");
  const draftWait = 300; // ms
  let draftTimer = 0;
  let editing = null; // {seq, parts, draft}; parts is null until they are here

  function saveDraft() {
    clearTimeout(draftTimer);
    if (editing) return; // the draft is the earlier text
    const parts = chat.files ? chat.files.parts() : [];
    const empty = text.value === "" && parts.length === 0;
    keep.set(draftKey, empty ? null : JSON.stringify({ text: text.value, parts, reply: replySeq() }));
  }
  function later() {
    clearTimeout(draftTimer);
    draftTimer = setTimeout(saveDraft, draftWait);
  }
  function takeDraft() {
    let draft;
    try {
      draft = JSON.parse(keep.get(draftKey) || "null");
    } catch {
      return;
    }
    if (!draft || typeof draft.text !== "string") return;
    if (text.value === "") setText(draft.text);
    if (chat.files && Array.isArray(draft.parts)) chat.files.take(draft.parts);
    if (isSeq(draft.reply) && mode() === "") reply(draft.reply, false);
  }

  function setText(value) {
    text.value = value;
    text.dispatchEvent(new Event("input", { bubbles: true }));
    text.selectionStart = text.selectionEnd = value.length;
  }
  const focus = () => text.focus({ preventScroll: true });

  text.addEventListener("input", (event) => {
    later();
    if (event.isTrusted && text.value.trim() !== "" && !editing) chat.people.typing();
  });
  on("files", (state) => {
    saveDraft();
    if (waits && !state.pending) {
      waits = false;
      busy("");
      if (!state.failed) submit();
    }
  });
  addEventListener("pagehide", saveDraft);
  document.addEventListener("visibilitychange", () => document.hidden && saveDraft());

  // ---- answering and changing ----
  const bar = $("mode-bar");
  const mode = () => form.dataset.mode || "";
  const replySeq = () => (mode() === "reply" ? Number(form.dataset.modeSeq) : 0);

  const save = form.querySelector("[data-save]");

  function setMode(name, seq, label, quote, asks) {
    form.dataset.mode = name;
    if (name === "") delete form.dataset.modeSeq;
    else form.dataset.modeSeq = String(seq);
    if (form.elements.reply_to) form.elements.reply_to.value = name === "reply" ? String(seq) : "";
    if (bar) {
      bar.hidden = name === "";
      if ($("mode-label")) $("mode-label").textContent = label || "";
      if ($("mode-quote")) $("mode-quote").textContent = quote || "";
    }
    const send = form.querySelector("[data-send] > span");
    if (send) send.textContent = asks ? "Ask again" : name === "edit" ? "Save" : "Send";
    if (save) save.hidden = !asks;
    if (label) announce(label);
  }

  function reply(seq, takeFocus = true) {
    if (editing) leave();
    const row = transcript.rowOf(seq);
    setMode("reply", seq, "Answering " + (row ? transcript.nameOf(row) : "a message"), row ? transcript.plain(row).slice(0, 200) : "");
    later();
    if (takeFocus) focus();
  }

  async function edit(seq) {
    saveDraft();
    const mine = { seq, parts: null, draft: editing ? editing.draft : text.value };
    editing = mine;
    setMode("edit", seq, "Changing your message", "");
    text.readOnly = true; // until its text is loaded
    focus();
    const answer = await request("GET", api + "/messages/" + seq);
    if (editing !== mine) return;
    text.readOnly = false;
    if (!answer.ok || !Array.isArray(answer.body.parts)) {
      leave();
      fail(answer.message || "This message cannot be changed.");
      return;
    }
    mine.parts = answer.body.parts;
    mine.asks = answer.body.asked === true;
    if (mine.asks) setMode("edit", seq, "Changing your message", "", true);
    setText(chat.partsText(answer.body.parts));
  }

  /** Leaves answering or changing. */
  function leave() {
    if (mode() === "") return false;
    const before = editing;
    editing = null;
    text.readOnly = false;
    setMode("", 0);
    if (before) setText(before.draft);
    saveDraft();
    focus();
    return true;
  }
  $("mode-end")?.addEventListener("click", (event) => {
    event.preventDefault();
    leave();
  });

  /** Saves the text, or with ask has its agents answer it again: an earlier question in a new chat. */
  async function saveEdit(ask) {
    const { seq, parts, asks } = editing;
    if (!parts) return; // not here yet
    const said = text.value.trim();
    const others = parts.filter((p) => p && typeof p.text !== "string");
    if (said === "" && others.length === 0) {
      fail("An empty message cannot be saved: choose Delete.");
      return;
    }
    const row = transcript.rowOf(seq);
    const elsewhere = ask && row && [...messages.querySelectorAll(".message-mine[data-seq]")].some((r) => transcript.seqOf(r) > seq);
    const prose = row && !elsewhere && row.querySelector("[data-copy-source]");
    const before = prose && prose.cloneNode(true);
    leave();
    fail("");
    if (prose) scroll.hold(() => { prose.textContent = said; });
    if (row) row.classList.add("message-pending");
    const body = others.length === 0 ? { text: said } : { parts: [...(said === "" ? [] : [{ text: said }]), ...others] };
    const at = api + "/messages/" + seq;
    const answer = await (ask ? request("POST", at + "/ask", body) : request("PATCH", at, body));
    if (row) row.classList.remove("message-pending");
    if (answer.ok) {
      const to = answer.body.conversation_id;
      if (typeof to === "string" && to !== chat.id) location.assign("/chat/" + encodeURIComponent(to));
      return;
    }
    // As it was, and the words back to whoever wrote them.
    if (prose && prose.isConnected) scroll.hold(() => prose.replaceWith(before));
    fail(answer.message);
    editing = { seq, parts, asks, draft: text.value };
    setMode("edit", seq, "Changing your message", "", asks);
    setText(said);
    focus();
  }

  // ---- sending ----
  let waits = false; // for files that are still going up

  function busy(what) {
    if (what) announce(what);
    form.toggleAttribute("data-waiting", what !== "");
  }

  function disclosed() {
    const box = $("disclosure");
    if (!box) return {};
    const told = [...box.querySelectorAll('[name="told"]')].map((el) => el.value).filter(Boolean);
    const share = box.querySelector('[name="share"]');
    return { told, share: share ? share.value : "" };
  }

  function say(content, more = {}) {
    const parts = [];
    if (content !== "") parts.push({ text: content });
    parts.push(...(more.parts || []));
    if (parts.length === 0) return;
    chat.outbox.add({ parts, reply_to: more.reply_to, client_id: more.client_id, ...disclosed() });
  }

  function keptParts() {
    const out = [];
    for (const box of form.querySelectorAll('[data-kept] [name="kept"]:checked')) {
      const fields = new URLSearchParams(box.value);
      const part = { url: "/files/" + fields.get("hash"), filename: fields.get("name") || "file" };
      if (fields.get("type")) part.mediaType = fields.get("type");
      out.push(part);
    }
    return out;
  }

  function submit(button) {
    if (editing) {
      saveEdit(Boolean(editing.asks) && button !== save);
      return;
    }
    if (chat.files && chat.files.retry()) {
      waits = true;
      busy("The files that failed are sent again; the message follows");
      return;
    }
    if (chat.files && chat.files.pending()) {
      waits = true;
      busy("The message goes out when its files are up");
      return;
    }
    const content = text.value.trim();
    const parts = [...keptParts(), ...(chat.files ? chat.files.parts() : [])];
    if (content === "" && parts.length === 0) return;
    const reply_to = replySeq();
    text.value = "";
    text.style.height = "";
    if (chat.files) chat.files.clear();
    $("kept")?.replaceChildren();
    setMode("", 0);
    say(content, { parts, reply_to });
    saveDraft();
    focus();
  }

  root.addEventListener("submit", (event) => {
    const target = event.target;
    if (target === form) {
      event.preventDefault();
      submit(event.submitter);
    } else if (target.matches("[data-continue]")) {
      event.preventDefault();
      say(target.elements.text.value, { client_id: target.elements.client_id.value, reply_to: Number(target.elements.reply_to.value) });
      focus();
    } else if (target.matches("[data-answer]")) {
      event.preventDefault();
      const alone = chat.members().filter((m) => m.agent).length < 2;
      say((alone ? "" : "@" + target.elements.to.value + " ") + event.submitter.value);
      focus();
    } else if (target.matches("[data-empty] .asks")) {
      event.preventDefault();
      say(event.submitter.value);
      focus();
    }
  });

  // Nothing but files is a message too.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== text || isComposing(event)) return;
    const send = event.ctrlKey || event.metaKey || (!event.shiftKey && !event.defaultPrevented && text.value.trim() === "" && chat.files && chat.files.any());
    if (!send || event.defaultPrevented) return;
    event.preventDefault();
    form.requestSubmit();
  });

  on("given-back", (item) => {
    if (editing) leave();
    const said = chat.partsText(item.parts);
    setText(text.value.trim() === "" ? said : said + "\n" + text.value);
    if (chat.files) chat.files.take(item.parts);
    if (isSeq(item.reply_to)) reply(item.reply_to, false);
    saveDraft();
    focus();
  });
  on("accepted", (item) => {
    if (item.told) $("disclosure")?.remove();
  });
  // A new agent sends text to another host: the reloaded page shows the destination.
  on("must-tell", async () => {
    const answer = await fetch(page, { headers: { Accept: "text/html" } }).catch(() => null);
    const box = answer && answer.ok && window.agentsite.fragment(await answer.text()).querySelector("[data-disclosure]");
    if (!box) return;
    $("disclosure")?.remove();
    form.prepend(box);
    announce(box.innerText);
  });

  chat.compose = {
    reply, edit, leave, focus, say,
    mode,
    empty: () => text.value === "" && !(chat.files && chat.files.any()),
    start() {
      const seq = Number(form.dataset.modeSeq);
      if (mode() === "edit" && isSeq(seq)) {
        const typed = text.value;
        text.value = "";
        edit(seq).then(() => typed !== "" && editing && setText(typed));
      } else takeDraft();
    },
  };
})();
