// A live stream of the portal: a WebSocket, or server-sent events where something on the way lets none through, or
// requests every few seconds where server-sent events are held back too. It comes back by itself and resumes; the
// listeners interpret the events. Needs app.js.
"use strict";

(() => {
  const firstWait = 500; // ms
  const longestWait = 20000;
  const longestConnect = 10000;
  const longestSleep = 30000; // a page hidden for longer may hold a stream that died unnoticed
  const firstEvent = 5000; // the portal sends one at once; a proxy that holds events back does not
  const pollEvery = 3000;
  const pollsBeforeSocket = 100; // then the network may have changed
  const steady = 5000; // a stream that held this long was a good one
  const over = new Set([401, 403, 404, 410]);
  const names = ["message", "delta", "task", "presence", "typing", "read", "library", "news"];

  /**
   * live keeps a stream open. path() is its address as of now, probe an address that answers 401, 403 or 404 when there
   * is nothing to come back to. waiting() is the address of the events that wait already, for streams that resume; the
   * portal begins their server-sent events with "ready". on has event(e), state("", "offline", "waiting", "over") and open(), all optional but the
   * first. It returns connect, send, again (drops the stream and comes back at once), stop and open.
   */
  function live({ path, probe, on, waiting }) {
    let source = null; // {close, send}
    let isOpen = false;
    let openedAt = 0;
    let failures = 0; // in a row
    let unopened = 0; // sockets that never opened although the portal answered, in a row
    let polls = 0; // requests that remain before a socket is tried again
    let retry = 0;
    let ended = false;
    let hiddenAt = 0;

    const state = (s) => on.state && on.state(s);

    function connect() {
      clearTimeout(retry);
      if (source || ended) return;
      if (polls > 0) source = openPolls();
      else source = unopened < 2 ? openSocket() : openEvents();
    }

    function opened() {
      isOpen = true;
      openedAt = Date.now();
      state("");
      if (on.open) on.open();
    }

    function hear(text) {
      let e;
      try {
        e = JSON.parse(text);
      } catch {
        return;
      }
      if (e && typeof e === "object" && typeof e.type === "string") on.event(e);
    }

    function lost(which, final, never) {
      if (source !== which) return;
      source = null;
      if (isOpen && Date.now() - openedAt > steady) failures = 0;
      isOpen = false;
      if (final) end();
      else comeBack(never);
    }

    function openSocket() {
      const url = new URL(path(), location.href);
      url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
      const ws = new WebSocket(url);
      let was = false;
      const which = {
        close: () => ws.close(),
        send: (e) => {
          if (ws.readyState !== WebSocket.OPEN || ws.bufferedAmount > 1 << 16) return false;
          ws.send(JSON.stringify(e));
          return true;
        },
      };
      const tooLong = setTimeout(() => ws.close(), longestConnect);
      ws.onopen = () => {
        clearTimeout(tooLong);
        was = true;
        unopened = 0;
        if (source === which) opened();
      };
      ws.onmessage = (event) => {
        if (source === which && typeof event.data === "string") hear(event.data);
      };
      ws.onclose = (event) => {
        clearTimeout(tooLong);
        lost(which, event.code === 1008, !was); // 1008, policy: this stream is not, or no longer, ours
      };
      return which;
    }

    function openEvents() {
      const es = new EventSource(path());
      const which = { close: () => es.close(), send: () => false };
      const tooLong = setTimeout(
        () => {
          if (waiting) polls = pollsBeforeSocket;
          fail();
        },
        waiting ? firstEvent : longestConnect,
      );
      function fail() {
        clearTimeout(tooLong);
        es.close();
        unopened = 1; // one socket is tried again first
        lost(which, false, false);
      }
      function arrived() {
        clearTimeout(tooLong);
        if (source === which) opened();
      }
      if (waiting) es.addEventListener("ready", arrived);
      else es.onopen = arrived;
      for (const name of names) es.addEventListener(name, (event) => source === which && hear(event.data));
      es.onerror = fail; // its own way to come back would not wait longer each time
      return which;
    }

    // openPolls asks for the events that wait, again and again. A hidden page asks rarely.
    function openPolls() {
      const stop = new AbortController();
      const which = { close: () => stop.abort(), send: () => false };
      setTimeout(async () => {
        for (let turn = 0; source === which && polls > 0; turn++) {
          if (!document.hidden || turn % 10 === 0) {
            polls--;
            const events = await poll(stop.signal);
            if (source !== which) return;
            if (events === null) return lost(which, false, false);
            opened(); // the text so far of an answer comes again
            events.forEach(hear);
          }
          await new Promise((done) => setTimeout(done, pollEvery));
        }
        unopened = 0;
        lost(which, false, false);
      });
      return which;
    }

    // poll returns the data of the waiting events, null when the portal does not answer.
    async function poll(signal) {
      try {
        const answer = await fetch(waiting(), { headers: { Accept: "text/event-stream" }, signal });
        if (!answer.ok) return null;
        return [...(await answer.text()).matchAll(/^data: ?(.*)$/gm)].map((line) => line[1]);
      } catch {
        return null;
      }
    }

    async function comeBack(never) {
      failures++;
      if (failures > 1 || !navigator.onLine) state(navigator.onLine ? "waiting" : "offline");
      const wait = Math.min(longestWait, firstWait * 2 ** Math.min(failures - 1, 6)) * (0.5 + Math.random() / 2);
      clearTimeout(retry);
      retry = setTimeout(connect, wait);
      if (!never && failures % 4 !== 0) return;
      // A socket that was refused does not say why; a plain request does.
      const answer = await fetch(probe, { headers: { Accept: "application/json" } }).catch(() => null);
      if (!answer || isOpen || ended) return;
      if (over.has(answer.status)) end();
      else if (never && answer.status < 500) {
        // The portal is there, only sockets do not come through: nothing to wait for.
        unopened++;
        failures--;
        clearTimeout(retry);
        if (!source) retry = setTimeout(connect, firstWait * Math.random());
      }
    }

    function end() {
      ended = true;
      clearTimeout(retry);
      letGo();
      state("over");
    }

    // letGo drops the stream without waiting for the network.
    function letGo() {
      const old = source;
      source = null;
      isOpen = false;
      if (old) old.close();
    }

    function again() {
      letGo();
      failures = 0;
      connect();
    }

    addEventListener("offline", () => !ended && state("offline"));
    addEventListener("online", () => !ended && again());
    addEventListener("pagehide", letGo);
    addEventListener("pageshow", (event) => event.persisted && connect());
    document.addEventListener("resume", () => !ended && again());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) {
        hiddenAt = Date.now();
        return;
      }
      if (hiddenAt && Date.now() - hiddenAt > longestSleep) letGo();
      if (!source) failures = 0;
      connect();
    });

    return { connect, again, stop: end, send: (e) => isOpen && source !== null && source.send(e), open: () => isOpen };
  }

  window.agentsite.live = live;
})();
