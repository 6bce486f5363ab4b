// The review page: lists documents, shows one, saves every correction at once. What could not be saved yet waits in the
// browser's storage and is sent again.
import { Pages, colour, inOrder } from "./pages.js";

const at = (id) => document.getElementById(id);
const WAITING = `dx-waiting:${location.pathname}`;
let project, names, list = [], shown = [], found = null, active = 0;
const undone = [];
const pages = new Pages(at("pages"), choose);

function say(text, bad = false) {
  at("status").textContent = text;
  at("status").classList.toggle("bad", bad);
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body) };
  const answer = await fetch(`api/${path}`, options);
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error), { status: answer.status, value });
  return value;
}

// --- documents -----------------------------------------------------------------------------------------------------

async function refresh() {
  list = await ask("documents");
  list.forEach((line, number) => { line.number = number; });
  filter();
}

function filter() {
  const text = at("search").value.toLowerCase(), kind = at("filter").value, field = at("field-filter").value;
  const has = (fields) => (field ? fields.includes(field) : fields.length > 0);
  const tests = { all: () => true, disagree: (l) => l.disagree !== null && has(l.disagree), low: (l) =>
    l.confidence !== null, open: (l) => has(l.open), todo: (l) => (field ? !l.reviewed.includes(field) :
    !l.reviewed.length), done: (l) => has(l.reviewed) };
  shown = list.filter((line) => line.id.toLowerCase().includes(text) && tests[kind](line));
  if (kind === "low") shown.sort((a, b) => a.confidence - b.confidence || a.number - b.number);
  const left = project.model ? list.filter((line) => line.confidence === null && line.disagree === null).length : 0;
  at("count").textContent = `${shown.length} of ${list.length} documents${left ? `; ${left} not predicted yet` : ""}`;
  at("documents").replaceChildren(...shown.slice(0, 2000).map((line) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    const id = Object.assign(document.createElement("span"), { className: "id", textContent: line.id });
    const marks = [line.reviewed.length ? `✓${line.reviewed.length}` : "", line.disagree?.length ?
      `≠${line.disagree.length}` : "", line.confidence === null ? "" : line.confidence.toFixed(2)];
    const told = Object.assign(document.createElement("span"), { className: "marks", textContent: marks.join(" ") });
    told.title = "fields corrected, fields where label and prediction differ, lowest confidence";
    button.append(id, told);
    button.setAttribute("aria-current", String(found?.number === line.number));
    button.addEventListener("click", () => show(line.number));
    item.append(button);
    return item;
  }));
}

async function show(number) {
  try {
    found = await ask(`document/${number}`);
  } catch (error) {
    say(error.message, true);
    return;
  }
  pages.draw(found, names);
  panel();
  filter();
  at("documents").querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  history.replaceState(null, "", `#${number}`);
}

function step(by) {
  const place = shown.findIndex((line) => line.number === found?.number);
  const next = shown[place < 0 ? 0 : place + by];
  if (next) show(next.number);
}

// --- fields --------------------------------------------------------------------------------------------------------

function panel() {
  at("document").textContent = found.id;
  at("problem").textContent = found.problem ?? "";
  at("fields").replaceChildren(...names.map((name, index) => {
    const item = document.createElement("li"), field = found.fields[name], guess = found.predictions?.[name];
    item.style.borderLeftColor = colour(index);
    item.classList.toggle("active", index === active);
    const title = Object.assign(document.createElement("button"), { type: "button", className: "name" });
    title.append(`${index < 9 ? `${index + 1} ` : ""}${name} `, Object.assign(document.createElement("span"),
      { className: "type", textContent: project.fields[index].type + (project.fields[index].repeated ? ", repeated" : "") }));
    title.setAttribute("aria-pressed", String(index === active));
    title.addEventListener("click", () => pick(index));
    item.append(title, ...(field.values.length ? field.values.map((v) => line("value", v.value ?? "(no text)",
      [v.outcome, ...v.how].join(", "), v.contested || ["absent", "scattered"].includes(v.outcome))) :
      [line("value none", "no value", field.revision ? "said by hand" : "")]));
    const row = Object.assign(document.createElement("div"), { className: "row" });
    if (guess) {
      const text = Array.isArray(guess.value) ? guess.value.join(" | ") : guess.value;
      const sure = guess.confidence === null ? "" : guess.confidence.toFixed(3);
      item.append(line("how", `predicted: ${text || "no value"}`, sure));
      row.append(act("Take prediction", () => accept(index)));
    }
    if (field.values.length) row.append(act("No value", () => save(index, null)));
    item.append(row);
    return item;
  }));
  at("undo").disabled = !undone.length;
}

function line(kind, text, how, warn = false) {
  const element = Object.assign(document.createElement("div"), { className: kind });
  element.append(text, " ", Object.assign(document.createElement("span"),
    { className: warn ? "how warn" : "how", textContent: how }));
  return element;
}

function act(text, work) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.addEventListener("click", work);
  return button;
}

function pick(index) {
  if (index >= names.length) return;
  active = index;
  panel();
  at("fields").children[index].scrollIntoView({ block: "nearest" });
}

// --- corrections ---------------------------------------------------------------------------------------------------

