// Conveniences only: everything is there without them.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const remember = (theme) => {
    try { localStorage.setItem("netbench-theme", theme); } catch { /* not allowed here */ }
  };
  const remembered = () => {
    try { return localStorage.getItem("netbench-theme"); } catch { return null; }
  };
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const asked = new URLSearchParams(location.search).get("theme") ?? remembered();
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
  });

  // Tells what is under the pointer at once; without this file browsers do so after a while.
  const tip = document.createElement("div");
  tip.className = "bubble";
  tip.hidden = true;
  document.body.append(tip);
  const text = new WeakMap();
  const show = (event) => {
    const mark = event.target.closest?.(".tip");
    if (!mark) { tip.hidden = true; return; }
    const title = mark.querySelector("title");
    if (title) { text.set(mark, title.textContent); title.remove(); mark.setAttribute("aria-label", text.get(mark)); }
    tip.textContent = text.get(mark) ?? "";
    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 16;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  };
  addEventListener("pointermove", show, { passive: true });
  addEventListener("pointerdown", show, { passive: true });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
