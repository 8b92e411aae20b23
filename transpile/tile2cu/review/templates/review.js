"use strict";
// Without this script the links between lines work, and all tabs are shown one below the other.

function linesOf(line) {
  return line.closest(".kernel").querySelectorAll(`.code li[data-py="${line.dataset.py}"]`);
}
function mark(line, name, on) {
  for (const each of linesOf(line)) each.classList.toggle(name, on);
}
function scrollPaneTo(line) {
  const pane = line.closest(".pane");
  pane.scrollTop += line.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
}
function pin(line) {
  for (const old of line.closest(".kernel").querySelectorAll(".pin")) old.classList.remove("pin");
  mark(line, "pin", true);
  const pane = line.closest(".pane");
  const other = [...linesOf(line)].find((each) => each.closest(".pane") !== pane);
  if (other) scrollPaneTo(other);
  return other;
}
for (const line of document.querySelectorAll(".code li[data-py]")) {
  line.addEventListener("mouseenter", () => mark(line, "hit", true));
  line.addEventListener("mouseleave", () => mark(line, "hit", false));
  line.addEventListener("focusin", () => mark(line, "hit", true));
  line.addEventListener("focusout", () => mark(line, "hit", false));
  line.addEventListener("click", (event) => {
    if (event.target.closest("details") || (event.target.closest("a") && !event.target.closest("a.n"))) return;
    const byLink = event.target.closest("a.n");
    if (byLink) event.preventDefault();
    const other = pin(line);
    // From the keyboard, the focus follows.
    if (byLink && event.detail === 0 && other) other.querySelector("a.n")?.focus({ preventScroll: true });
  });
}

const tabs = [...document.querySelectorAll('[role="tab"]')];
function select(chosen, focus) {
  for (const tab of tabs) {
    const on = tab === chosen;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !on;
  }
  if (focus) chosen.focus();
}
const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: "first", End: "last" };
tabs.forEach((tab, index) => {
  tab.addEventListener("click", () => select(tab, false));
  tab.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const to = step === "first" ? 0 : step === "last" ? tabs.length - 1 : (index + step + tabs.length) % tabs.length;
    select(tabs[to], true);
  });
});
function showTarget() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const panel = place && place.closest('[role="tabpanel"]');
  if (panel && panel.hidden) {
    select(tabs.find((tab) => tab.getAttribute("aria-controls") === panel.id), false);
    place.scrollIntoView();
  }
}
if (tabs.length) {
  select(tabs[0], false);
  showTarget();
  addEventListener("hashchange", showTarget);
}
