// Shows by itself when the program of an agent connects or is gone. Without it the page shows the state of its load.
// Needs app.js.
"use strict";

(() => {
  const every = 2000; // ms
  const place = document.querySelector("[data-connect-state]");
  if (!place) return;
  let last = "";
  let running = false;

  async function look() {
    if (running || document.hidden) return;
    running = true;
    try {
      const at = new URL(location.href);
      at.searchParams.set("part", "state");
      const answer = await fetch(at, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const html = await answer.text();
      if (html === last) return;
      last = html;
      place.replaceChildren(agentsite.fragment(html));
    } catch {
      // The portal does not answer: the page stays as it is, and the next attempt may succeed.
    } finally {
      running = false;
    }
  }

  setInterval(look, every);
  document.addEventListener("visibilitychange", look);
})();
