// Makes answers arrive as they are made and opens citations beside them; everything works without.
"use strict";
const byId = (id) => document.getElementById(id);
const csrf = document.querySelector("meta[name=csrf]").content;
const still = matchMedia("(prefers-reduced-motion: reduce)");
let asking = null;
let opener = null;

async function fragment(address, options = {}) {
  const headers = { "X-WebRAG-Fragment": "1", ...options.headers };
  const response = await fetch(address, { ...options, headers });
  return response.text();
}

function say(text) {
  const said = byId("said");
  if (said) said.textContent = text;
}

function show(html) {
  byId("result").innerHTML = html; // rendered by our own server, everything in it escaped
  watch(byId("result"));
}

async function ask(fields) {
  fields.set("csrf", csrf);
  closeReader();
  document.querySelector(".where").open = false;
  document.querySelector(".recent")?.remove();
  const response = await fetch("/runs", {
    method: "POST", body: fields, headers: { "X-WebRAG-Fragment": "1" },
  });
  if (!response.ok) return show(await response.text());
  const { run } = await response.json();
  history.pushState(null, "", run);
  show(await fragment(run));
}

function watch(root) {
  const section = root.querySelector("[data-events]");
  asking?.close();
  clearInterval(watch.timer);
  if (!section) return;
  const rounds = section.querySelector(".rounds");
  const now = section.querySelector(".now");
  const clock = section.querySelector(".clock");
  const began = Date.now() - 1000 * (section.dataset.seconds || 0);
  const tick = () => {
    const spent = Math.round((Date.now() - began) / 1000);
    const left = section.dataset.limit - spent;
    clock.textContent = ` ${spent} s${left > 0 ? `, searching for ${left} s more at most` : ""}`;
  };
  if (clock) watch.timer = setInterval(tick, 1000);
  const source = asking = new EventSource(section.dataset.events);
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  let told = 0;
  const line = (text, className) => {
    const item = document.createElement("li");
    item.textContent = text;
    if (className) item.className = className;
    rounds.append(item);
    if (rounds.children.length > 200) rounds.firstElementChild.remove();
    rounds.scrollTop = rounds.scrollHeight;
  };
  const state = (text) => {
    now.firstChild.textContent = text;
    if (Date.now() - told > 4000) { told = Date.now(); say(text); }
  };
  on("step", ({ text }) => { line(text, "step"); state(text); });
  on("line", ({ text, round, failed }) => {
    line(round ? `Round ${round}: ${text}` : text, failed ? "failed" : "");
  });
  on("progress", ({ text }) => state(text));
  on("part", ({ text }) => {
    const part = document.createElement("p");
    part.dir = "auto";
    part.textContent = text;
    section.querySelector(".arriving")?.append(part);
  });
  on("end", async ({ state: ended }) => {
    source.close();
    clearInterval(watch.timer);
    show(await fragment(section.dataset.self));
    say({ done: "Ready.", stopped: "Cancelled.", failed: "That did not work." }[ended]);
  });
}

function closeReader() {
  const reader = byId("reader");
  if (!reader || reader.hidden) return;
  reader.hidden = true;
  reader.replaceChildren();
  document.body.classList.remove("is-reading");
  document.querySelectorAll(".chip[aria-current]").forEach((e) => e.removeAttribute("aria-current"));
  opener?.focus();
}

async function openReader(link) {
  const reader = byId("reader");
  const html = await fragment(link.href);
  opener = link;
  document.querySelectorAll(".chip[aria-current]").forEach((e) => e.removeAttribute("aria-current"));
  link.setAttribute("aria-current", "true");
  reader.innerHTML = html; // as above
  reader.hidden = false;
  document.body.classList.add("is-reading");
  const mark = byId(link.hash.slice(1)) || reader.querySelector(".stored");
  goTo(mark);
}

