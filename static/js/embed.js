// The chat with one agent, in a frame on another site. It loads no other script, because those act for the logged-in
// account, and here all people are visitors. A secret that this page stores and sends identifies the visitor; cookies are
// never sent, so that it works where they are blocked, and no other page can act for the visitor.
"use strict";

(() => {
  const body = document.body;
  const agent = body.dataset.embed;
  const $ = (name) => document.querySelector("[data-" + name + "]");
  const form = $("form");
  if (!agent || !form) return; // no chat here; the page shows the reason
  const text = form.elements.text;
  const rows = $("rows");
  const intro = $("intro");
  const scroller = $("scroll");
  const working = $("working");
  const bubble = $("bubble");
  const streamed = $("streamed");
  const problem = $("error");
  const base = "/agents/" + encodeURIComponent(agent) + "/embed/";

  const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("agentsite", { createHTML: (html) => html })
    : { createHTML: (html) => html };

  // ---- state that survives a reload; a frame may be refused any storage ----
  const key = "agentsite-embed " + agent;
  const fresh = () => ({ visitor: "", conversation: "" });
  let kept = fresh();
  try {
    const was = JSON.parse(sessionStorage.getItem(key));
    if (was && typeof was.visitor === "string" && typeof was.conversation === "string") kept = was;
  } catch {
    // It is kept for as long as the frame stands.
  }
  function keep() {
    try {
      sessionStorage.setItem(key, JSON.stringify(kept));
    } catch {
      // As above.
    }
  }

  class Refused extends Error {
    constructor(status, kind, message) {
      super(message);
      this.status = status;
      this.kind = kind;
    }
  }

  async function ask(path, options = {}) {
    const headers = { ...options.headers };
    if (kept.visitor) headers["Agentsite-Visitor"] = kept.visitor;
    const answer = await fetch(base + path, { ...options, headers, credentials: "omit", redirect: "error", cache: "no-store" });
    const visitor = answer.headers.get("Agentsite-Visitor");
    if (visitor) {
      kept.visitor = visitor;
      keep();
    }
    if (answer.ok) return answer;
    let error = {};
    try {
      error = (await answer.json()).error || {};
    } catch {
      // Not the portal's own words.
    }
    throw new Refused(answer.status, error.kind, error.message || "That did not work. Try again.");
  }
  const post = (path, value) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

  // ---- display ----
  let last = 0; // seq of the newest message shown
  let task = null; // {id, text, have} of the answer in the making
  // It is reversed: 0 is its end, where it stays by itself. The position of a reader who scrolled back is kept too.
  function grow(change) {
    const before = scroller.scrollHeight;
    const reading = scroller.scrollTop < -80;
    change();
    if (reading) scroller.scrollTop -= scroller.scrollHeight - before;
  }
  function tell(message) {
    problem.textContent = message;
    problem.hidden = !message;
  }
  function show() {
    working.hidden = !task;
    if (!task) return;
    bubble.hidden = task.text === "";
    streamed.textContent = task.text;
  }

  // A delta names the byte at which its text belongs.
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const over = ["completed", "failed", "canceled", "rejected", "input_required", "auth_required"];

  function take(event) {
    switch (event.type) {
      case "message":
        if (event.seq <= last) return;
        last = event.seq;
        grow(() => {
          if (task && event.task_id === task.id) task = null;
          if (event.html) {
            const template = document.createElement("template");
            template.innerHTML = policy.createHTML(event.html);
            for (const wide of template.content.querySelectorAll("pre, table, .math-block, .math-long")) wide.tabIndex = 0; // scrollable elements can be focused
            rows.append(template.content);
            intro.hidden = true;
          }
          show();
        });
        break;
      case "delta":
        if (!task || task.id !== event.task_id) task = { id: event.task_id, text: "", have: 0 };
        if (event.offset > task.have) return; // a piece is missing; a later one begins anew
        if (event.offset < task.have) task.text = decoder.decode(encoder.encode(task.text).subarray(0, event.offset));
        task.text += event.text;
        task.have = event.offset + encoder.encode(event.text).length;
        grow(show);
        break;
      case "task":
        if (over.includes(event.state)) {
          if (task && task.id === event.task_id) task.ended = true; // its message takes its place
          return;
        }
        if (!task || task.id !== event.task_id) task = { id: event.task_id, text: "", have: 0 };
        $("status").textContent = event.status || (event.state === "submitted" ? "waiting for its turn" : "answering");
        grow(show);
        break;
      default: // event types of later versions
    }
  }

  // ---- the stream; it comes back by itself and goes on where it was ----
  let stream = null; // the AbortController of the one that is open or wanted
  const pause = (ms, signal) => new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    }, { once: true });
  });

  async function follow() {
    if (stream || !kept.conversation) return;
    const mine = new AbortController();
    stream = mine;
    let wait = 500;
    while (!mine.signal.aborted) {
      const began = Date.now();
      try {
        const query = new URLSearchParams({ conversation: kept.conversation, after: String(last) });
        const answer = await ask("live?" + query, { headers: { Accept: "text/event-stream" }, signal: mine.signal });
        await read(answer.body.pipeThrough(new TextDecoderStream()).getReader(), mine.signal);
      } catch (err) {
        if (mine.signal.aborted) return;
        if (err instanceof Refused && [401, 403, 404, 410].includes(err.status)) {
          restart();
          tell("The conversation has ended. What you write begins another one.");
          return;
        }
        if (err instanceof Refused) tell(err.message);
      }
      if (Date.now() - began > 5000) wait = 500;
      await pause(wait * (0.5 + Math.random()), mine.signal);
      wait = Math.min(wait * 2, 20000);
    }
  }

  async function read(reader, signal) {
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        if (event.startsWith("data: ")) take(JSON.parse(event.slice(6)));
      }
    }
  }

  function restart() {
    stream?.abort();
    stream = null;
    kept = fresh();
    keep();
    last = 0;
    task = null;
    rows.replaceChildren();
    intro.hidden = false;
    $("new").hidden = true;
    tell("");
    show();
  }

  // ---- saying something ----
  let sending = null; // {text, id}: sent again, it is the same message
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = text.value.trim();
    if (said === "" || form.dataset.busy) return;
    if (!sending || sending.text !== said) sending = { text: said, id: crypto.randomUUID ? crypto.randomUUID() : String(Date.now()) + Math.random() };
    form.dataset.busy = "1";
    tell("");
    try {
      const answer = await (await post("messages", { text: said, client_id: sending.id, conversation: kept.conversation })).json();
      kept.conversation = answer.conversation;
      keep();
      sending = null;
      text.value = "";
      $("new").hidden = false;
      scroller.scrollTop = 0;
      follow();
    } catch (err) {
      if (err instanceof Refused && kept.visitor && (err.status === 401 || err.kind === "not_found")) {
        restart();
        tell("The conversation has ended. Send it again to begin another one.");
      } else {
        tell(err instanceof Refused ? err.message : "The portal cannot be reached. Try again.");
      }
    } finally {
      delete form.dataset.busy;
      text.focus();
    }
  });

  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    const touchOnly = matchMedia("(hover: none) and (pointer: coarse)").matches;
    if (touchOnly && !event.ctrlKey && !event.metaKey) return; // there Enter is the only way to a new line
    event.preventDefault();
    form.requestSubmit();
  });

  $("stop").addEventListener("click", async () => {
    if (!task) return;
    try {
      await post("stop", { task: task.id });
    } catch (err) {
      tell(err instanceof Refused ? err.message : "The portal cannot be reached. Try again.");
    }
  });
  $("new").addEventListener("click", () => {
    restart();
    text.focus();
  });
  intro.addEventListener("click", (event) => {
    const example = event.target.closest("[data-ask]");
    if (!example) return;
    text.value = example.dataset.ask;
    text.focus();
  });

  form.hidden = false;
  const asks = $("asks");
  if (asks) asks.hidden = false;
  if (kept.conversation) {
    $("new").hidden = false;
    follow();
  }
})();
