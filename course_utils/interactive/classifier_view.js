// The trained classifier, live: type, swap, switch heads off, and see what it answers and where it looks.
function build(root, data, host) {
  var model = classifierModel(data.model), labels = data.model.labels, config = model.config, turned = config.positions;
  var shows = function (part) { return data.parts.includes(part); };
  var state = { text: data.text, gates: allOpen(), placed: true, layer: data.head[0], head: data.head[1], how: data.how, picked: null,
    looked: null, range: null, occlusion: [], changed: [], end: 0, count: -1, example: exampleOf(data.text) };
  var history = [], last = { kind: "", time: 0 }, job = 0, speech = 0;

  function allOpen() {
    return Array.from({ length: config.num_layers }, function () { return Array(config.num_heads).fill(1); });
  }
  function exampleOf(text) { return data.examples.find(function (one) { return one.text === text; }) || null; }

  // What is seen
  var colour = makeColours(host), said = h("p", { class: "said", "aria-live": "polite" });
  var field = h("textarea", { id: "text", rows: "2", dir: "auto", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    oninput: function () { change("typing", function () { state.text = field.value; unpick(); }); } });
  var undoButton = h("button", { type: "button", onclick: undo }, "Undo");
  var resetButton = h("button", { type: "button", onclick: reset }, "Reset");
  var answer = makeAnswer(labels), notes = h("div", { class: "notes" });
  var rungs = data.examples.map(function (example, i) {
    return h("button", { type: "button", onclick: function () { climb(i); } }, example.name);
  });
  var look = h("p", { class: "look" });
  var rows = ["pooling", "occlusion"].filter(function (row) { return shows(row === "pooling" ? "strip" : row); });
  var words = rows.length || shows("words") ? makeWords(labels, rows, poolingColour, onWord) : null;
  var ends = h("span"), poolingLegend = h("div", { class: "legend soft" }, makeRamp(colour, host), ends);
  var removal = h("select", { "aria-label": "How a word is taken away", onchange: function () { state.how = removal.value; compute(); } },
    h("option", { value: "delete" }, "left out"), h("option", { value: "unk" }, "replaced by <unk>"));
  removal.value = state.how;
  var occlusionLegend = h("div", { class: "legend soft" }, h("i", { class: "diverging" }), h("span", null,
    "Occlusion, −1 to 1: what the probability of ‘" + labels[1] + "’ loses when the word is "), removal);
  var bar = makePickbar(), switches = shows("heads") ? makeSwitches(config, toggle) : null, gatesSaid = h("p", { class: "gates" });
  var placing = shows("positions") ? h("button", { type: "button", role: "switch", class: "switch", onclick: place }) : null;
  var map = shows("map") ? makeMap(config, colour, host, onMap) : null;
  var cover = h("div", { class: "cover" }, h("p", null, "The map of this sentence waits until you’ve made your guess."),
    h("button", { type: "button", onclick: function () { state.example.covered = false; draw(); } }, "Show the map"));

  root.append(h("div", { class: "live" },
    rungs.length ? h("div", { class: "ladder", role: "group", "aria-label": "Prepared sentences" }, rungs) : null,
    rungs.length ? look : null,
    h("div", { class: "top" }, h("label", { for: "text" }, "Write a review"), undoButton, resetButton), field,
    answer.element, notes,
    words ? h("section", { "aria-label": "Words" }, shows("strip") ? poolingLegend : null,
      shows("occlusion") ? occlusionLegend : null, words.element, bar.element) : null,
    h("div", { class: "lower" }, map ? map.element : null, map ? cover : null,
      switches || placing ? h("section", { class: "gating" }, h("h4", null, switches ? "Switch heads off" : "Switch off"), switches ? switches.element : null,
        placing ? h("div", { class: "layer" }, placing) : null, gatesSaid) : null), said));

  // What changes the text or the gates
  function change(kind, act) {
    var now = Date.now(), same = kind === last.kind && (kind === "typing" || kind === "edit") && now - last.time < 1000;
    if (!same) history.push({ text: state.text, gates: state.gates, placed: state.placed, probability: state.result.probability });
    if (history.length > 300) history.shift();
    last = { kind: kind, time: now };
    state.changed = [];
    if (kind === "typing") state.example = null;
    act();
    compute();
  }
  function undo() { if (history.length) back(history.pop()); }
  function reset() {
    if (state.text !== data.text || closed()) change("reset", function () { begin(data.text); });
  }
  function back(to) {
    last = { kind: "undo", time: 0 };
    state.changed = [];
    state.text = to.text;
    state.gates = to.gates;
    state.placed = to.placed;
    state.example = exampleOf(to.text) || state.example;
    unpick();
    compute();
  }
  // begin: with a prepared sentence, everything switched on
  function begin(text) {
    state.text = text;
    state.example = exampleOf(text);
    state.gates = allOpen();
    state.placed = true;
    unpick();
  }
  function climb(i) {
    var before = state.read.tokens;
    if (data.examples[i].text === state.text && !closed()) return;
    change("example", function () { begin(data.examples[i].text); });
    state.changed = newWords(before, state.read.tokens);
    draw();
  }
  function toggle(layer, head) {
    change("gate", function () {
      state.gates = state.gates.map(function (row) { return row.slice(); });
      state.gates[layer][head] = 1 - state.gates[layer][head];
    });
  }
  function place() { change("gate", function () { state.placed = !state.placed; }); }
  // poolingColour: colours end at one half for up to 12 words, and else where they did for as many words, so that what a swap
  // or a switch changes shows by colour
  function poolingColour(share) { return colour(share * scaleEnd(state.result.pooling) / state.end); }
  function keepEnd() {
    var count = state.read.tokens.length;
    state.end = Math.max(count <= 12 ? 0.5 : 0, count === state.count ? state.end : 0, scaleEnd(state.result.pooling));
    state.count = count;
  }
  function closed() { return !state.placed || state.gates.flat().includes(0); }

  // Words: the first pick opens the bar below them, the second one swaps
  function unpick() { state.picked = state.range = null; }
  function pick(i) {
    var token = state.read.tokens[i];
    state.picked = i;
    state.range = { start: token.start, end: token.end };
    bar.open(state.text.slice(token.start, token.end));
    draw();
  }
  function onWord(what, i) {
    if (what === "look") { state.looked = i; drawLook(); return; }
    if (i === null || (what === "pick" && i === state.picked)) { unpick(); draw(); return; }
    if (what === "edit") { pick(i); bar.edit(); return; }
    if (state.picked === null) pick(i);
    else swap(state.picked, i, false);
  }
  function swap(a, b, follow) {
    change("swap", function () {
      var read = state.read, low = read.tokens[Math.min(a, b)], high = read.tokens[Math.max(a, b)], text = state.text;
      var order = read.tokens.map(function (_, i) { return i === a ? b : i === b ? a : i; });
      state.text = rewritten(text.slice(0, low.start) + text.slice(high.start, high.end) + text.slice(low.end, high.start) +
        text.slice(low.start, low.end) + text.slice(high.end), order);
      unpick();
    });
    if (follow) pick(b);
    else words.focus(b);
  }
  function leaveOut() {
    var i = state.picked, token = state.read.tokens[i], text = state.text;
    change("leave out", function () {
      var before = text.slice(0, token.start), after = text.slice(token.end);
      var order = state.read.tokens.map(function (_, k) { return k; }).filter(function (k) { return k !== i; });
      state.text = rewritten(/(^|\s)$/.test(before) ? before + after.replace(/^\s/, "") : before + after, order);
      unpick();
    });
    words.focus(Math.max(0, Math.min(i, state.read.tokens.length - 1)));
  }
  // rewritten: `text` if it has the tokens that were meant; where letters have run together, these tokens with spaces
  function rewritten(text, order) {
    var wanted = order.map(function (i) { return state.read.tokens[i]; });
    if (state.read.dropped) return text;
    function joined(tokens) { return tokens.map(function (t) { return t.text; }).join(" "); }
    return joined(model.read(text).tokens) === joined(wanted) ? text : wanted.map(function (t) { return state.text.slice(t.start, t.end); }).join(" ");
  }
  function makePickbar() {
    var hint = h("p", { class: "soft" }, "Click a word to change it, or two words to swap them."), name = h("span");
    var input = h("input", { type: "text", size: "10", dir: "auto", spellcheck: "false", autocapitalize: "off",
      "aria-label": "Change this word to", oninput: function () { change("edit", edited); }, onkeydown: function (event) {
        if (event.isComposing || !/^(Enter|Escape)$/.test(event.key)) return;
        event.preventDefault();
        done();
      } });
    var before = h("button", { type: "button", onclick: function () { swap(state.picked, state.picked - 1, true); } }, "⇄ word before");
    var after = h("button", { type: "button", onclick: function () { swap(state.picked, state.picked + 1, true); } }, "⇄ word after");
    var out = h("button", { type: "button", onclick: leaveOut }, "Leave out");
    var tools = h("div", { class: "tools" }, name, input, before, after, out, h("button", { type: "button", onclick: done }, "Done"));
    function edited() {
      var range = state.range;
      state.text = state.text.slice(0, range.start) + input.value + state.text.slice(range.end);
      range.end = range.start + input.value.length;
    }
    function done() {
      var i = state.picked;
      unpick();
      draw();
      if (i !== null) words.focus(i);
    }
    return {
      element: h("div", { class: "pickbar" }, hint, tools),
      open: function (text) { input.value = text; },
      edit: function () { input.focus(); input.select(); },
      draw: function () {
        var picked = state.picked !== null;
        hint.hidden = state.range !== null;
        tools.hidden = state.range === null;
        name.textContent = picked ? "Word " + (state.picked + 1) + ":" : "Word:";
        before.disabled = !(picked && state.picked > 0);
        after.disabled = !(picked && state.picked < state.read.tokens.length - 1);
        out.disabled = !picked;
      },
    };
  }
  function onMap(what, value) {
    if (what === "look") { if (state.looked !== value) { state.looked = value; drawLook(); } return; }
    state.layer = value[0];
    state.head = value[1];
    draw();
  }

  // What the model says
  function compute() {
    state.read = model.read(state.text);
    config.positions = turned;                            // the model's own config: what is set here, its next run does
    if (closed()) state.open = model.run(state.read.ids).probability;
    if (!state.placed) config.positions = "none";
    state.result = model.run(state.read.ids, { gates: state.gates, weights: shows("map") });
    keepEnd();
    if (state.range) {
      var inside = state.read.tokens.findIndex(function (t) { return t.start >= state.range.start && t.end <= state.range.end; });
      state.picked = inside < 0 ? null : inside;
    }
    if (state.looked !== null && state.looked >= state.read.tokens.length) state.looked = null;
    occlude();
    draw();
    clearTimeout(speech);
    speech = setTimeout(function () { say(said, spoken()); }, 500);
  }
  // occlude: one run for each word, in slices, so that typing never waits for a long text
  function occlude() {
    var mine = ++job, ids = state.read.ids, options = { gates: state.gates, how: state.how }, scores = state.occlusion = [], shown = 0;
    if (!shows("occlusion")) return;
    function slice(ms) {
      if (mine !== job) return;
      var start = performance.now();
      while (scores.length < ids.length && performance.now() - start < ms) {
        scores.push(state.result.probability - model.occlusion(ids, scores.length, options));
      }
      var done = scores.length === ids.length;
      if (!done) setTimeout(slice, 0, 12);
      if (shown && (done || start - shown > 150)) { words.draw(state); shown = start; }
    }
    if (ids.length <= 30) slice(16);
    else setTimeout(slice, 0, 12);
    shown = performance.now();
  }

  function draw() {
    if (field.value !== state.text) field.value = state.text;
    undoButton.disabled = !history.length;
    resetButton.disabled = state.text === data.text && !closed();
    var before = history[history.length - 1], p = state.result.probability;
    answer.draw(p, compared() ? "before this change " + three(before.probability) + " (" + signed(p - before.probability, 3) + ")" : "");
    notes.replaceChildren.apply(notes, remarks().map(function (text) { return h("p", null, text); }));
    rungs.forEach(function (rung, i) { rung.setAttribute("aria-pressed", data.examples[i].text === state.text ? "true" : "false"); });
    look.textContent = !state.example ? "Your own words. A button brings back its sentence and its question."
      : state.example.look + (state.changed.includes(true) ? " (Underlined: the words that changed.)"
        : state.example.text !== state.text ? " (You’ve changed the sentence.)" : "");
    look.hidden = !look.textContent;
    ends.textContent = "Pooling weight: how much a word counts in the mean that the answer is read from. All sum to 1; colours from 0 to " +
      state.end + ".";
    if (switches) switches.draw(state);
    if (placing) {
      placing.setAttribute("aria-checked", state.placed ? "true" : "false");
      placing.replaceChildren("Positions of words ", h("span", { class: "onoff" }, state.placed ? "on" : "off"));
    }
    gatesSaid.textContent = closed() ? "With all heads " + (placing ? "and positions " : "") + "on " + three(state.open) + ", now " + three(p) + " (" + signed(p - state.open, 3) + ")."
      : "All heads are on. A head that’s off adds nothing to its layer.";
    bar.draw();
    drawLook();
  }
  function drawLook() {
    var covered = Boolean(state.example && state.example.covered);           // until it’s asked for, once
    if (map) map.element.hidden = covered;
    cover.hidden = !covered;
    if (words) words.draw(state);
    if (map) map.draw(state);
  }
  function remarks() {
    var read = state.read, result = [];
    var unknown = read.tokens.filter(function (_, i) { return !read.known[i]; }).map(function (t) { return t.text; });
    var names = unknown.filter(function (word, i) { return unknown.indexOf(word) === i; });
    var all = read.tokens.filter(function (t, i) { return !read.known[i] || /[\p{L}\p{N}]/u.test(t.text); }).length;
    if (!read.tokens.length) {
      result.push("No words. Nothing is left but the bias of the last layer, so the model gives this answer to every empty text.");
    }
    if (unknown.length) {
      result.push("⚠ " + unknown.length + " of " + all + (all === 1 ? " word" : " words") + " unknown: don’t trust this. The model reads " +
        quoted(names.slice(0, 5)) + (names.length > 5 ? " and " + (names.length - 5) + " more" : "") +
        " as <unk>" + (names.length > 1 ? ", all the same." : "."));
    }
    if (read.dropped) {
      result.push("Too long: the model reads the first " + read.from + " and the last " + (read.tokens.length - read.from) +
        " words and punctuation marks, and skips " + read.dropped + " between them.");
    }
    return result;
  }
  // compared: whether the number before is of a change to this sentence; another prepared one is no change of it
  function compared() { return history.length && !["undo", "example", "reset"].includes(last.kind); }
  function spoken() {
    var p = state.result.probability, before = history[history.length - 1];
    return labels[p > 0.5 ? 1 : 0] + ", probability of " + labels[1] + " " + three(p) +
      (compared() ? ", before " + three(before.probability) : "") + ". " + remarks().join(" ");
  }

  compute();
  host.addEventListener("themechange", draw);
  var width = 0;
  new ResizeObserver(function () {
    if (root.clientWidth !== width && map) { width = root.clientWidth; map.draw(state); }
  }).observe(root);
}
