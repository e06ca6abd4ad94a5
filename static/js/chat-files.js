// Files that go with a message: chosen, dropped or pasted, sent up at once with their progress, and named by the message.
"use strict";

(() => {
  const chat = window.agentsite?.chat;
  if (!chat || !chat.form) return;
  const { root, $, emit, make, fail, announce, form } = chat;
  const input = $("file-input");
  const list = $("attached");
  if (!input || !list) return;
  const template = $("attached-template");
  const most = 31; // parts of a message, beside its text
  const largest = Number(root.dataset.maxFile) || 64 << 20;
  const atOnce = 3;
  let files = []; // {name, size, type, state: waiting|running|done|failed, el, xhr, part}

  const units = ["bytes", "KiB", "MiB", "GiB"];
  function sizeText(n) {
    let i = 0;
    while (n >= 1024 && i < units.length - 1) {
      n /= 1024;
      i++;
    }
    return (i === 0 ? n : n.toFixed(n < 10 ? 1 : 0)) + " " + units[i];
  }

  function row(file) {
    const el = template ? template.content.firstElementChild.cloneNode(true) : make("li", "attachment");
    if (!template) {
      el.append(make("bdi", "", "", { "data-attached-name": "" }), make("span", "quiet", "", { "data-attached-size": "" }),
        make("progress", "", "", { "data-attached-progress": "" }), make("button", "button button-small", "Remove", { type: "button", "data-attached-drop": "" }));
    }
    el.querySelector("[data-attached-name]").textContent = file.name;
    el.querySelector("[data-attached-size]").textContent = sizeText(file.size);
    const drop = el.querySelector("[data-attached-drop]");
    drop.type = "button";
    drop.setAttribute("aria-label", "Remove " + file.name);
    drop.addEventListener("click", () => remove(file));
    const progress = el.querySelector("[data-attached-progress]");
    progress.max = 1;
    progress.value = 0;
    progress.setAttribute("aria-label", "Sending " + file.name);
    file.el = el;
    list.append(el);
    list.hidden = false;
  }

  function add(chosen) {
    const wrong = [];
    for (const f of chosen) {
      if (files.length >= most) wrong.push("A message takes at most " + most + " files.");
      else if (f.size > largest) wrong.push(f.name + " has " + sizeText(f.size) + "; a file may have " + sizeText(largest) + ".");
      else if (f.size === 0) wrong.push(f.name + " is empty.");
      else {
        const file = { name: f.name || "file", size: f.size, type: f.type || "application/octet-stream", state: "waiting", blob: f };
        files.push(file);
        row(file);
      }
    }
    fail(wrong.join(" "));
    next();
    changed();
  }

  function next() {
    for (const file of files) {
      if (files.filter((f) => f.state === "running").length >= atOnce) return;
      if (file.state === "waiting") send(file);
    }
  }

  // XMLHttpRequest reports the progress of an upload; fetch does not.
  function send(file) {
    file.state = "running";
    const progress = file.el.querySelector("[data-attached-progress]");
    const xhr = new XMLHttpRequest();
    file.xhr = xhr;
    xhr.upload.onprogress = (event) => {
      if (event.lengthComputable && event.total > 0) progress.value = event.loaded / event.total;
    };
    xhr.onload = () => {
      let body = {};
      try {
        body = JSON.parse(xhr.responseText) || {};
      } catch { /* said below */ }
      const url = typeof body.url === "string" ? body.url : "";
      if (xhr.status >= 200 && xhr.status < 300 && /^\/files\/[0-9a-f]{64}$/.test(url)) {
        file.state = "done";
        file.blob = null;
        file.part = {
          url,
          filename: typeof body.filename === "string" && body.filename ? body.filename : file.name,
          mediaType: typeof body.media_type === "string" && body.media_type ? body.media_type : file.type,
          metadata: { size: file.size },
        };
        progress.value = 1;
        progress.hidden = true;
        file.el.classList.add("attached-done");
        announce(file.name + " is up");
      } else failed(file, (body.error && typeof body.error.message === "string" && body.error.message) || "The portal did not take it (" + xhr.status + ").");
      settled();
    };
    xhr.onerror = () => {
      failed(file, "The connection broke off.");
      settled();
    };
    xhr.onabort = settled;
    xhr.open("POST", "/api/v1/files");
    xhr.setRequestHeader("Accept", "application/json");
    const body = new FormData();
    body.append("file", file.blob, file.name);
    xhr.send(body);
  }

  function failed(file, why) {
    file.state = "failed";
    file.el.classList.add("attached-failed");
    fail(file.name + ": " + why + " It stays in the list; remove it, or press Send to try it again.");
  }

  function settled() {
    next();
    changed();
  }

  function remove(file) {
    const at = files.indexOf(file);
    if (at < 0) return;
    files.splice(at, 1);
    if (file.state === "running") file.xhr.abort();
    file.el.remove();
    list.hidden = files.length === 0;
    chat.text.focus({ preventScroll: true });
    settled();
  }

  function changed() {
    emit("files", { pending: files.some((f) => f.state === "waiting" || f.state === "running"), failed: files.some((f) => f.state === "failed") });
  }

  /** Files that are up already, for a draft that is taken up again. */
  function take(parts) {
    for (const part of parts) {
      if (!part || typeof part.url !== "string" || !/^\/files\/[0-9a-f]{64}$/.test(part.url) || files.length >= most) continue;
      const file = { name: String(part.filename || "file"), size: 0, type: "", state: "done", part };
      files.push(file);
      row(file);
      file.el.querySelector("[data-attached-size]").textContent = "";
      file.el.querySelector("[data-attached-progress]").hidden = true;
      file.el.classList.add("attached-done");
    }
    changed();
  }

  chat.files = {
    add, take,
    any: () => files.length > 0,
    pending: () => files.some((f) => f.state === "waiting" || f.state === "running"),
    parts: () => files.filter((f) => f.state === "done").map((f) => f.part),
    /** Tries those again that failed; answers whether there were any. */
    retry() {
      const list = files.filter((f) => f.state === "failed");
      for (const f of list) {
        f.state = "waiting";
        f.el.classList.remove("attached-failed");
      }
      next();
      changed();
      return list.length > 0;
    },
    clear() {
      for (const f of files) f.el.remove();
      files = [];
      list.hidden = true;
      changed();
    },
  };

  // ---- where files come from ----
  input.addEventListener("change", () => {
    add([...input.files]);
    input.value = "";
    chat.text.focus({ preventScroll: true });
  });
  const carries = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  let over = 0;
  root.addEventListener("dragenter", (event) => {
    if (!carries(event)) return;
    over++;
    form.classList.add("composer-over");
  });
  root.addEventListener("dragleave", (event) => {
    if (!carries(event)) return;
    over = Math.max(0, over - 1);
    if (over === 0) form.classList.remove("composer-over");
  });
  root.addEventListener("dragover", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
  });
  root.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    over = 0;
    form.classList.remove("composer-over");
    add([...event.dataTransfer.files]);
    chat.text.focus({ preventScroll: true });
  });
  form.addEventListener("paste", (event) => {
    const pasted = event.clipboardData ? [...event.clipboardData.files] : [];
    // A cell of a spreadsheet is pasted as text, not as its picture.
    if (pasted.length === 0 || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(pasted);
  });
})();
