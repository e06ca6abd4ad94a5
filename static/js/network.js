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
    enhanceMap();
    if (focused !== null) {
      const again = [...place.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focused && a.tabIndex >= 0);
      if (again) again.focus({ preventScroll: true });
    }
  }

  // ---- the map: a card of each portal, by pointer, tap and keyboard ----
  let shown = null; // href of the portal whose card is shown

  function line(text, name) {
    return Object.assign(document.createElement("p"), { textContent: text, className: name || "" });
  }

  function showCard(node) {
    const card = place.querySelector("[data-map-card]");
    if (!card) return;
    shown = node && node.getAttribute("href");
    card.hidden = !node;
    if (!node) return;
    const { name, host, state, agents, rtt, reason, work } = factsOf(node);
    const open = Object.assign(document.createElement("a"), { href: shown, textContent: "Open", className: "map-card-open", tabIndex: -1 });
    card.replaceChildren(line(name, "map-card-name"), line(host, "handle"), line(state === "answers" && rtt ? state + " in " + rtt : state), line(agents));
    if (work) card.append(line(work, "map-card-work"));
    if (reason) card.append(line(reason, "quiet"));
    card.append(open);
    const box = card.parentElement.getBoundingClientRect();
    const at = (node.querySelector(".map-shape") || node).getBoundingClientRect();
    const left = at.left + at.width / 2 - box.left - card.offsetWidth / 2;
    card.style.left = Math.max(0, Math.min(left, box.width - card.offsetWidth)) + "px";
    card.style.top = at.bottom - box.top + 6 + "px";
  }

  /** The map of this width: the page has one for wide screens and one for phones. */
  const mapShown = () => [...place.querySelectorAll("[data-map]")].find((map) => map.getClientRects().length > 0);

  /** The facts of a portal, which stand on the map for wide screens alone. */
  const factsOf = (node) => (place.querySelector(`.map-node[data-name][href="${CSS.escape(node.getAttribute("href"))}"]`) || node).dataset;

  // The accessible name begins with the visible text (WCAG 2.5.3), or the name of a portal without a label.
  function accessibleName(node) {
    const visible = [...node.querySelectorAll("text")].map((text) => text.textContent).join(" ") || factsOf(node).name;
    const more = [factsOf(node).state, factsOf(node).agents].filter((fact) => !visible.includes(fact));
    return [visible, ...more].join(", ");
  }

  /** Makes the map reachable: one stop for Tab, arrows lead to the nearest portal in their direction. */
  function enhanceMap() {
    const map = mapShown();
    if (!map) return;
    map.removeAttribute("aria-hidden");
    map.setAttribute("role", "group");
    map.setAttribute("aria-label", "Map of portals. Arrow keys move between them.");
    const nodes = [...map.querySelectorAll(".map-node")];
    for (const node of nodes) node.setAttribute("aria-label", accessibleName(node));
    (nodes.find((n) => n.getAttribute("href") === shown) || nodes[nodes.length - 1])?.setAttribute("tabindex", "0");
    const again = shown && nodes.find((n) => n.getAttribute("href") === shown);
    if (again) showCard(again);
  }

  const nodeOf = (event) => event.target.closest?.(".map-node");
  place.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch" && nodeOf(event)) showCard(nodeOf(event));
  });
  place.addEventListener("pointerout", (event) => {
    const to = event.relatedTarget;
    if (event.pointerType !== "touch" && (nodeOf(event) || event.target.closest?.("[data-map-card]")) &&
        !(to instanceof Element && to.closest(".map-node, [data-map-card]"))) showCard(null);
  });
  place.addEventListener("focusin", (event) => { if (nodeOf(event)) showCard(nodeOf(event)); });
  place.addEventListener("focusout", (event) => {
    if (nodeOf(event) && !(event.relatedTarget instanceof Element && event.relatedTarget.closest(".map-node, [data-map-card]"))) showCard(null);
  });
  // The first tap shows the card, the second opens the portal.
  let touched = null;
  place.addEventListener("pointerdown", (event) => { touched = event.pointerType === "touch" && nodeOf(event) && shown !== nodeOf(event).getAttribute("href") ? nodeOf(event) : null; }, true);
  place.addEventListener("click", (event) => {
    const node = nodeOf(event);
    if (!node || node !== touched) return;
    event.preventDefault();
    showCard(node);
  });
  place.addEventListener("keydown", (event) => {
    const node = nodeOf(event);
    const to = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") showCard(null);
    if (!node || !to) return;
    event.preventDefault();
    const middle = (n) => { const r = n.querySelector(".map-shape").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
    const [x, y] = middle(node);
    let best = null;
    let least = Infinity;
    for (const other of node.closest("[data-map]").querySelectorAll(".map-node")) {
      const [ox, oy] = middle(other);
      const along = (ox - x) * to[0] + (oy - y) * to[1];
      const beside = Math.abs((ox - x) * to[1]) + Math.abs((oy - y) * to[0]);
      if (other !== node && along > 1 && along + 2 * beside < least) [best, least] = [other, along + 2 * beside];
    }
    if (!best) return;
    node.setAttribute("tabindex", "-1");
    best.setAttribute("tabindex", "0");
    best.focus();
  });
  enhanceMap();
  window.addEventListener("resize", () => { showCard(null); enhanceMap(); });

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
