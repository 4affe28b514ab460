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
  byId("ask").querySelector(".main").textContent = "Ask anew"; // the box below the answer goes on from it
  const response = await fetch("/runs", {
    method: "POST", body: fields, headers: { "X-WebRAG-Fragment": "1" },
  });
  if (!response.ok) return show(await response.text());
  const { run } = await response.json();
  history.pushState(null, "", run);
  show(await fragment(run));
}

// Threads are kept by this browser alone: each question and its answer as it was shown.
const shelf = `webrag-threads:${document.querySelector("meta[name=collection]").content}`;
const stored = (name) => { try { return JSON.parse(localStorage.getItem(name)) || []; } catch { return []; } };
const threads = () => stored(shelf);

function keep(all) {
  for (let most = 50; most >= 0; most -= 5) { // the browser takes some five megabytes
    try { localStorage.setItem(shelf, JSON.stringify(all.slice(0, most))); break; } catch { continue; }
  }
  listThreads();
}

async function remember(answer) {
  const { run, after } = answer.dataset;
  const form = answer.querySelector(".follow");
  const fields = form ? [...new FormData(form)].filter(([name]) => name !== "q") : [];
  const copy = answer.cloneNode(true);
  copy.querySelectorAll("form, .tools, section:has(> .next)").forEach((each) => each.remove());
  copy.querySelectorAll("[data-stored]").forEach((link) => { link.href = link.dataset.stored; });
  const markdown = await fragment(`/runs/${run}/markdown`);
  if (stored(`${shelf}:deleted`).some((each) => each === run || each === after)) return;
  const turn = { run, question: copy.querySelector("h2").textContent, html: copy.innerHTML, fields };
  const all = threads();
  let own = all.find((each) => each.turns.some((one) => one.run === run));
  if (!own) {
    const before = all.find((each) => each.turns.some((one) => one.run === after));
    const turns = before ? before.turns.slice(0, before.turns.findIndex((one) => one.run === after) + 1) : [];
    own = before && turns.length === before.turns.length ? before : { id: run, turns };
    own.turns = [...turns, turn];
    own.markdown = markdown;
  }
  keep([own, ...all.filter((each) => each.id !== own.id)]);
}

function listThreads() {
  const list = byId("threads");
  if (!list) return;
  const all = threads();
  list.hidden = !all.length;
  list.querySelector("ul").replaceChildren(...all.map(({ id, turns }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const remove = document.createElement("button");
    link.href = `/threads/${id}`;
    link.dir = "auto";
    link.textContent = turns[0].question;
    if (location.pathname === link.pathname) link.setAttribute("aria-current", "page");
    remove.type = "button";
    remove.dataset.deleteThread = id;
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Delete the thread ${turns[0].question}`);
    item.append(link, remove);
    return item;
  }));
}

function showThread(place) {
  const found = threads().find((each) => each.id === place.dataset.thread);
  const turns = place.querySelector(".turns");
  if (!found) {
    turns.innerHTML = '<div class="notice"><p>This thread is not kept in this browser: it was deleted, or asked in another one.</p></div>';
    return;
  }
  turns.replaceChildren(...found.turns.map(({ html, question }) => {
    const article = document.createElement("article");
    article.className = "answer";
    article.setAttribute("aria-label", question);
    article.innerHTML = html; // as our own server rendered it
    article.querySelectorAll("[id]").forEach((each) => each.removeAttribute("id"));
    article.querySelectorAll("[aria-labelledby]").forEach((each) => each.removeAttribute("aria-labelledby"));
    return article;
  }));
  const last = found.turns.at(-1);
  const kept = [...last.fields.filter(([name]) => name !== "after"), ["after", last.run], ["about", found.turns.map((one) => one.question).join("\n")]];
  place.querySelector(".kept").replaceChildren(...kept.map(([name, value]) => {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    return field;
  }));
  place.querySelector("[data-save-thread]").href = URL.createObjectURL(new Blob([found.markdown || ""], { type: "text/markdown" }));
  document.title = `${found.turns[0].question.slice(0, 80)} \u2013 WebRAG`;
  place.querySelectorAll("[hidden]").forEach((each) => { each.hidden = false; });
}

function deleteThread(id) {
  const all = threads();
  const runs = all.filter((each) => each.id === id).flatMap((each) => each.turns.map((one) => one.run));
  localStorage.setItem(`${shelf}:deleted`, JSON.stringify([...runs, ...stored(`${shelf}:deleted`)].slice(0, 500)));
  keep(all.filter((each) => each.id !== id));
  const { run, after } = document.querySelector("[data-run]")?.dataset || {};
  if (byId("thread")?.dataset.thread === id || runs.includes(run) || runs.includes(after)) location.assign("/");
}

function watch(root) {
  const answer = root.querySelector("article.answer[data-run]");
  if (answer) remember(answer);
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
    const typed = document.activeElement === byId("q");
    show(await fragment(section.dataset.self));
    if (typed) byId("further")?.focus({ preventScroll: true }); // what is typed next goes on from here
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
  const within = opener?.closest(".answer") || document; // another turn of a thread has numbers too
  const chips = [...within.querySelectorAll(".chip")].filter((chip) => chip.textContent === number);
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
  button.lastElementChild.textContent = label;
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
  } else if (event.target.closest("[data-delete-thread]")) {
    deleteThread(event.target.closest("[data-delete-thread]").dataset.deleteThread);
  } else if (event.target.closest("[data-copy-thread]")) {
    const { thread } = byId("thread").dataset;
    await navigator.clipboard.writeText(threads().find((each) => each.id === thread)?.markdown || "");
    event.target.textContent = "Copied";
    say("Copied.");
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
  if (["q", "further", "add-url"].includes(event.target.id) && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
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
listThreads();
if (byId("thread")) showThread(byId("thread"));
// A run is kept as long as the server runs, a thread longer.
const lost = location.pathname.startsWith("/runs/") && document.querySelector(".notice.bad")
  && threads().find((each) => each.turns.some((one) => location.pathname === `/runs/${one.run}`));
if (lost && !document.querySelector("[data-run]")) location.replace(`/threads/${lost.id}`);
if (location.hash.startsWith("#c")) goTo(byId(location.hash.slice(1)));
