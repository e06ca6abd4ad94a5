// Handing a page on by whatever the device shares with. Needs app.js.
"use strict";

(() => {
  if (!navigator.share) return;
  for (const button of document.querySelectorAll("[data-share]")) {
    const what = { title: button.dataset.shareTitle, url: button.dataset.share };
    if (navigator.canShare && !navigator.canShare(what)) continue;
    button.hidden = false;
    button.addEventListener("click", () => {
      navigator.share(what).catch((err) => {
        if (err.name !== "AbortError") console.warn("share:", err);
      });
    });
  }
})();
