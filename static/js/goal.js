// Keeps the page of a goal as its team is now. Without it the page shows how the team was. Needs app.js.
"use strict";

(() => {
  const place = document.querySelector("[data-goal]");
  if (!place) return;
  const status = document.querySelector("[data-goal-status]");
  const kinds = ["opened", "found", "joined", "refused", "offline", "moved", "rejected", "started", "waits", "answered", "ended",
    "reassigned", "recruits", "said", "spent", "ticked", "stopped", "below"];
  const pause = 1000; // ms before a stream that broke is opened again
  let stream = null;
  let retry = 0;
  let loading = false;
  let again = false;

  const head = () => place.querySelector("[data-goal-seq]");
  const isLive = () => head().hasAttribute("data-goal-open");

  // Texts that are typed, parts that are open, and the focus stay.
  function swap(html) {
    const open = [...place.querySelectorAll("details[open][id]")].map((d) => d.id);
    const typed = [...place.querySelectorAll("input[id], textarea[id]")].map((f) => [f.id, f.value]);
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    place.replaceChildren(agentsite.fragment(html));
    for (const id of open) if (document.getElementById(id)) document.getElementById(id).open = true;
    for (const [id, value] of typed) if (document.getElementById(id)) document.getElementById(id).value = value;
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
    agentsite.enhance(place);
  }

  async function load() {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      const was = place.querySelector("[data-goal-state]").textContent.trim();
      const answer = await fetch("/goals/" + place.dataset.goal + "?part=live", { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      swap(await answer.text());
      const now = place.querySelector("[data-goal-state]").textContent.trim();
      if (now !== was) status.textContent = "The goal: " + now;
      if (!isLive() && !replay) addReplay();
    } catch {
      // The portal does not answer: the page stays as it is, and the next attempt may succeed.
    } finally {
      loading = false;
      if (again) {
        again = false;
        load();
      }
    }
  }

  function follow() {
    clearTimeout(retry);
    if (stream || !isLive()) return;
    stream = new EventSource("/api/v1/goals/" + place.dataset.goal + "/events?after=" + head().dataset.goalSeq);
    for (const kind of kinds) stream.addEventListener(kind, load);
    stream.onerror = async () => {
      stream.close();
      stream = null;
      await load();
      retry = setTimeout(follow, pause); // the stream of a goal that ended is not opened again
    };
  }

  // A goal that has ended is shown as it was after the event of the slider, or after one event after the other.
  let replay = null;
  const step = 600; // ms between two events that are played
  let playing = 0;
  let newest = 0;

  async function showPast(at) {
    const mine = ++newest;
    replay.querySelector("[data-goal-at]").textContent = at + " of " + replay.elements.at.max;
    try {
      const answer = await fetch("/goals/" + place.dataset.goal + "?part=live&at=" + at, { headers: { Accept: "text/html" } });
      const html = await answer.text();
      if (answer.ok && mine === newest) swap(html);
    } catch {
      // The portal does not answer: the page stays as it is.
    }
  }

  function stopPlaying() {
    clearTimeout(playing);
    playing = 0;
    replay.querySelector("[data-goal-play]").textContent = "Play";
  }

  async function playOn() {
    const slider = replay.elements.at;
    if (Number(slider.value) >= Number(slider.max)) return stopPlaying();
    slider.stepUp();
    await showPast(slider.value);
    if (playing) playing = setTimeout(playOn, step);
  }

  function useReplay() {
    replay = document.querySelector("[data-goal-replay]");
    if (!replay) return;
    const play = replay.querySelector("[data-goal-play]");
    play.hidden = false;
    replay.querySelector("button:not([data-goal-play])").hidden = true;
    replay.elements.at.addEventListener("input", () => {
      stopPlaying();
      showPast(replay.elements.at.value);
    });
    play.addEventListener("click", () => {
      if (playing) return stopPlaying();
      if (replay.elements.at.value === replay.elements.at.max) replay.elements.at.value = 0;
      play.textContent = "Pause";
      playing = setTimeout(playOn, 0);
    });
  }

  // The slider of a goal that has ended while the page was open.
  async function addReplay() {
    try {
      const answer = await fetch("/goals/" + place.dataset.goal, { headers: { Accept: "text/html" } });
      const slider = answer.ok && agentsite.fragment(await answer.text()).querySelector("[data-goal-replay]");
      if (!slider || replay) return;
      place.before(slider);
      useReplay();
    } catch {
      // The portal does not answer: the slider comes with the next visit.
    }
  }

  useReplay();
  document.addEventListener("visibilitychange", async () => {
    if (document.hidden) return;
    await load();
    follow();
  });
  follow();
})();
