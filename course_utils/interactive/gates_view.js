// Gates of heads, live: shut a head and see what the model now says of stored reviews, and where one of them is looked at.
function build(root, data, host) {
  var model = classifierModel(data.model), labels = data.model.labels, config = model.config, speech = 0;
  var reviews = data.reviews.map(function (review) {
    var read = model.read(review.text);
    return { about: review, read: read, open: model.run(read.ids).probability };
  });
  var state = { gates: allOpen(), layer: data.head[0], head: data.head[1], picked: null, looked: null, chosen: 0 };
  var judged = reviews.every(function (one) { return one.about.label !== null; });

  function allOpen() {
    return Array.from({ length: config.num_layers }, function () { return Array(config.num_heads).fill(1); });
  }
  function closed() { return state.gates.flat().includes(0); }

  var colour = makeColours(host), said = h("p", { class: "said", "aria-live": "polite" }), counts = h("p", { class: "counts" });
  var switches = makeSwitches(config, function (layer, head) {
    state.gates[layer][head] = 1 - state.gates[layer][head];
    compute();
  });
  var openAll = h("button", { type: "button", onclick: function () { state.gates = allOpen(); compute(); } }, "All on");
  var rows = reviews.map(function (one, i) {
    var fill = h("span", { class: "fill" }), number = h("span", { class: "number" }), verdict = h("span", { class: "verdict", role: "img" });
    var was = h("i", { class: "was" });
    was.style.left = 100 * one.open + "%";
    var words = [one.about.name, one.about.label === null ? "" : "labelled " + labels[one.about.label]].filter(Boolean).join(", ");
    var button = h("button", { type: "button", class: "review", onclick: function () { choose(i); } },
      h("span", { class: "text" }, words ? h("b", null, words + ": ") : null, h("bdi", null, cut(one.about.text, 140))),
      h("span", { class: "bar", "aria-hidden": "true" }, fill, h("i", { class: "half" }), was), number, verdict);
    return { button: button, fill: fill, number: number, verdict: verdict };
  });
  var answer = makeAnswer(labels), words = makeWords(labels, ["pooling"], colour, onWord), map = makeMap(config, colour, host, onMap);
  var ends = h("span"), legend = h("div", { class: "legend soft" }, makeRamp(colour, host), ends), full = h("p", { class: "full", dir: "auto" });

  root.append(h("div", { class: "gated" },
    h("section", { class: "top" }, switches.element, openAll), counts,
    h("div", { class: "soft small" }, "Bars: probability of ‘" + labels[1] + "’ from 0 to 1. The black line is one half; the dotted " +
      "line is where it was with all heads on. Click a review to see it below."),
    h("div", { class: "reviews", role: "group", "aria-label": "Stored reviews; the chosen one is shown below" },
      rows.map(function (row) { return row.button; })),
    h("section", { "aria-label": "The chosen review" }, full, answer.element, legend, words.element, map.element), said));

  function choose(i) { state.chosen = i; state.picked = state.looked = null; compute(); }
  function onWord(what, i) {
    if (what === "look") state.looked = i;
    else state.picked = state.picked === i ? null : i;
    drawWords();
  }
  function onMap(what, value) {
    if (what === "look") { if (state.looked === value) return; state.looked = value; }
    else { state.layer = value[0]; state.head = value[1]; }
    drawWords();
  }
  function right(one, probability) { return (probability > 0.5 ? 1 : 0) === one.about.label; }

  function compute() {
    reviews.forEach(function (one) { one.now = closed() ? model.run(one.read.ids, { gates: state.gates }).probability : one.open; });
    state.read = reviews[state.chosen].read;
    state.result = model.run(state.read.ids, { gates: state.gates, weights: true });
    draw();
    clearTimeout(speech);
    var chosen = reviews[state.chosen];
    speech = setTimeout(function () {
      say(said, counts.textContent + " The chosen review: " + labels[chosen.now > 0.5 ? 1 : 0] + " " + three(chosen.now));
    }, 500);
  }
  function draw() {
    var chosen = reviews[state.chosen];
    switches.draw(state);
    openAll.disabled = !closed();
    counts.textContent = counted();
    rows.forEach(function (row, i) {
      var one = reviews[i], positive = one.now > 0.5, fine = one.about.label === null || right(one, one.now);
      row.button.setAttribute("aria-pressed", i === state.chosen ? "true" : "false");
      row.fill.className = "fill " + (positive ? "positive" : "negative");
      row.fill.style.left = 100 * Math.min(0.5, one.now) + "%";
      row.fill.style.width = 100 * Math.abs(one.now - 0.5) + "%";
      row.number.textContent = three(one.now);
      row.verdict.textContent = (one.about.label === null ? "" : fine ? "✓ " : "✗ ") + labels[positive ? 1 : 0];
      row.verdict.setAttribute("aria-label", labels[positive ? 1 : 0] + (one.about.label === null ? "" : fine ? ", right" : ", wrong"));
      row.button.classList.toggle("wrong", !fine);
    });
    full.textContent = chosen.about.text;
    answer.draw(chosen.now, closed() ? "with all heads on " + three(chosen.open) + " (" + signed(chosen.now - chosen.open, 3) + ")" : "");
    ends.textContent = "Pooling weights sum to 1; colours from 0 to " + scaleEnd(state.result.pooling) + ".";
    drawWords();
  }
  function drawWords() {
    words.draw(state);
    map.draw(state);
  }
  // counted: how many are right, in all and under each name that occurs twice
  function counted() {
    if (!judged) return closed() ? "Some heads are off." : "All heads are on.";
    function tally(some, key) { return some.filter(function (one) { return right(one, one[key]); }).length + " of " + some.length; }
    var names = reviews.map(function (one) { return one.about.name; });
    var groups = names.filter(function (name, i) { return name && names.indexOf(name) === i && names.lastIndexOf(name) !== i; });
    return "Right: " + tally(reviews, "now") + groups.map(function (name, i) {
      return (i ? ", " : " (") + name + " " + tally(reviews.filter(function (one) { return one.about.name === name; }), "now") +
        (i === groups.length - 1 ? ")" : "");
    }).join("") + ". " + (closed() ? "With all heads on: " + tally(reviews, "open") + "." : "All heads are on.");
  }

  compute();
  host.addEventListener("themechange", draw);
  var width = 0;
  new ResizeObserver(function () {
    if (root.clientWidth !== width) { width = root.clientWidth; map.draw(state); }
  }).observe(root);
}
