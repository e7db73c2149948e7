"use strict";
// Everything works without this script: it searches while the user types, copies commands, and lets the arrow
// keys move between tokens.

for (const one of document.querySelectorAll(".without-script")) one.hidden = true;
for (const one of document.querySelectorAll(".with-script, .copy")) one.hidden = false;

const status = document.getElementById("status");

function startCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      status.textContent = "Copied";
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1500);
    } catch {
      // Browsers allow the clipboard on secure addresses only: select the text instead.
      getSelection().selectAllChildren(text);
      status.textContent = "Selected; copy it with the keyboard";
    }
  });
}

function startSearching(form) {
  let timer, request;
  const narrow = matchMedia("(max-width: 48rem)");

  const collapse = () => {
    const facets = form.querySelector(".facets");
    if (facets && narrow.matches) facets.open = false;
  };

  const search = async () => {
    const words = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    if (words.get("sort") === "best") words.delete("sort");
    const query = words.toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    request?.abort();
    request = new AbortController();
    let answer;
    try {
      answer = await fetch(`${location.pathname}?${query}&fragment=1`, { signal: request.signal });
    } catch {
      return;
    }
    if (answer.status === 401) return location.reload();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("results");
    if (!fresh) return;
    const old = document.getElementById("results");
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const isOpen = old.querySelector(".facets").open;
    old.replaceWith(fresh);
    fresh.querySelector(".facets").open = isOpen;
    for (const one of fresh.querySelectorAll(".without-script")) one.hidden = true;
    if (focused) document.getElementById(focused)?.focus();
    status.textContent = fresh.querySelector("#total").textContent;
  };

  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(search, event.target.type === "search" ? 150 : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search();
  });
  collapse();
}

function startMoving(group) {
  const tokens = [...group.querySelectorAll(".t[tabindex]")];
  // One stop for the tab key; arrow keys move inside.
  for (const token of tokens.slice(1)) token.tabIndex = -1;
  const rightToLeft = () => getComputedStyle(group).direction === "rtl";

  const sameColumn = (from, step) => {
    const box = tokens[from].getClientRects()[0];
    let best = from;
    for (let i = from + step; i >= 0 && i < tokens.length; i += step) {
      const other = tokens[i].getClientRects()[0];
      if (!other || Math.abs(other.top - box.top) < box.height / 2) continue;
      const first = tokens[best].getClientRects()[0];
      if (best !== from && Math.abs(other.top - first.top) > box.height / 2) break;
      if (best === from || Math.abs(other.left - box.left) < Math.abs(first.left - box.left)) best = i;
    }
    return best;
  };

  group.addEventListener("keydown", (event) => {
    const here = tokens.indexOf(document.activeElement);
    if (here < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const ahead = rightToLeft() ? -1 : 1;
    const moves = {
      ArrowRight: () => here + ahead,
      ArrowLeft: () => here - ahead,
      ArrowDown: () => sameColumn(here, 1),
      ArrowUp: () => sameColumn(here, -1),
      Home: () => 0,
      End: () => tokens.length - 1,
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(tokens.length - 1, move()));
    tokens[here].tabIndex = -1;
    tokens[next].tabIndex = 0;
    tokens[next].focus();
  });
  group.addEventListener("focusin", (event) => {
    if (!tokens.includes(event.target)) return;
    for (const token of group.querySelectorAll('.t[tabindex="0"]')) token.tabIndex = -1;
    event.target.tabIndex = 0;
  });
}

startCopying();
const form = document.getElementById("search");
if (form) startSearching(form);
for (const group of document.querySelectorAll('.tokens[role="group"]')) startMoving(group);
