"use strict";

// The theme is the system's until the button is pressed.
const root = document.documentElement;
const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
theme.hidden = false;
nameTheme();
dark.addEventListener("change", nameTheme);
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});

// A button in each column head sorts the table: descending, ascending, then the original order.
const number = /^[+\-−≤]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?/;
function value(row, column) {
  const text = row.cells[column].textContent.trim();
  const found = text.match(number);
  if (!found) return text === "–" ? null : text.toLowerCase();
  return parseFloat(found[0].replace(/[,≤+]/g, "").replace("−", "-"));
}
function compare(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}
function sort(table, column) {
  const body = table.tBodies[0];
  const head = table.tHead.rows[0].cells[column];
  const next = { none: "descending", descending: "ascending", ascending: "none" };
  const order = next[head.getAttribute("aria-sort") || "none"];
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  if (order !== "none") head.setAttribute("aria-sort", order);
  const sign = order === "descending" ? -1 : 1;
  const rows = [...body.rows].map((row) => ({ row, own: value(row, column) }));
  rows.sort((a, b) => {
    if (order === "none") return a.row.dataset.place - b.row.dataset.place;
    // Empty values come last in both directions.
    if (a.own === null || b.own === null) return (a.own === null) - (b.own === null);
    return sign * compare(a.own, b.own) || a.row.dataset.place - b.row.dataset.place;
  });
  body.append(...rows.map((one) => one.row));
}
for (const table of document.querySelectorAll("table[data-sortable]")) {
  [...table.tBodies[0].rows].forEach((row, place) => { row.dataset.place = place; });
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => sort(table, column));
  });
}

// Rows are filtered by list and by every word of the text, including words such as label:positive.
function filter(form) {
  const table = document.getElementById(form.dataset.for);
  if (!table) return;
  const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = form.elements.list.value;
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const said = ` ${row.dataset.words.toLowerCase()} `;
    const text = row.textContent.toLowerCase();
    row.hidden = !((!list || row.dataset.list === list) &&
      words.every((word) => text.includes(word) || said.includes(` ${word} `)));
    shown += !row.hidden;
  }
  form.querySelector("output").textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
}
for (const form of document.querySelectorAll("form.filter")) {
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => filter(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => filter(form)));
  filter(form);
}

// A count in a confusion matrix links to those of its rows that are listed.
for (const link of document.querySelectorAll("a[data-filter]")) {
  link.addEventListener("click", () => {
    const form = link.closest("section").querySelector("form.filter");
    form.elements.text.value = link.dataset.filter;
    form.elements.list.value = "";
    filter(form);
  });
}
