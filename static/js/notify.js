// News of the logged-in account, on every page: the number in the title and the navigation, and, if the person
// allowed it by a click, a notification of the browser. One tab listens for all of them.
"use strict";

(() => {
  const site = window.agentsite;
  if (!site) return;
  const here = document.getElementById("chat")?.dataset.conversation || "";
  const me = document.querySelector(".who-me .who-name")?.textContent.trim() || "";
  const signedIn = me !== "";
  // Tabs of the same person speak to each other.
  const channel = signedIn && "BroadcastChannel" in window ? new BroadcastChannel("agentsite:" + me) : null;

  // ---- the number ----
  let base = document.title;
  const unread = new Map(); // conversation → how many
  const link = document.querySelector('.main-nav a[href="/chat"]');

  function show() {
    let total = 0;
    for (const n of unread.values()) total += n;
    document.title = total > 0 ? "(" + (total > 99 ? "99+" : total) + ") " + base : base;
    if (!link || !signedIn) return;
    let mark = link.querySelector(".unread");
    if (total === 0) {
      mark?.remove();
      return;
    }
    if (!mark) {
      mark = document.createElement("span");
      mark.className = "unread";
      link.append(" ", mark);
    }
    const about = document.createElement("span");
    about.className = "visually-hidden";
    about.textContent = " unread";
    mark.replaceChildren(total > 99 ? "99+" : String(total), about);
  }

  function set(conversation, n) {
    if ((unread.get(conversation) || 0) === n) return;
    if (n > 0) unread.set(conversation, n);
    else unread.delete(conversation);
    show();
  }
  /** A chat was read, here or in another tab. */
  function wasRead(conversation) {
    set(conversation, 0);
    document.dispatchEvent(new CustomEvent("agentsite:read", { detail: conversation }));
  }

  site.badge = {
    set,
    rename(change) {
      base = change(base);
      show();
    },
    /** A conversation was read here: other tabs need not count it. */
    read(conversation) {
      wasRead(conversation);
      if (!signedIn) return;
      remember();
      channel?.postMessage({ type: "read", conversation });
    },
  };

  if (!signedIn) return;

  // ---- how many there are ----
  const countKey = "agentsite:unread:" + me;
  const countHolds = 60000; // ms
  let countedAt = 0;
  function remember() {
    try {
      sessionStorage.setItem(countKey, JSON.stringify({ at: countedAt, counts: [...unread].filter(([id]) => id !== here) }));
    } catch { /* then it is counted again on the next page */ }
  }
  async function count(now) {
    if (!now) {
      try {
        const kept = JSON.parse(sessionStorage.getItem(countKey) || "null");
        if (kept && Date.now() - kept.at < countHolds && Array.isArray(kept.counts)) {
          countedAt = kept.at;
          for (const [id, n] of kept.counts) if (typeof id === "string" && id !== here && Number.isSafeInteger(n)) set(id, n);
          remember();
          return;
        }
      } catch { /* counted anew */ }
    }
    const answer = await fetch("/api/v1/conversations?limit=50", { headers: { Accept: "application/json" } }).catch(() => null);
    const body = answer && answer.ok && (await answer.json().catch(() => null));
    const counts = cleanCounts(body && body.conversations);
    if (!counts) return;
    channel?.postMessage({ type: "counts", counts });
    applyCounts(counts);
  }

  /** Returns the numbers of a list of conversations, newest first, or null if it is no list. */
  function cleanCounts(list) {
    if (!Array.isArray(list)) return null;
    return list
      .filter((c) => c && typeof c.id === "string" && Number.isSafeInteger(c.unread) && Number.isSafeInteger(c.last_seq))
      .map((c) => ({ id: c.id, title: typeof c.title === "string" ? c.title.slice(0, 200) : "", unread: c.unread, last_seq: c.last_seq }));
  }

  const counted = new Map(); // conversation → greatest seq that is in its number
  /** Sets all numbers. News that arrived while the portal counted stay, and news that it counted are not added again. */
  function applyCounts(counts) {
    for (const c of counts) {
      const known = counted.get(c.id) || 0;
      if (known > c.last_seq) c.unread = Math.max(c.unread + 1, unread.get(c.id) || 0);
      else counted.set(c.id, c.last_seq);
    }
    for (const id of [...unread.keys()]) if (id !== here) unread.delete(id);
    for (const c of counts) if (c.id !== here && c.unread > 0) unread.set(c.id, c.unread);
    countedAt = Date.now();
    show();
    remember();
    document.dispatchEvent(new CustomEvent("agentsite:counts", { detail: counts }));
  }

  // ---- notifications ----
  const wanted = "agentsite:notify";
  const asks = () => document.querySelectorAll("[data-notify-ask]");
  const can = "Notification" in window;
  const allowed = () => {
    try {
      return can && Notification.permission === "granted" && localStorage.getItem(wanted) !== "no";
    } catch {
      return false;
    }
  };
  function offers() {
    const choice = document.querySelector('#chat form[action$="/notify"]');
    if (can && choice && asks().length === 0) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button button-small";
      button.dataset.notifyAsk = "";
      button.textContent = "Notify me in this browser";
      choice.after(button);
    }
    for (const el of asks()) el.hidden = !can || Notification.permission !== "default";
  }
  async function askPermission() {
    if (!can) return;
    const said = await Notification.requestPermission();
    try {
      if (said === "granted") localStorage.removeItem(wanted);
    } catch { /* then it is as the browser says */ }
    offers();
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-notify-ask]")) return;
    event.preventDefault();
    askPermission();
  });
  site.palette?.commands(() => {
    if (!can || Notification.permission === "denied") return [];
    if (Notification.permission === "default") return [{ name: "Notify me of new messages in this browser", hint: "", run: askPermission }];
    const on = allowed();
    return [{ name: on ? "No more notifications in this browser" : "Notify me of new messages in this browser", hint: "", run: () => {
      try {
        if (on) localStorage.setItem(wanted, "no");
        else localStorage.removeItem(wanted);
      } catch { /* stays as it is */ }
    } }];
  });

  const looks = 150; // ms in which a tab that shows the conversation says so
  const seen = new Set(); // news that are visible on the page
  const keyOf = (e) => e.conversation_id + "/" + e.seq;
  const shows = (e) => e.conversation_id === here && !document.hidden && document.hasFocus();

  function notify(e) {
    if (!allowed() || e.quiet || shows(e)) return;
    setTimeout(() => {
      if (seen.delete(keyOf(e))) return;
      const href = "/chat/" + encodeURIComponent(e.conversation_id) + "?at=" + e.seq + "#m" + e.seq;
      try {
        const n = new Notification(e.title || "A conversation", { body: (e.from ? e.from + ": " : "") + e.snippet, tag: "agentsite:" + e.conversation_id, renotify: true });
        n.onclick = () => {
          window.focus();
          n.close();
          if (e.conversation_id === here && site.chat?.window) site.chat.window.jump(e.seq);
          else location.assign(href);
        };
      } catch { /* some browsers notify from workers only */ }
    }, channel ? looks : 0);
  }

  function clean(e) {
    if (e.type !== "news" || typeof e.conversation_id !== "string" || !Number.isSafeInteger(e.seq) || e.seq < 1) return null;
    const text = (s, most) => (typeof s === "string" ? s.slice(0, most) : "");
    return { type: "news", conversation_id: e.conversation_id, seq: e.seq, title: text(e.title, 200), from: text(e.from, 200), snippet: text(e.snippet, 300), mention: e.mention === true, quiet: e.quiet === true };
  }

  function heard(e) {
    if ((counted.get(e.conversation_id) || 0) >= e.seq) return;
    counted.set(e.conversation_id, e.seq);
    if (shows(e)) channel?.postMessage({ type: "seen", key: keyOf(e) });
    if (e.conversation_id !== here) { // this page counts its own
      set(e.conversation_id, (unread.get(e.conversation_id) || 0) + 1);
      remember();
    }
    document.dispatchEvent(new CustomEvent("agentsite:news", { detail: e }));
  }

  if (channel) {
    channel.onmessage = ({ data }) => {
      if (!data || typeof data !== "object") return;
      if (data.type === "news") {
        const e = clean(data);
        if (e) heard(e);
      } else if (data.type === "counts") {
        const counts = cleanCounts(data.counts);
        if (counts) applyCounts(counts);
      } else if (data.type === "read" && typeof data.conversation === "string") {
        if (data.conversation !== here) wasRead(data.conversation);
        remember();
      } else if (data.type === "seen" && typeof data.key === "string") {
        seen.add(data.key);
        setTimeout(() => seen.delete(data.key), 5000);
      }
    };
  }

  function listen(done) {
    const news = site.live({
      path: () => "/api/v1/live",
      probe: "/api/v1/me",
      on: {
        // The stream begins now: messages since the page was made, or since the last stream, did not come by it.
        open: () => count(true),
        state: (s) => s === "over" && done?.(),
        event(raw) {
          const e = clean(raw);
          if (!e) return;
          channel?.postMessage(e);
          heard(e);
          notify(e);
        },
      },
    });
    site.news = news;
    news.connect();
  }
  // Whoever has the lock listens; when that tab goes, the next one does.
  if (navigator.locks && channel) navigator.locks.request("agentsite:news:" + me, () => new Promise(listen)).catch(() => {});
  else listen();

  document.addEventListener("visibilitychange", () => !document.hidden && count(false));
  offers();
  if ("requestIdleCallback" in window) requestIdleCallback(() => count(false), { timeout: 2000 });
  else setTimeout(() => count(false), 500);

  // Drafts stay with their author.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches('form[action="/logout"]')) return;
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith("agentsite:draft:") || key.startsWith("agentsite:out:")) localStorage.removeItem(key);
    } catch { /* nothing is kept then */ }
  });
})();
