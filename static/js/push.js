// The switch of notices on this device, on the page of the account: it subscribes at the browser's push service and
// gives the portal the address and the keys.
"use strict";

(() => {
  const box = document.querySelector("[data-push]");
  if (!box) return;
  const form = box.querySelector("[data-push-form]");
  const status = box.querySelector("[data-push-status]");
  const supported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  const worker = box.dataset.pushWorker;
  const say = (text) => {
    status.textContent = text;
  };
  const field = (name, value) => {
    form.elements[name].value = value;
  };
  const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  box.querySelector("[data-push-end]")?.addEventListener("submit", () => {
    // The portal forgets the subscription in any case. That the browser forgets it too is a courtesy.
    navigator.serviceWorker?.getRegistration("/").then((found) => found?.pushManager.getSubscription()).then((s) => s?.unsubscribe()).catch(() => {});
  });
  if (!form) return;
  if (!supported) {
    say("This browser has no push service, or the page is not on https.");
    return;
  }
  form.hidden = false;

  async function subscribe() {
    if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser does not let this portal show notices. Allow it in the settings of the browser.");
    await navigator.serviceWorker.register(window.agentsite.scriptURL(worker), { scope: "/" });
    const ready = await navigator.serviceWorker.ready;
    const old = await ready.pushManager.getSubscription();
    if (old) await old.unsubscribe(); // it may belong to another account or an older key
    const key = Uint8Array.from(atob(box.dataset.push.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    return ready.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    say("Asking the browser…");
    try {
      const made = await subscribe();
      field("endpoint", made.endpoint);
      field("p256dh", base64url(made.getKey("p256dh")));
      field("auth", base64url(made.getKey("auth")));
      form.submit();
    } catch (error) {
      say("Not turned on. " + error.message);
      button.disabled = false;
    }
  });
})();