const value = (page, words) => {
  const order = inOrder(found.pages[page], words);
  return { value: order.map((w) => found.pages[page].words[w][0]).join(" "), words: order, page };
};

// Words dragged over are the value; a clicked word is the value, or joins it (Shift), or leaves it when it is part of it.
// A repeated field keeps its other values.
function choose(page, words, single, more) {
  const field = found.fields[names[active]], repeated = project.fields[active].repeated;
  const own = field.values.flatMap((v) => v.runs.map((run) => ({ page: v.page, words: run })));
  const hit = own.find((v) => v.page === page && words.some((w) => v.words.includes(w)));
  const joined = more ? own.findLast((v) => v.page === page) : undefined;
  let next = words;
  if (single && hit) next = hit.words.filter((w) => w !== words[0]);
  else if (joined) next = [...new Set([...joined.words, ...words])];
  const kept = repeated ? own.filter((v) => v !== hit && v !== joined) : [];
  const all = [...kept, ...(next.length ? [{ page, words: next }] : [])].map((v) => value(v.page, v.words));
  return save(active, all.length ? (repeated ? all : all[0]) : null);
}

function accept(index) {
  const guess = found.predictions?.[names[index]];
  if (!guess) return;
  const all = guess.places.map((p) => value(p.page, p.words));
  save(index, all.length ? (project.fields[index].repeated ? all : all[0]) : null);
}

async function save(index, next, number = found.number, undoing = false) {
  const name = names[index], before = number === found.number ? found.fields[name] : null;
  const revision = before ? before.revision : (await ask(`document/${number}`)).fields[name].revision;
  const change = { number, id: list[number].id, field: name, revision, value: next };
  keep(change);
  say("saving …");
  if (await send(change) && !undoing && before)
    undone.push({ number, index, value: before.given === undefined ? null : before.given });
  if (found.number === number) panel();
}

async function send(change) {
  try {
    const answer = await ask(`document/${change.number}/field`, { field: change.field, revision: change.revision,
      value: change.value });
    drop(change);
    Object.assign(list[change.number], answer.line);
    if (found?.number === change.number) {
      found = answer;
      pages.marks(found, names);
    }
    filter();
    say(`saved: ${change.field} of ${change.id}`);
    return true;
  } catch (error) {
    if (error.status) {
      drop(change);
      say(error.status === 409 ? `${change.field} was changed in another window: look at it and do yours again` :
        `not saved: ${error.message}`, true);
      if (found?.number === change.number) await show(change.number);
    } else say("not saved yet: the server does not answer; it is tried again", true);
    return false;
  }
}

const waiting = () => JSON.parse(localStorage.getItem(WAITING) ?? "[]");
const store = (changes) => localStorage.setItem(WAITING, JSON.stringify(changes));
const same = (a, b) => a.id === b.id && a.field === b.field && a.revision === b.revision;
const keep = (change) => store([...waiting().filter((c) => !same(c, change)), change]);
const drop = (change) => store(waiting().filter((c) => !same(c, change)));

async function resend() {
  for (const change of waiting()) if (list[change.number]?.id === change.id) await send(change);
}

function undo() {
  const last = undone.pop();
  if (!last) return;
  if (found.number !== last.number) show(last.number).then(() => save(last.index, last.value, last.number, true));
  else save(last.index, last.value, last.number, true);
}

// --- keys ----------------------------------------------------------------------------------------------------------

const KEYS = {
  j: () => step(1), k: () => step(-1), a: () => accept(active), x: () => save(active, null), u: undo,
  f: () => at("search").focus(), "?": () => at("keys").showModal(),
  ArrowLeft: () => pages.move(-1, 0), ArrowRight: () => pages.move(1, 0), ArrowUp: () => pages.move(0, -1),
  ArrowDown: () => pages.move(0, 1),
  Enter: (event) => pages.cursor && choose(pages.cursor.number, [pages.cursor.word], true, event.shiftKey),
};

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (at("keys").open || (event.key === "Enter" && event.target.matches("button"))) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z") undo();
  else if (event.ctrlKey || event.metaKey || event.altKey || !found) return;
  else if (/^[1-9]$/.test(event.key)) pick(Number(event.key) - 1);
  else if (KEYS[event.key]) KEYS[event.key](event);
  else return;
  event.preventDefault();
});

at("undo").addEventListener("click", undo);
at("help").addEventListener("click", () => at("keys").showModal());
for (const id of ["search", "filter", "field-filter"]) at(id).addEventListener("input", filter);
addEventListener("beforeunload", (event) => { if (waiting().length) event.preventDefault(); });

project = await ask("project");
names = project.fields.map((field) => field.name);
document.title = `${project.name} – dx review`;
at("name").textContent = project.name;
at("field-filter").append(...names.map((name) => new Option(name, name)));
if (project.problems.length) say(`${project.problems.length} documents could not be read: ${project.problems[0]}`, true);
await refresh();
await resend();
if (list.length) await show(Math.min(Number(location.hash.slice(1)) || 0, list.length - 1));
setInterval(async () => {
  try {
    if (waiting().length) await resend();
    if (project.model && list.some((line) => line.confidence === null)) await refresh();
  } catch { /* the next round says whether the server is back */ }
}, 3000);
