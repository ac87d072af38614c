"use strict";
const measured = document.getElementById("measured");
function link(text, href) {
  const link = document.createElement("a");
  link.textContent = text;
  link.href = href;
  return link;
}
function show(cell) {
  measured.replaceChildren(cell.title);
  const { logs, qlogs } = cell.dataset;
  if (logs === undefined) return;
  for (const end of ["client", "server"]) {
    measured.append(" ", link(`capture of the ${end}`, `${logs}/${end}/link.pcap`));
    measured.append(" ", link(`output of the ${end}`, `${logs}/${end}/output.log`));
    if (qlogs.split(" ").includes(end))
      measured.append(" ", link(`qlog of the ${end}`, `${logs}/${end}/qlog/`));
  }
}
let kept = false;
for (const cell of document.querySelectorAll(".grid td[title]")) {
  cell.addEventListener("mouseenter", () => { if (!kept) show(cell); });
  cell.addEventListener("focus", () => show(cell));
  cell.addEventListener("click", () => { kept = true; show(cell); });
  cell.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== cell) return;
    kept = true;
    show(cell);
    measured.querySelector("a")?.focus();
  });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") kept = false; });
function open() {
  const chosen = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (chosen instanceof HTMLDetailsElement) chosen.open = true;
}
addEventListener("hashchange", open);
open();
