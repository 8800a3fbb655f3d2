// What the site's pages do beyond the theme. Nothing here is needed to read them.
"use strict";

// The theme is known before anything is drawn; the theme's own script comes later.
var page = document.documentElement;
if (!page.dataset.theme) page.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

// A page opened from a folder can't read its neighbours: search results come without their excerpts.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// Printed, everything that can be opened is open, except folded code.
var openedToPrint = [];
window.addEventListener("beforeprint", function () {
  openedToPrint = Array.from(document.querySelectorAll("details:not(.code):not([open])"));
  openedToPrint.forEach(function (one) { one.open = true; });
});
window.addEventListener("afterprint", function () {
  openedToPrint.forEach(function (one) { one.open = false; });
});

// A figure can be seen at its own size and larger: click it, or choose the button in its corner; Escape, a click or the
// button closes it. On a phone, where a page shows figures at a third of their size, one moves about in it.
document.addEventListener("DOMContentLoaded", function () {
  var dialog;
  document.querySelectorAll("figure.picture > img").forEach(function (picture) {
    var figure = picture.parentElement, button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.title = "Enlarge this figure";
    button.setAttribute("aria-label", button.title);
    button.textContent = "⤢";
    figure.classList.add("large");
    figure.append(button);
    picture.addEventListener("click", function () { button.focus({preventScroll: true}); enlarge(picture); });
    button.addEventListener("click", function () { enlarge(picture); });
  });

  function enlarge(picture) {
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "enlarged";
      dialog.setAttribute("aria-label", "Figure, enlarged");
      dialog.innerHTML = '<div tabindex="0" role="region" aria-label="The figure; it can be scrolled"></div>' +
        '<button type="button" aria-label="Close" title="Close">✕</button>';
      dialog.addEventListener("click", function () { dialog.close(); });
      dialog.addEventListener("keydown", function (event) {      // the theme keeps Escape for its search
        if (event.key === "Escape") dialog.close();
      });
      document.body.append(dialog);
    }
    var larger = picture.cloneNode(), own = Number(picture.getAttribute("width"));
    var ratio = own / Number(picture.getAttribute("height"));
    larger.loading = "eager";
    larger.style.width = Math.round(Math.max(own, Math.min(2 * own, 0.96 * innerWidth, 0.9 * (innerHeight - 44) * ratio))) + "px";
    dialog.firstChild.replaceChildren(larger);
    dialog.showModal();
    dialog.firstChild.scrollTo(0, 0);
  }
});

// A formula that is wider than the page scrolls by itself; then it can be reached by keys, too.
function reachFormulas() {
  document.querySelectorAll(".formula > math").forEach(function (one) {
    if (one.scrollWidth > one.clientWidth) one.setAttribute("tabindex", "0");
    else one.removeAttribute("tabindex");
  });
}
window.addEventListener("load", reachFormulas);
window.addEventListener("resize", reachFormulas);
