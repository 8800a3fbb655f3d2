// What can be seen on every slide of a deck, measured in the browser. done(list of {slide, what, kind, much}) with
// kind 'overflow' (pixels beyond the slide), 'type' (CSS pixels), 'picture' ({file, scale}) or 'empty'.
var SMALLEST = arguments[0], FORMULA = arguments[1], done = arguments[arguments.length - 1];
var INK = 3; // pixels by which letters and formulas may be wider than their box without being cut
var found = [], slides = Reveal.getSlides();

function words(node) { return (node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40); }

// every element below a node, those in shadow trees too
function everything(node) {
  var all = [];
  Array.from(node.children).forEach(function (child) {
    if (child.matches("aside.notes, style, script, annotation, .said")) return;
    all.push(child);
    if (child.shadowRoot) all = all.concat(everything(child.shadowRoot));
    all = all.concat(everything(child));
  });
  return all;
}

function parent(element) { return element.parentElement || (element.getRootNode().host || null); }

// whether an element is clipped by one that scrolls: its size then says nothing about the slide
function inScrolled(element) {
  for (var up = parent(element); up && !up.matches(".slides"); up = parent(up)) {
    var style = getComputedStyle(up);
    if (/auto|scroll|hidden|clip/.test(style.overflowX + style.overflowY)) return true;
  }
  return false;
}

// how many CSS pixels of the screen a pixel of an element's own is
function scale(element) {
  if (element.ownerSVGElement) { var m = element.getScreenCTM(); return Math.sqrt(Math.abs(m.a * m.d - m.b * m.c)); }
  return (element.currentCSSZoom || 1) * Reveal.getScale();
}

function measure(slide) {
  var name = slide.id, smallest = {}, seen = 0;
  everything(slide).forEach(function (element) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return;
    var box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (box.width < 1 || box.height < 1) return;
    seen += 1;
    var over = Math.max(-box.left, -box.top, box.right - innerWidth, box.bottom - innerHeight);
    if (over > 1 && !inScrolled(element))
      found.push({ slide: name, kind: "overflow", much: Math.round(over), what: element.tagName.toLowerCase() + " " + words(element) });
    if (element.matches("pre, table, .body, .table, .view") && !inScrolled(element)) {
      var inner = Math.max(element.scrollWidth - element.clientWidth, element.scrollHeight - element.clientHeight);
      if (inner > INK) found.push({ slide: name, kind: "overflow", much: inner, what: "inside " + element.tagName.toLowerCase() + " " + words(element) });
    }
    if (element.matches("img")) {
      var contained = Math.min(box.width / element.naturalWidth, box.height / element.naturalHeight);
      found.push({ slide: name, kind: "picture", what: element.getAttribute("src").slice(0, 120), much: contained * element.naturalWidth });
    }
    var size = null;
    if (element.matches("canvas")) size = element.smallestType ? element.smallestType * box.width / element.width : null;
    else if (element.matches("input, select, textarea") ||
             Array.from(element.childNodes).some(function (node) { return node.nodeType === 3 && node.textContent.trim(); }))
      size = parseFloat(style.fontSize) * scale(element);
    if (size === null) return;
    var formula = element.closest && element.closest("math");
    if (formula && parseFloat(getComputedStyle(formula).fontSize) * scale(formula) >= FORMULA) return;
    if (size < SMALLEST - 0.05) {
      var key = element.tagName + element.className;
      if (!(key in smallest) || smallest[key].much > size)
        smallest[key] = { slide: name, kind: "type", much: Math.round(10 * size) / 10, what: element.tagName.toLowerCase() + " " + words(element) };
    }
  });
  Object.values(smallest).forEach(function (one) { found.push(one); });
  if (seen < 2) found.push({ slide: name, kind: "empty", much: seen, what: "nothing is seen" });
}

function next(k) {
  if (k === slides.length) { done(found); return; }
  var at = Reveal.getIndices(slides[k]);
  Reveal.slide(at.h, at.v, 999);
  slides[k].querySelectorAll(".fragment").forEach(function (step) { step.classList.add("visible"); });
  setTimeout(function () { measure(slides[k]); next(k + 1); }, slides[k].querySelector(".course-piece") ? 250 : 30);
}
document.fonts.ready.then(function () { next(0); });
