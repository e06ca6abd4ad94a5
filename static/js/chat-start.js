// Start of the conversation: opens its stream and sends waiting messages.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { root, api, on, emit, say, isSeq, transcript, scroll } = chat;

  const states = { "": "", offline: "Offline", waiting: "Reconnecting…", over: "Not connected. Reload the page" };
  chat.link = window.agentsite.live({
    path: () => api + "/live?html=1&after=" + transcript.lastSeq(),
    waiting: () => api + "/live?html=1&once=1&after=" + transcript.lastSeq(),
    probe: api,
    on: {
      open: () => emit("open"),
      state: (state) => say(states[state] ?? ""),
      event(e) {
        switch (e.type) {
          case "message":
            if (!transcript.onMessage(e)) chat.link.again();
            break;
          case "delta": chat.answers?.onDelta(e); break;
          case "task": chat.answers?.onTask(e); break;
          case "presence": chat.people.onPresence(e); break;
          case "typing": chat.people.onTyping(e); break;
          case "read": chat.people.onRead(e); break;
          case "library": if (isSeq(e.seq)) chat.window.refresh(e.seq); break;
          default: // event types of later versions
        }
      },
    },
  });
  on("behind", () => chat.link.again());

  chat.window.links();
  if (!chat.window.atTail()) scroll.stay();
  const at = Number(root.dataset.at) || Number((/^#m(\d+)$/.exec(location.hash) || [])[1]);
  if (isSeq(at)) chat.window.jump(at, false);

  chat.compose?.start();
  chat.outbox?.start();
  chat.link.connect();
  chat.people.noteRead();
  chat.window.look();
  const first = root.querySelector("[data-first]") || chat.text;
  if (first && !("ontouchstart" in window)) first.focus({ preventScroll: first === chat.text });
})();
