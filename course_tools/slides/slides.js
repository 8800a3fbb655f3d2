// Starts a deck: slide numbers, addresses, the speaker's window, and below each slide the name of its section.
Reveal.initialize({
  width: 1280, height: 720, margin: 0, minScale: 0.1, maxScale: 4, center: false, hash: true, slideNumber: "c/t", transition: "none",
  backgroundTransition: "none", controls: false, pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, viewDistance: 3, plugins: [RevealNotes]
});
// Live pieces keep the page's style out, so that for slides goes into each of them.
document.querySelectorAll(".course-piece[data-live]").forEach(function (piece) {
  var style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = "reveal/pieces.css";
  piece.shadowRoot.append(style);
});
function nameSection() {
  var slide = Reveal.getCurrentSlide(), where = document.querySelector(".where");
  where.textContent = slide ? slide.getAttribute("data-section") : "";
  where.style.transformOrigin = "left bottom";
  where.style.transform = "scale(" + Reveal.getScale() + ")";
}
["ready", "slidechanged", "resize"].forEach(function (name) { Reveal.on(name, nameSection); });
