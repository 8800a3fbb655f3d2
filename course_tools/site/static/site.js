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
