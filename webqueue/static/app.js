// What htmx does not do: when to poll, relative times, the confirmation, following a log. No page needs it to work.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const UNANSWERED_AFTER = 14000; // whoever looks at a server that stopped is told within 15 s

  // What is written here, in the language of the page.
  const words = JSON.parse(document.querySelector("meta[name=webqueue-words]")?.content || "{}");
  const say = (name, values) => (words[name] || "").replace(/\{(\w+)\}/g, (_, key) => values[key]);

  // A computer whose clock is wrong would tell wrong times. A page takes less than 30 s to arrive.
  const behind = Date.parse(document.querySelector("meta[name=webqueue-now]")?.content) - Date.now();
  const now = () => Date.now() + (Math.abs(behind) > 30000 ? behind : 0);

  // Polling: soon while something runs, seldom else, never in a hidden tab.
  let timer = 0, silence = 0, polling = false, answeredAt = now(), failed = false;

  const clock = (at) => at.toISOString().slice(11, 19) + " UTC";
  const showUpdated = () => {
    const place = byId("updated");
    if (!place || !byId("poll")) return;
    const late = failed || now() - answeredAt >= UNANSWERED_AFTER;
    place.hidden = false;
    place.className = late ? "late" : "";
    place.textContent = say(late ? "late" : "updated", { time: clock(new Date(answeredAt)) });
  };
  const answered = () => {
    answeredAt = now();
    clearTimeout(silence);
    silence = setTimeout(() => { if (!document.hidden) showUpdated(); }, UNANSWERED_AFTER);
  };
  const seconds = () => Number(byId("poll")?.dataset.seconds || 10);
  const schedule = () => {
    clearTimeout(timer);
    if (byId("poll") && !document.hidden) timer = setTimeout(poll, seconds() * 1000);
  };
  const poll = () => {
    clearTimeout(timer);
    const element = byId("poll");
    if (!element || document.hidden) return;
    if (polling) return void schedule();
    polling = true;
    htmx.trigger(element, "webqueue:poll");
  };
  let typed = false;
  addEventListener("input", () => { typed = true; });
  const isPoll = (event) => event.detail?.ctx?.sourceElement?.id === "poll";
  document.addEventListener("htmx:after:request", (event) => {
    if (!isPoll(event)) return;
    const { response } = event.detail.ctx;
    if (!typed && response.headers.get("Webqueue-Outdated")) location.reload();
    failed = response.status >= 500;
    if (!failed) answered();
  });
  document.addEventListener("htmx:error", (event) => {
    if (isPoll(event)) failed = true;
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (!isPoll(event)) return;
    polling = false;
    showUpdated();
    schedule();
  });
  document.addEventListener("webqueue:changed", () => { polling = false; poll(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });

  // Relative times, in the words of the server (webqueue/web/formats.py).
  const relative = (at) => {
    const distance = (at - now()) / 1000, size = Math.abs(distance);
    if (size < 5) return say(distance >= 0 ? "now" : "justNow");
    let text;
    if (size < 60) text = say("s", { s: Math.floor(size) });
    else if (size < 3600) text = say("min", { min: Math.floor(size / 60) });
    else if (size < 86400) {
      const hours = Math.floor(size / 3600), minutes = Math.floor((size % 3600) / 60);
      text = say(hours < 6 && minutes ? "hMin" : "h", { h: hours, min: String(minutes).padStart(2, "0") });
    } else text = say("d", { d: Math.floor(size / 86400) });
    return say(distance > 0 ? "ahead" : "ago", { time: text });
  };
  const showTimes = () => {
    for (const time of document.querySelectorAll("time[data-relative]")) {
      const text = relative(Date.parse(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(() => { if (!document.hidden) { showTimes(); showUpdated(); } }, 5000);

  // Confirmation: a dialog, and then a copy of the same button of the same form.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-confirm]");
    const dialog = byId("confirm");
    if (!button || !dialog || !button.form || button.form.elements.confirmed?.value === "yes") return;
    event.preventDefault();
    event.stopPropagation();
    byId("confirm-text").textContent = button.dataset.confirm;
    byId("confirm-yes").textContent = button.dataset.yes;
    dialog.returnValue = "";
    // What is pressed is what was asked: an update may meanwhile take the button away, or make it another row's.
    const form = button.form, asked = button.cloneNode();
    asked.removeAttribute("id");
    asked.hidden = true;
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") return;
      const present = form.isConnected ? form : byId(form.id);
      if (!present) return;
      present.append(asked);
      present.elements.confirmed.value = "yes";
      try { present.requestSubmit(asked); }
      finally { present.elements.confirmed.value = ""; asked.remove(); }
    }, { once: true });
    dialog.showModal();
  }, true);

  // The log: follows while the box is ticked.
  const follow = () => {
    const log = byId("log");
    if (log && byId("follow")?.checked) log.scrollTop = log.scrollHeight;
  };
  document.addEventListener("htmx:after:swap", () => { showTimes(); follow(); fade(); });

  // Good news goes by itself, bad news stays until the next action.
  const fade = () => {
    for (const toast of document.querySelectorAll("#status .toast.good:not([data-seen])")) {
      toast.dataset.seen = "1";
      // Not while somebody reads it, or is about to follow its link.
      const leave = () => toast.matches(":hover, :focus-within") ? setTimeout(leave, 3000) : toast.remove();
      setTimeout(leave, 12000);
    }
  };

  // Keys: never in a field, beside Ctrl, Alt or Meta, over a dialog, or in the settings.
  let before = "";
  const press = (row, names) => {
    const place = row || document.querySelector("main .head");
    place?.querySelector(names.map((name) => `button[id^="${name}"]`).join())?.click();
  };
  const move = (row, step) => {
    const rows = [...document.querySelectorAll("main tbody tr:has(a)")];
    const next = rows[row ? rows.indexOf(row) + step : 0];
    next?.querySelector("a").focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    const { key, target } = event, main = byId("main");
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !byId("key-help")) return;
    if (target.closest?.("input, textarea, select, [contenteditable], dialog") || document.querySelector("dialog[open]")) return;
    const row = target.closest?.("main tbody tr");
    if (before === "g") document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`)?.click();
    else if (key === "?") byId("key-help").showModal();
    else if (key === "/") {
      const field = main.querySelector("form[method=get] :is([type=search], [type=text])");
      if (!field) return;
      field.closest("details")?.setAttribute("open", "");
      field.focus();
      event.preventDefault();
    } else if (key === "j" || key === "k") move(row, key === "j" ? 1 : -1);
    else if ("rxp".includes(key) && byId("key-help").dataset.denied) {
      const toast = document.createElement("p");
      toast.className = "toast bad";
      toast.textContent = byId("key-help").dataset.denied;
      byId("status").replaceChildren(toast);
    } else if (key === "r") press(row, ["run", "retry"]);
    else if (key === "x") press(row, ["cancel"]);
    else if (key === "p") press(row, ["pause", "resume"]);
    before = before === "g" ? "" : key;
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (byId("follow-label")) byId("follow-label").hidden = false;
    answered(); showTimes(); showUpdated(); follow(); fade(); schedule();
  });
})();
