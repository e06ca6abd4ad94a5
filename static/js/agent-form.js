// The form that registers or edits an agent: rows that grow, mistakes named while typing, tries without a reload.
// Everything here works without it, with a button more and a reload.
"use strict";

(() => {
  const form = document.querySelector("[data-agent-form]");
  if (!form) return;
  const { fragment, enhance } = window.agentsite;
  const action = form.getAttribute("action");

  // ---- the handle ----
  const name = form.querySelector("[data-handle-source]");
  const handle = form.querySelector("[data-handle]");
  if (name && handle) {
    const show = () => {
      const value = name.value.toLowerCase().replace(/[\s_]+/g, "-");
      if (value !== name.value) name.value = value;
      handle.textContent = "@" + (value || "name") + "@" + form.dataset.portal;
    };
    name.addEventListener("input", show);
    if (name.value) show();
  }

  // ---- rows ----
  /** Copies the last of some rows, empty, with ids of its own. */
  function addRow(rows) {
    const last = rows[rows.length - 1];
    const n = String(rows.length);
    const row = last.cloneNode(true);
    for (const el of row.querySelectorAll("*")) {
      for (const attribute of ["id", "for", "aria-describedby"]) {
        const value = el.getAttribute(attribute);
        if (value) el.setAttribute(attribute, value.replace(/\.\d+/g, "." + n));
      }
      el.removeAttribute("aria-invalid");
      if ("value" in el) el.value = "";
      if (el.classList.contains("field-error")) el.remove();
    }
    for (const quiet of row.querySelectorAll("summary .quiet")) quiet.remove();
    for (const wrong of row.querySelectorAll(".field-wrong")) wrong.classList.remove("field-wrong");
    last.after(row);
    return row;
  }

  form.querySelector("[data-add-skill]")?.addEventListener("click", (event) => {
    const rows = form.querySelectorAll("[data-skill-row]");
    if (rows.length === 0) return; // let the server add one
    event.preventDefault();
    const row = addRow(rows);
    row.querySelector("[data-skill-number]").textContent = String(rows.length + 1);
    row.open = true;
    row.querySelector("input").focus();
  });
  form.querySelector("[data-add-exchange]")?.addEventListener("click", (event) => {
    const rows = form.querySelectorAll("[data-exchange]");
    if (rows.length === 0) return;
    event.preventDefault();
    addRow(rows).querySelector("textarea").focus();
  });

  // ---- another kind: its fields may be in the folded part ----
  for (const kind of form.querySelectorAll('[name="kind"]')) {
    kind.addEventListener("change", () => {
      const label = kind.closest(".kind-card")?.querySelector(".kind-card-title");
      const now = form.querySelector(".kind-now-label");
      if (label && now) now.textContent = label.textContent;
      const more = form.querySelector("[data-form-more]");
      if (more) more.open = true;
    });
  }

  // ---- mistakes, named while typing ----
  const touched = new Set();
  let timer = 0;
  let running = null;
  let asked = form.querySelector("#endpoint")?.value || "";

  /** The ids under which the server names mistakes are those of the fields. */
  function message(id, text) {
    const field = document.getElementById(id);
    const box = field?.closest(".field");
    if (!box) return;
    const errorId = id + "-error";
    let error = document.getElementById(errorId);
    box.classList.toggle("field-wrong", Boolean(text));
    const described = (field.getAttribute("aria-describedby") || "").split(" ").filter((x) => x && x !== errorId);
    if (!text) {
      error?.remove();
      field.removeAttribute("aria-invalid");
    } else {
      if (!error) {
        error = document.createElement("p");
        error.className = "field-error";
        error.id = errorId;
        error.setAttribute("role", "alert");
        box.append(error);
      }
      if (error.textContent.trim() !== text) error.replaceChildren(Object.assign(document.createElement("span"), { textContent: text }));
      field.setAttribute("aria-invalid", "true");
      described.unshift(errorId);
    }
    if (described.length > 0) field.setAttribute("aria-describedby", described.join(" "));
    else field.removeAttribute("aria-describedby");
  }

  /** The form without files and without earlier tries. */
  function typed() {
    const body = new URLSearchParams();
    for (const [key, value] of new FormData(form)) {
      if (typeof value === "string" && !key.startsWith("tried_")) body.append(key, value);
    }
    return body;
  }

  function showNames(names) {
    const place = form.querySelector("[data-free-names]");
    if (!place) return;
    place.replaceChildren();
    if (!names || names.length === 0) return;
    place.append("Free:");
    for (const free of names) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: free });
      button.addEventListener("click", () => {
        name.value = free;
        name.dispatchEvent(new Event("input", { bubbles: true }));
        touched.add("name");
        name.focus();
        check();
      });
      place.append(button);
    }
  }

  async function check() {
    clearTimeout(timer);
    if (touched.size === 0) return;
    if (running) running.abort();
    running = new AbortController();
    const body = typed();
    const endpoint = form.querySelector("#endpoint");
    const found = form.querySelector("[data-found]");
    const ask = touched.has("endpoint") && endpoint && endpoint.value !== asked && document.activeElement !== endpoint;
    if (ask) {
      body.set("ask_address", "1");
      asked = endpoint.value;
      if (found && endpoint.value) found.textContent = "Checking the address …";
    }
    try {
      const answer = await fetch(action + "/check", { method: "POST", body, headers: { Accept: "application/json" }, signal: running.signal });
      if (!answer.ok) {
        if (ask && found) found.textContent = "";
        return;
      }
      const said = await answer.json();
      for (const id of touched) message(id, said.fields[id] || "");
      if (touched.has("name")) {
        showNames(said.names);
        name?.closest(".field").classList.toggle("field-right", Boolean(name.value) && !said.fields.name && said.name_free);
      }
      if (ask && found) found.textContent = said.found || "";
    } catch (err) {
      if (ask) asked = "";
      if (err.name !== "AbortError") console.info("check:", err);
    }
  }

  const checked = (target) => target.name && target.id && !target.closest("[data-try]") && target.type !== "file";
  form.addEventListener("focusout", (event) => {
    const field = event.target;
    if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) || !checked(field)) return;
    if (field.value === "" && !touched.has(field.id)) return; // no error for a field that was only passed by
    touched.add(field.id);
    clearTimeout(timer);
    timer = setTimeout(check, 120);
  });
  form.addEventListener("input", (event) => {
    if (!checked(event.target)) return;
    // The name is looked up while it is typed; other fields only once something is wrong with them.
    if (event.target === name) touched.add("name");
    if (event.target.id === "endpoint") {
      const found = form.querySelector("[data-found]");
      if (found) found.textContent = "";
    }
    if (!touched.has(event.target.id)) return;
    clearTimeout(timer);
    timer = setTimeout(check, 350);
  });
  for (const wrong of form.querySelectorAll("[aria-invalid]")) if (wrong.id) touched.add(wrong.id);

  // ---- the models of the server at the address ----
  const models = form.querySelector("[data-models]");
  let askedModels = "";

  /** Asks for the list without a reload, because a typed key is not shown again by the portal. */
  async function listModels() {
    const state = models.querySelector("[data-models-state]");
    if (models.getAttribute("aria-busy") === "true") return;
    models.setAttribute("aria-busy", "true");
    state.textContent = "Asking …";
    const body = typed();
    body.set("models", "1");
    askedModels = (body.get("endpoint") || "") + " " + (body.get("key") || "");
    try {
      const answer = await fetch(action, { method: "POST", body, headers: { Accept: "text/html" } });
      const page = fragment(await answer.text());
      const fresh = page.querySelector("[data-models]");
      if (!fresh) throw new Error("HTTP " + answer.status);
      const errors = ["endpoint", "key", "model"].map((id) => [id, page.getElementById(id + "-error")?.textContent.trim() || ""]);
      if (errors.some(([, text]) => text)) state.textContent = "";
      else models.replaceChildren(...fresh.childNodes);
      for (const [id, text] of errors) message(id, text);
      enhance(models);
    } catch (err) {
      state.textContent = "The portal did not answer. Try again.";
      console.info("models:", err);
    } finally {
      models.removeAttribute("aria-busy");
    }
  }
  models?.addEventListener("click", (event) => {
    if (!event.target.closest("[data-models-button]")) return;
    event.preventDefault();
    listModels();
  });
  form.querySelector("#key")?.addEventListener("change", (event) => {
    const address = form.querySelector("#endpoint")?.value || "";
    if (event.target.value && address && askedModels !== address + " " + event.target.value) listModels();
  });

  // ---- trying it ----
  form.addEventListener("keydown", (event) => {
    if (event.target.id !== "try" || event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    if (matchMedia("(hover: none) and (pointer: coarse)").matches && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    form.querySelector("[data-try-button]")?.click();
  });

  form.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!button || !("tryButton" in button.dataset)) return;
    event.preventDefault();
    const box = button.closest("[data-try]");
    const state = box.querySelector("[data-try-state]");
    if (box.getAttribute("aria-busy") === "true") return;
    box.setAttribute("aria-busy", "true");
    state.textContent = "It is thinking …";
    try {
      const answer = await fetch(button.formAction, { method: "POST", body: new FormData(form), headers: { Accept: "text/html" } });
      const page = fragment(await answer.text());
      const fresh = page.querySelector("[data-try]");
      if (!fresh) throw new Error("HTTP " + answer.status);
      const summary = page.querySelector(".notice-error");
      box.replaceChildren(...fresh.childNodes);
      enhance(box);
      const tries = box.querySelector(".tries");
      if (tries) tries.scrollTop = tries.scrollHeight;
      // The problem that prevents a try is shown here and beside its field.
      for (const wrong of page.querySelectorAll("[data-agent-form] [aria-invalid]")) {
        const text = page.getElementById(wrong.id + "-error")?.textContent.trim();
        if (!wrong.id || wrong.id === "try" || !text) continue;
        touched.add(wrong.id);
        message(wrong.id, text);
      }
      if (summary && !box.querySelector("#try-error")) {
        summary.removeAttribute("data-focus");
        box.querySelector(".try-go").before(summary);
      }
      box.querySelector("#try")?.focus();
    } catch (err) {
      state.textContent = "The portal did not answer. Try again.";
      console.info("try:", err);
    } finally {
      box.removeAttribute("aria-busy");
    }
  });
})();
