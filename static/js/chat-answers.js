// Answers in progress: streaming text, the status of a task, and stopping it. The portal renders each block of an answer
// when it is finished; the text behind the last one stays plain until then.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, $, on, announce, ask, fail, make, scroll } = chat;
  const { fragment, enhance } = window.agentsite;
  const working = $("working");
  const template = $("working-template");
  const stop = $("stop");
  if (!working || !template) return;

  // A delta names the byte at which its text belongs, so bytes are counted as UTF-8, not JavaScript's characters.
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const bytes = (s) => encoder.encode(s).length;
  // id → {el, streamed, open, have, done, over}: open is the element of the text behind the rendered blocks, have and done
  // are the bytes of the answer that have come and that are rendered.
  const tasks = new Map();
  const ended = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);
  // A task that waits for input sends nothing before a member answers it.
  const rests = (state) => ended(state) || ["input_required", "auth_required"].includes(state);
  const labels = { submitted: "waiting for its turn", working: "answering" };
  const isID = (s) => typeof s === "string" && s !== "" && s.length <= 100;

  function adopt(el) {
    const streamed = el.querySelector("[data-streamed]");
    const open = el.querySelector("[data-open]");
    const done = Number(streamed.dataset.done) || 0;
    const task = { el, streamed, open, have: done + bytes(open.textContent), done, over: 0 };
    showOpen(task, open.textContent);
    tasks.set(el.dataset.task, task);
    return task;
  }

  function taskOf(id, agent) {
    const known = tasks.get(id);
    if (known) return known;
    const el = template.content.firstElementChild.cloneNode(true);
    el.dataset.task = id;
    for (const field of el.querySelectorAll('[data-stop-one] [name="task"]')) field.value = id;
    const task = adopt(el);
    name(el, agent);
    $("empty")?.remove();
    scroll.hold(() => working.append(el));
    showStop();
    return task;
  }

  function name(el, agent) {
    if (typeof agent !== "string" || agent === "" || el.dataset.agent === agent) return;
    el.dataset.agent = agent;
    const member = chat.memberOf(agent);
    const label = member ? member.label : agent;
    el.querySelector("[data-name]").textContent = label;
    const face = member && member.el.querySelector(".avatar");
    if (face) el.querySelector(".avatar")?.replaceWith(face.cloneNode(true));
    announce(label + " is answering");
  }

  function status(task, text) {
    const line = task.el.querySelector("[data-task-status]");
    if (!line || typeof text !== "string") return;
    line.textContent = text;
    line.hidden = text === "";
    task.el.querySelector("[data-task-state]").hidden = text !== ""; // the status says more, and may say that it waits
  }

  function onDelta(d) {
    if (typeof d.text !== "string" || !isID(d.task_id)) return;
    const task = taskOf(d.task_id, d.agent);
    if (task.over) return; // its end has come already
    const offset = Number.isSafeInteger(d.offset) && d.offset > 0 ? d.offset : 0;
    if (offset > task.have) return; // something is missing; a later delta begins at 0 again
    if (offset < task.done && offset > 0) return; // a rendered block is not taken apart
    if (offset < task.done || (offset === 0 && task.have > 0)) restart(task);
    else if (offset < task.have) showOpen(task, decoder.decode(encoder.encode(task.open.textContent).subarray(0, offset - task.done)));
    task.have = offset + bytes(d.text);
    if (d.blocks && d.blocks.from === task.done) finish(task, d.blocks, task.open.textContent + d.text);
    else if (task.open.lastChild) task.open.lastChild.appendData(d.text);
    else showOpen(task, d.text);
    task.el.querySelector("[data-bubble]").classList.toggle("bubble-empty", task.have === 0);
  }

  const fenced = /^ {0,3}(```|~~~)/;

  /** Shows the text behind the rendered blocks. Code that is not finished has the form of code. */
  function showOpen(task, text) {
    task.open.textContent = text;
    task.open.hidden = text === "";
    task.open.classList.toggle("streamed-code", fenced.test(text));
  }

  /** Puts rendered blocks in the place of their text. */
  function finish(task, blocks, text) {
    if (!Number.isSafeInteger(blocks.to) || blocks.to > task.have || blocks.to <= task.done) return;
    const rest = decoder.decode(encoder.encode(text).subarray(blocks.to - task.done));
    task.done = blocks.to;
    // The observer of the transcript's height keeps the reader's place, once a frame for all that came. The open text
    // gets a new element: the old one would move down to it, which browsers count as a shift of the layout.
    const open = task.open.cloneNode(false);
    task.open.after(open);
    if (typeof blocks.html === "string" && blocks.html !== "") {
      const rendered = make("div", "prose");
      rendered.append(fragment(blocks.html));
      enhance(rendered);
      task.open.before(...rendered.childNodes);
    }
    task.open.remove();
    task.open = open;
    showOpen(task, rest);
  }

  function restart(task) {
    task.done = 0;
    task.have = 0;
    task.streamed.replaceChildren(task.open);
    showOpen(task, "");
  }

  function onTask(event) {
    const t = event.task;
    if (!t || !isID(t.id) || typeof t.state !== "string") return;
    if (!rests(t.state)) {
      const task = taskOf(t.id, t.agent);
      clearTimeout(task.over); // it goes on
      task.over = 0;
      name(task.el, t.agent);
      const turn = t.state === "submitted" && typeof t.turn === "string" && t.turn !== "" ? ", " + t.turn : "";
      task.el.querySelector("[data-task-state]").textContent = (labels[t.state] || "answering") + turn;
      status(task, t.status || "");
      showStop();
      return;
    }
    // Its last message takes the bubble's place; wait for it a moment, so that nothing blinks.
    const task = tasks.get(t.id);
    if (!task || task.over) return;
    task.over = setTimeout(() => dropTask(t.id), 1500);
    showStop();
  }

  function empty(id) {
    const task = tasks.get(id);
    if (!task) return;
    restart(task);
    task.el.querySelector("[data-bubble]").classList.add("bubble-empty");
  }

  function dropTask(id) {
    const task = tasks.get(id);
    if (!task) return;
    clearTimeout(task.over);
    if (task.el.contains(document.activeElement)) (chat.text || scroll.scroller).focus({ preventScroll: true });
    scroll.hold(() => task.el.remove());
    tasks.delete(id);
    announce("");
    showStop();
  }

  const runs = () => [...tasks.values()].some((t) => !t.over);
  function showStop() {
    if (!stop) return;
    const hidden = !runs();
    if (hidden && stop.contains(document.activeElement)) chat.text?.focus({ preventScroll: true });
    stop.hidden = hidden;
  }

  // The end of a task and its message come as two events; the message replaces the bubble.
  on("said", (m) => {
    const id = m.task && m.task.id;
    if (!isID(id)) return;
    if (!m.sender || m.sender.kind !== "agent") return;
    if (!m.task.state || rests(m.task.state)) dropTask(id);
    else empty(id);
  });

  async function stopAll(task) {
    const answer = await ask("POST", api + "/stop", task ? { task } : {});
    if (!answer.ok) fail("It could not be stopped. " + answer.message);
    return answer.ok;
  }

  root.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form !== stop && !form.matches("[data-stop-one]")) return;
    event.preventDefault();
    const button = form.querySelector("button");
    const one = form !== stop && form.elements.task ? form.elements.task.value : "";
    button.disabled = true;
    try {
      if (one) {
        const answer = await ask("POST", "/api/v1/tasks/" + encodeURIComponent(one) + "/cancel", {});
        if (!answer.ok) fail("It could not be stopped. " + answer.message);
      } else await stopAll();
    } finally {
      button.disabled = false;
    }
  });

  for (const el of working.querySelectorAll("[data-task]")) adopt(el);

  chat.answers = { onDelta, onTask, runs, stop: () => stopAll() };
})();
