// Answers in progress: streaming text, the status of a task, and stopping it. It stays plain text until the portal has
// rendered the whole.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, $, on, announce, ask, fail, scroll } = chat;
  const working = $("working");
  const template = $("working-template");
  const stop = $("stop");
  if (!working || !template) return;

  // A delta names the byte at which its text belongs, so bytes are counted as UTF-8, not JavaScript's characters.
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const bytes = (s) => encoder.encode(s).length;
  const tasks = new Map(); // id → {el, streamed, text, have, over}
  const ended = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);
  // A task that waits for input sends nothing before a member answers it.
  const rests = (state) => ended(state) || ["input_required", "auth_required"].includes(state);
  const labels = { submitted: "waiting for its turn", working: "answering" };
  const isID = (s) => typeof s === "string" && s !== "" && s.length <= 100;

  function adopt(el) {
    const streamed = el.querySelector("[data-streamed]");
    const task = { el, streamed, text: streamed.textContent, have: bytes(streamed.textContent), over: 0 };
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
  }

  function onDelta(d) {
    if (typeof d.text !== "string" || !isID(d.task_id)) return;
    const task = taskOf(d.task_id, d.agent);
    if (task.over) return; // its end has come already
    const offset = Number.isSafeInteger(d.offset) && d.offset > 0 ? d.offset : 0;
    if (offset > task.have) return; // something is missing; a later delta begins at 0 again
    if (offset < task.have) {
      task.text = decoder.decode(encoder.encode(task.text).subarray(0, offset));
      task.streamed.textContent = task.text;
    }
    task.text += d.text;
    task.have = offset + bytes(d.text);
    if (task.streamed.lastChild) task.streamed.lastChild.appendData(d.text);
    else task.streamed.textContent = task.text;
    task.el.querySelector("[data-bubble]").classList.toggle("bubble-empty", task.text === "");
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
    task.text = "";
    task.have = 0;
    task.streamed.textContent = "";
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
