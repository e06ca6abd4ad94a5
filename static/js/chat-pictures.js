// Pictures that messages name by an address. Nothing is loaded by itself: a click on the link lets the portal fetch the
// picture and shows it below. Another click, or one with a key held, follows the link.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat) return;
  const { page, messages, scroll } = chat;
  const failed = "The picture could not be loaded.";

  /** The address of a picture's data, because the page may show no others. */
  const dataURL = (blob) => new Promise((done, wrong) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => wrong(reader.error);
    reader.readAsDataURL(blob);
  });

  async function load(link, seq) {
    const body = new URLSearchParams({ url: link.getAttribute("href") });
    const answer = await fetch(page + "/m/" + seq + "/picture", { method: "POST", headers: { Accept: "application/json" }, body });
    if (!answer.ok || answer.headers.get("Content-Type") !== "image/png") {
      const text = await answer.json().then((b) => b?.error?.message).catch(() => "");
      throw new Error(text || failed);
    }
    const img = new Image();
    img.alt = link.textContent;
    img.className = "loaded-picture";
    img.src = await dataURL(await answer.blob());
    await img.decode();
    img.width = img.naturalWidth;
    img.height = img.naturalHeight;
    return img;
  }

  messages?.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a.linked-picture");
    const row = link?.closest("article[data-seq]");
    if (!row || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || "picture" in link.dataset) return;
    event.preventDefault();
    link.dataset.picture = "loading";
    link.setAttribute("aria-busy", "true");
    let shown;
    try {
      shown = await load(link, row.dataset.seq);
    } catch (err) {
      shown = document.createElement("span");
      shown.className = "picture-failed";
      shown.setAttribute("role", "alert");
      shown.textContent = err instanceof TypeError || !err.message ? failed : err.message;
    }
    link.removeAttribute("aria-busy");
    link.dataset.picture = "shown"; // the next click follows the link
    scroll.hold(() => link.after(shown));
  });
})();
