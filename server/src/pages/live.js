// Updates the page but keeps what is open, selected, focused or scrolled. Without scripts, a page shows its state at load time.
const main = document.querySelector("main");
const url = main.dataset.live;
if (url) {
  const FOCUSABLE = "a, button, summary, [tabindex]";
  const SCROLLS = ".scroll, .tall";
  const all = (what) => [...main.querySelectorAll(what)];
  let shown = main.innerHTML;
  let waiting = false;
  // Links can move; other elements keep their position.
  const focusAgain = (old, index) => {
    const twin = old.href ? all("a").find((a) => a.href === old.href) : all(FOCUSABLE)[index];
    (twin ?? main).focus({ preventScroll: true });
  };
  const refresh = async () => {
    waiting = false;
    if (document.hidden) return;
    // After a failure, the next event tries again.
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (fresh.innerHTML === shown) return;
    const active = main.contains(document.activeElement) ? document.activeElement : null;
    if (active?.matches("select, input, textarea")) return;
    shown = fresh.innerHTML;
    const index = all(FOCUSABLE).indexOf(active);
    const open = all("details").map((d) => d.open);
    const scrolled = all(SCROLLS).map((s) => [s.scrollLeft, s.scrollTop]);
    main.replaceChildren(...fresh.childNodes);
    all("details").forEach((d, i) => { if (i < open.length) d.open = open[i]; });
    all(SCROLLS).forEach((s, i) => { if (i < scrolled.length) s.scrollTo(...scrolled[i]); });
    if (active) focusAgain(active, index);
  };
  const soon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(refresh, 500);
  };
  // Catches up when a hidden page becomes visible.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
  if (url === "poll") {
    setInterval(soon, 3000);
  } else {
    const events = new EventSource(url);
    events.addEventListener("event", soon);
    events.addEventListener("end", () => { events.close(); soon(); });
  }
}
