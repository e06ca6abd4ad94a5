// Shows the notices that come by the browser's push service while no page is open. It caches nothing and answers no
// requests.
"use strict";

self.addEventListener("push", (event) => {
  let notice = {};
  try {
    notice = event.data.json();
  } catch {
    // A browser may show something of its own if nothing is shown, so an unreadable message is shown as a notice.
  }
  const title = typeof notice.title === "string" && notice.title ? notice.title : "AgentSite";
  event.waitUntil(self.registration.showNotification(title, {
    body: typeof notice.body === "string" ? notice.body : "There is a new notice.",
    icon: "/favicon.svg",
    tag: typeof notice.id === "string" ? notice.id : "notice",
    data: typeof notice.href === "string" && /^\/(?![/\\])/.test(notice.href) ? notice.href : "/notices",
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(new URL(event.notification.data || "/notices", self.location.origin)));
});
