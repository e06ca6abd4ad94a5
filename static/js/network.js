// Keeps the map and the table of the network as they are now. Without it the page shows how they were. Needs app.js.
"use strict";

(() => {
  const every = 2000; // ms
  const place = document.querySelector("[data-network]");
  if (!place) return;
  const status = document.querySelector("[data-network-status]");
  let last = "";
  let running = false;

  // Whoever was on a link stays on it when the table is written anew.
  function swap(html) {
    const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    place.replaceChildren(agentsite.fragment(html));
    agentsite.enhance(place);
    if (focused !== null) {
      const again = [...place.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focused && a.tabIndex >= 0);
      if (again) again.focus({ preventScroll: true });
    }
  }

  async function look() {
    if (running || document.hidden) return;
    running = true;
    try {
      const at = new URL(location.href);
      at.searchParams.set("part", "live");
      const answer = await fetch(at, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const html = await answer.text();
      if (html === last) return;
      const first = last === "";
      last = html;
      const said = place.querySelector("[data-network-sum]");
      const was = said ? said.textContent : "";
      swap(html);
      const sum = place.querySelector("[data-network-sum]");
      if (!first && sum && sum.textContent !== was) status.textContent = sum.textContent;
    } catch {
      // The portal does not answer: the page stays as it is, and the next attempt may succeed.
    } finally {
      running = false;
    }
  }

  setInterval(look, every);
  document.addEventListener("visibilitychange", look);
})();