function goTo(mark) {
  if (!mark) return;
  document.querySelector("mark.current")?.classList.remove("current");
  mark.classList.add("current");
  point(mark.id.slice(1));
  const behavior = still.matches ? "auto" : "smooth";
  const reader = mark.closest("#reader");
  if (reader) { // the page around it stays where it is
    const place = mark.getBoundingClientRect().top - reader.getBoundingClientRect().top;
    reader.scrollBy({ top: place - reader.clientHeight / 2, behavior });
  } else {
    mark.scrollIntoView({ block: "center", behavior });
  }
  mark.focus({ preventScroll: true });
}

function point(number) { // chip, mark and tools mean the same citation
  const tools = [...document.querySelectorAll(".at")];
  if (!tools.some((each) => each.dataset.at === number)) return;
  if (tools.some((each) => each.hidden === (each.dataset.at === number))) byId("verified").textContent = "";
  tools.forEach((each) => { each.hidden = each.dataset.at !== number; });
  document.querySelectorAll(".chip[aria-current]").forEach((e) => e.removeAttribute("aria-current"));
  const chips = [...document.querySelectorAll(".chip")].filter((chip) => chip.textContent === number);
  chips.forEach((chip) => chip.setAttribute("aria-current", "true"));
  if (chips.length && !chips.includes(opener)) opener = chips[0];
}

function step(by) {
  const marks = [...document.querySelectorAll(".stored mark[id]")];
  if (!marks.length) return;
  const at = marks.indexOf(document.querySelector("mark.current"));
  goTo(marks[at < 0 ? 0 : (at + by + marks.length) % marks.length]);
}

function switchTheme(button) {
  const themes = { "": ["light", "Light"], light: ["dark", "Dark"], dark: ["", "Auto"] };
  const [theme, label] = themes[document.documentElement.dataset.theme];
  document.documentElement.dataset.theme = theme;
  document.cookie = `webrag_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
  button.textContent = label;
  button.setAttribute("aria-label", `Colours: ${theme || "as the system"}`);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.id === "ask" && byId("q").value.trim()) {
    event.preventDefault();
    await ask(new FormData(form));
  } else if ("follow" in form.dataset && form.elements.q.value.trim()) {
    event.preventDefault();
    byId("q").value = "";
    await ask(new FormData(form));
  } else if ("quiet" in form.dataset) {
    event.preventDefault();
    await fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" });
  } else if (form.dataset.into) {
    event.preventDefault();
    const into = byId(form.dataset.into);
    into.textContent = "Fetching the live page…";
    into.innerHTML = await fragment(form.action, { method: "POST", body: new FormData(form) });
  }
});

document.addEventListener("click", async (event) => {
  const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
  const link = event.target.closest("a");
  if (link && plain && "read" in link.dataset && byId("reader")) {
    event.preventDefault();
    await openReader(link);
  } else if (link && plain && "ask" in link.dataset) {
    event.preventDefault();
    const values = new URL(link.href).searchParams;
    byId("q").value = values.get("q");
    const fields = new FormData();
    values.forEach((value, name) => fields.append(name, value));
    await ask(fields);
  } else if (link && plain && "copy" in link.dataset && navigator.clipboard) {
    event.preventDefault();
    await navigator.clipboard.writeText(await fragment(link.href));
    link.textContent = "Copied";
    say("Copied.");
  } else if (link && "inside" in link.dataset) {
    event.preventDefault();
    byId(link.hash.slice(1))?.scrollIntoView({ block: "start" });
  } else if (event.target.closest("[data-step]")) {
    step(Number(event.target.closest("[data-step]").dataset.step));
  } else if (event.target.closest("[data-close]")) {
    closeReader();
  } else if (event.target.closest("[data-theme-switch]")) {
    switchTheme(event.target.closest("[data-theme-switch]"));
  }
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (["q", "further"].includes(event.target.id) && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    event.target.form.requestSubmit();
  } else if (event.key === "Escape") {
    closeReader();
  } else if (!typing && (event.key === "j" || event.key === "k")) {
    step(event.key === "j" ? 1 : -1);
  }
});

addEventListener("popstate", () => location.reload());
document.documentElement.classList.add("scripted");
watch(document);
if (location.hash.startsWith("#c")) goTo(byId(location.hash.slice(1)));
