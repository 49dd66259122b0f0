// What pages do beyond links and forms; without it everything still works.
"use strict";

// A form is sent once: the second click of a double click finds its button off.
document.addEventListener("submit", (event) => {
  for (const button of event.target.querySelectorAll("button[type=submit]")) {
    setTimeout(() => { button.disabled = true; }, 0);
  }
});

// Back from another page, what was sent may be sent again.
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
});

// Times are shown in UTC; hovering tells the reader's own.
document.addEventListener("mouseover", (event) => {
  const time = event.target.closest && event.target.closest("time");
  if (time && !time.title) time.title = new Date(time.dateTime).toLocaleString();
});

// The session has ended: whoever looks is asked to sign in.
document.addEventListener("htmx:sseClose", (event) => {
  if (event.detail.type === "message") location.reload();
});

// Slash goes to the first filter, as in many consoles.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector(".filters input");
  if (field) { event.preventDefault(); field.focus(); }
});
