(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("has-js");

  // The stored choice wins over the system's; storage may be forbidden for local files.
  const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                  set: (v) => { try { localStorage.setItem("theme", v); } catch { /* not kept */ } } };
  if (store.get()) root.dataset.theme = store.get();
  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    store.set(root.dataset.theme);
  });

  document.getElementById("download").addEventListener("click", (event) => {
    const blob = new Blob([document.getElementById("data").textContent], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = event.currentTarget.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  for (const button of document.querySelectorAll(".legend button")) {
    const scope = button.closest("section");
    const parts = () => scope.querySelectorAll(`figure g[data-series="${button.dataset.series}"]`);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      parts().forEach((g) => g.classList.toggle("off", !on));
    });
  }

  // Texts of marks appear at once instead of after the browser's delay.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.(".pt");
    tip.hidden = !mark;
    if (!mark) return;
    const title = mark.querySelector("title");
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 12, innerWidth - box.width - 6))}px`;
    tip.style.top = `${event.clientY > innerHeight - 60 ? event.clientY - box.height - 10 : event.clientY + 14}px`;
  });
})();
