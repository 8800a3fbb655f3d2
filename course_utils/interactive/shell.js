// What all pieces share. Every script of a piece runs in one function, so nothing here is seen by the page.

// start: replace each still picture of this piece by what build(root, data) makes, in a shadow tree that the page's style
// doesn't reach. Where building fails, the picture stays.
function start(name, look, build, data) {
  document.querySelectorAll('[data-piece="' + name + '"]:not([data-live])').forEach(function (host) {
    host.setAttribute("data-live", "");
    var root = h("div", { class: "piece" }), still = Array.from(host.childNodes);
    try {
      watchTheme(host);
      var tree = host.shadowRoot || host.attachShadow({ mode: "open" });
      var style = document.createElement("style");
      style.textContent = look;
      tree.replaceChildren(style, root);
      keepKeys(root);
      build(root, data, host);
      still.forEach(function (node) { node.remove(); });
    } catch (error) {
      if (host.shadowRoot) host.shadowRoot.replaceChildren(document.createElement("slot"));
      console.error(error);
    }
  });
}

// keepKeys: keys that are typed into a piece don't turn the page's slides or run its shortcuts
function keepKeys(root) {
  ["keydown", "keypress", "keyup"].forEach(function (type) {
    root.addEventListener(type, function (event) {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !/^(F\d+|Page|Escape)/.test(event.key)) event.stopPropagation();
    });
  });
}

// watchTheme: data-dark on the host while the page is dark: JupyterLab's theme, else the site's, else the system's
function watchTheme(host) {
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function set() {
    var lab = document.body.getAttribute("data-jp-theme-light"), site = document.documentElement.getAttribute("data-theme");
    var dark = lab !== null ? lab === "false" : site === "dark" || (site !== "light" && system.matches);
    if (dark !== host.hasAttribute("data-dark")) {
      host.toggleAttribute("data-dark", dark);
      host.dispatchEvent(new CustomEvent("themechange"));
    }
  }
  set();
  system.addEventListener("change", set);
  var seen = new MutationObserver(set);
  seen.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  seen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

// h("button", {class: "head", onclick: f, "aria-pressed": "true"}, "text", otherElement): one element
function h(tag, attributes) {
  return fill(document.createElement(tag), attributes, Array.prototype.slice.call(arguments, 2));
}

// s: the same for SVG
function s(tag, attributes) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, Array.prototype.slice.call(arguments, 2));
}

function fill(element, attributes, children) {
  for (var name in attributes || {}) {
    var value = attributes[name];
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  children.flat().forEach(function (child) { if (child !== null && child !== undefined) element.append(child); });
  return element;
}

// weightColour: background and ink for a weight from 0 to 1 of the scale; light at zero, in the dark theme dark at zero
function weightColour(share, host) {
  var steps = getComputedStyle(host).getPropertyValue("--weights").replace(/["'\s]/g, "").split(",");
  if (host.hasAttribute("data-dark")) steps = ["#1b1b1f", "#3a2349", "#5d347b", "#8a56b0", "#b98fd3", "#ead9f5"];
  var place = Math.max(0, Math.min(1, share)) * (steps.length - 1), low = Math.min(Math.floor(place), steps.length - 2);
  var rgb = [1, 3, 5].map(function (k) {
    var from = parseInt(steps[low].slice(k, k + 2), 16), to = parseInt(steps[low + 1].slice(k, k + 2), 16);
    return Math.round(from + (to - from) * (place - low));
  });
  var light = rgb.map(function (c) { c /= 255; return c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); });
  var luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return { background: "rgb(" + rgb.join(",") + ")", ink: luminance > 0.179 ? "#000" : "#fff" };
}

// shown: a token as visible text, spaces and line breaks included
function shown(token) {
  if (token === "") return "(empty)";
  return token.replace(/^ +| +$/g, function (m) { return "␣".repeat(m.length); }).replace(/\n/g, "\\n").replace(/\t/g, "\\t");
}

// say: tell a screen reader, through an element made with h("p", {class: "said", "aria-live": "polite"})
function say(element, text) { if (element.textContent !== text) element.textContent = text; }
