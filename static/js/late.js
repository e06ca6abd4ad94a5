// Shows the results of the remote search below the local ones. Without it a link asks the portals. Needs app.js.
"use strict";

(() => {
  const settle = 400; // ms without typing before other portals are asked
  let source = null;
  let timer = 0;

  function ask(place) {
    const title = place.querySelector("[data-late-title]");
    const list = place.querySelector("[data-late-list]");
    const stop = () => {
      source.close();
      source = null;
    };
    source = new EventSource(place.dataset.late);
    source.addEventListener("late", (event) => {
      const { html, count } = JSON.parse(event.data);
      const fresh = agentsite.fragment(html);
      agentsite.enhance(fresh);
      list.append(fresh);
      title.textContent = count + " so far…";
    });
    source.addEventListener("end", (event) => {
      stop();
      const { count, coverage } = JSON.parse(event.data);
      title.textContent = count;
      const line = document.querySelector("[data-coverage]");
      if (line && coverage) line.textContent = coverage;
      const status = document.querySelector("[data-search-status]");
      if (status) status.textContent = count;
    });
    // It is no stream to come back to: a second one would show all again.
    source.addEventListener("error", () => {
      stop();
      title.textContent = "The other portals could not be asked just now.";
    });
  }

  function look(wait) {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
    const place = document.querySelector("[data-late]");
    if (!place) return;
    place.hidden = false;
    timer = setTimeout(ask, wait, place);
  }

  document.addEventListener("agentsite:found", () => look(settle));
  look(0);
})();
