// Fills, filters and searches the list of records, and lets the grid be read cell by cell.
// Text from the server only ever becomes a text node.
"use strict";
(() => {
  const source = document.getElementById("record-data");
  if (!source) return;
  const { columns, rows } = JSON.parse(source.textContent);
  const at = Object.fromEntries(columns.map((name, place) => [name, place]));
  const element = (id) => document.getElementById(id);
  const form = element("filter"), body = element("list").tBodies[0], more = element("more");
  const field = Object.fromEntries(["search", "which", "label", "session", "turn", "order"].map((id) => [id, element(id)]));
  const PAGE = 100;
  const haystacks = new Array(rows.length);
  let found = [], shown = 0;

  const haystack = (place) => {
    const row = rows[place];
    return (haystacks[place] ??= [row[at.id], row[at.label], row[at.also], row[at.kind], row[at.finish], row[at.why], row[at.text]].join("\n").toLowerCase());
  };
  const isFailed = (row) => row[at.family] === "failure";
  const passes = (place) => {
    const row = rows[place], which = field.which.value;
    if (which === "corrupted" && !row[at.corrupted]) return false;
    if (which === "wrong" && !row[at.corrupted] && !isFailed(row)) return false;
    if (which === "clean" && row[at.label] !== "clean") return false;
    if (field.label.value && row[at.label] !== field.label.value) return false;
    if (field.session.value.trim() && String(row[at.session]) !== field.session.value.trim()) return false;
    if (field.turn.value && String(row[at.turn]) !== field.turn.value) return false;
    const words = field.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.every((word) => haystack(place).includes(word));
  };

  const add = (parent, name, text, style) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null && text !== "") made.textContent = text;
    if (style) made.className = style;
    parent.append(made);
    return made;
  };
  const number = (value, unit = "") => (value === null ? "–" : value.toLocaleString("en-US") + unit);
  const addRow = (row) => {
    const line = add(body, "tr");
    add(line, "th", row[at.id]).scope = "row";
    add(line, "td", row[at.also] ? `${row[at.label]}, also ${row[at.also]}` : row[at.label]);
    add(line, "td", row[at.kind]);
    for (const name of ["prompt", "cached", "in_flight"]) add(line, "td", number(row[at[name]]), "number");
    add(line, "td", number(row[at.sent_s], " s"), "number");
    for (const name of ["ttft_ms", "e2e_ms"]) add(line, "td", number(row[at[name]], " ms"), "number");
    const last = add(line, "td");
    if (row[at.why]) add(last, "div", row[at.why], "why");
    if (row[at.text]) {
      const details = add(last, "details");
      add(details, "summary", `reply of ${row[at.id]}${row[at.finish] ? `, ${row[at.finish]}` : ""}`);
      add(details, "pre", row[at.text]).tabIndex = 0;
    }
  };
  const showMore = () => {
    const until = Math.min(found.length, shown + PAGE);
    while (shown < until) addRow(rows[found[shown++]]);
    more.hidden = shown >= found.length;
    element("shown").textContent = `${found.length.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} records match` + (shown < found.length ? `; the first ${shown} are shown.` : ".");
  };
  const refresh = () => {
    found = [];
    for (let place = 0; place < rows.length; place++) if (passes(place)) found.push(place);
    const key = at[field.order.value];
    if (key !== undefined) found.sort((a, b) => (rows[b][key] ?? -1) - (rows[a][key] ?? -1));
    body.replaceChildren();
    shown = 0;
    showMore();
  };

  form.hidden = false;
  element("list").hidden = false;
  for (const note of document.querySelectorAll(".script-only")) note.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", refresh);
  form.addEventListener("reset", () => setTimeout(refresh));
  more.addEventListener("click", showMore);
  refresh();

  const grid = element("grid");
  if (!grid) return;
  const facts = JSON.parse(grid.dataset.facts), cursor = element("grid-cursor"), status = element("grid-status");
  const drawing = grid.querySelector("svg"), region = grid.querySelector(".scroll");
  const rowAt = new Map(rows.map((row) => [`${row[at.session]}/${row[at.turn]}`, row]));
  let here = { place: 0, turn: 0 };
  const go = (place, turn) => {
    here = { place: Math.max(0, Math.min(facts.sessions.length - 1, place)), turn: Math.max(0, Math.min(facts.turns - 1, turn)) };
    const session = facts.sessions[here.place], row = rowAt.get(`${session}/${here.turn}`);
    cursor.setAttribute("x", facts.left + (here.place % facts.across) * facts.cell_width - 0.5);
    cursor.setAttribute("y", facts.top + Math.floor(here.place / facts.across) * facts.band + here.turn * facts.cell_height - 0.5);
    cursor.setAttribute("width", facts.cell_width);
    cursor.setAttribute("height", facts.cell_height);
    status.textContent = `Session ${session}, turn ${here.turn}: ` + (row ? row[at.label] + (row[at.also] ? `, also ${row[at.also]}` : "") + (row[at.why] ? `; ${row[at.why].slice(0, 160)}` : "") : "nothing listed");
  };
  const list = () => {
    form.reset();
    field.session.value = facts.sessions[here.place];
    field.turn.value = here.turn;
    // The reset's own refresh runs after this one and sees the same fields.
    setTimeout(() => { refresh(); element("records").scrollIntoView(); field.session.focus(); });
  };
  const cellOf = (event) => {
    const box = drawing.getBoundingClientRect(), scale = drawing.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale - facts.left, y = (event.clientY - box.top) * scale - facts.top;
    const across = Math.floor(x / facts.cell_width), band = Math.floor(y / facts.band);
    const turn = Math.floor((y - band * facts.band) / facts.cell_height);
    const place = band * facts.across + across;
    return x < 0 || y < 0 || across >= facts.across || turn >= facts.turns || place >= facts.sessions.length ? null : { place, turn };
  };
  drawing.addEventListener("pointermove", (event) => { const cell = cellOf(event); if (cell) go(cell.place, cell.turn); });
  drawing.addEventListener("click", (event) => { const cell = cellOf(event); if (cell) { go(cell.place, cell.turn); list(); } });
  region.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Enter") list();
    else if (steps[event.key]) go(here.place + steps[event.key][0], here.turn + steps[event.key][1]);
    else return;
    event.preventDefault();
  });
})();
