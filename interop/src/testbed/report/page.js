"use strict";
const measured = document.getElementById("measured");
for (const cell of document.querySelectorAll(".grid td[title]")) {
  for (const event of ["mouseenter", "focus", "click"]) {
    cell.addEventListener(event, () => { measured.textContent = cell.title; });
  }
}
function open() {
  const chosen = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (chosen instanceof HTMLDetailsElement) chosen.open = true;
}
addEventListener("hashchange", open);
open();
