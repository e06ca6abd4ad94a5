// Shows the agents that would be picked while a goal is typed. Without it a button shows them. Needs app.js.
"use strict";

(() => {
  const form = document.querySelector("[data-goal-form]");
  const place = document.querySelector("[data-goal-preview]");
  if (!form || !place) return;
  const status = document.querySelector("[data-goal-status]");
  const wait = 700; // ms after the last key
  const least = 8; // characters of a goal
  let timer = 0;
  let running = null;

  async function preview() {
    if (form.elements.goal.value.trim().length < least) return;
    running = new AbortController();
    const body = new URLSearchParams(new FormData(form));
    body.set("preview", "1");
    try {
      const answer = await fetch("/goals", { method: "POST", body, signal: running.signal, headers: { Accept: "text/html" } });
      const fresh = answer.ok && agentsite.fragment(await answer.text()).querySelector("[data-goal-preview]");
      if (!fresh) return; // what is typed is no goal yet
      place.replaceChildren(...fresh.childNodes);
      agentsite.enhance(place);
      const parts = place.querySelectorAll(".goal-board > li").length;
      status.textContent = parts === 1 ? "Preview: 1 part" : "Preview: " + parts + " parts";
    } catch {
      // A newer preview is on its way, or the portal does not answer: the page stays as it is.
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    if (running) running.abort();
    timer = setTimeout(preview, wait);
  });
})();
