function build(root, data, host) {
  var SIZE = 400, limit = data.limit, selected = null;
  var said = h("p", { class: "said", "aria-live": "polite" }), message = h("p", { class: "message" });
  var vectors = [{ name: shown(data.name), at: data.query.slice(), query: true }].concat(data.tokens.map(function (token, k) {
    return { name: shown(token), at: data.keys[k].slice(), value: data.values ? data.values[k] : null };
  }));
  var query = vectors[0], keys = vectors.slice(1);
  // what to reach, each with its sign; once reached it stays so until everything starts again
  var goals = (data.goals || []).map(function (goal) {
    return { words: goal.words, key: data.tokens.indexOf(goal.key), over: goal.over, done: false, line: h("li", {}) };
  });

  function x(number) { return SIZE / 2 * (1 + number / limit); }
  function y(number) { return SIZE / 2 * (1 - number / limit); }
  function pair(v) { return "(" + fixed(v[0], 2) + ", " + fixed(v[1], 2) + ")"; }

  var plane = s("svg", { viewBox: "0 0 400 400", class: "plane", role: "group", "aria-label":
    "plane of " + data.features[0] + " and " + data.features[1] + "; each arrow can be dragged, or moved by the arrow keys" });
  for (var unit = Math.ceil(-limit); unit <= limit; unit++) {
    plane.append(s("line", { x1: x(unit), x2: x(unit), y1: 0, y2: SIZE, class: unit ? "grid" : "axis" }),
      s("line", { y1: y(unit), y2: y(unit), x1: 0, x2: SIZE, class: unit ? "grid" : "axis" }));
    if (unit && (limit < 5 || unit % 2 === 0)) plane.append(s("text", { x: x(unit), y: SIZE / 2 + 14, class: "tick" }, fixed(unit, 0)),
      s("text", { x: SIZE / 2 - 5, y: y(unit) + 4, class: "tick up" }, fixed(unit, 0)));
  }
  plane.append(s("text", { x: SIZE - 4, y: SIZE / 2 + 30, class: "feature" }, data.features[0] + " →"),
    s("text", { x: SIZE / 2 + 6, y: 14, class: "feature up" }, "↑ " + data.features[1]));
  var shadow = s("line", { class: "shadow" }), foot = s("line", { class: "foot" });
  plane.append(foot, shadow);
  if (data.values) keys.forEach(function (key) {
    plane.append(s("rect", { x: x(key.value[0]) - 5, y: y(key.value[1]) - 5, width: 10, height: 10, class: "value" }),
      s("text", { x: x(key.value[0]) + 9, y: y(key.value[1]) + 16, class: "tick value" }, "value of " + key.name));
  });

  keys.concat(query).forEach(function (v) {
    v.stem = s("line", { x1: SIZE / 2, y1: SIZE / 2 });
    v.tip = s("path");
    v.text = s("text", { class: "name" }, v.name);
    v.handle = s("g", { class: v.query ? "arrow query" : "arrow key", tabindex: 0, role: "application", "aria-roledescription": "movable arrow" },
      v.stem, v.tip, v.text, v.grip = s("circle", { r: 20, class: "grip" }));
    v.handle.addEventListener("pointerdown", function (event) {
      event.preventDefault();
      v.handle.focus();
      v.handle.setPointerCapture(event.pointerId);
      v.held = true;
    });
    // a finger on an arrow doesn't scroll the page: touch-action alone doesn't hold inside every SVG
    v.handle.addEventListener("touchstart", function (event) { event.preventDefault(); }, { passive: false });
    v.handle.addEventListener("pointermove", function (event) {
      if (!v.held) return;
      var box = plane.getBoundingClientRect();
      move(v, [((event.clientX - box.left) / box.width * 2 - 1) * limit, (1 - (event.clientY - box.top) / box.height * 2) * limit], false);
    });
    ["pointerup", "pointercancel"].forEach(function (name) {
      v.handle.addEventListener(name, function () { if (v.held) { v.held = false; update(true); } });
    });
    v.handle.addEventListener("keydown", function (event) {
      var way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      var step = event.shiftKey ? 0.5 : 0.1;
      move(v, [v.at[0] + step * way[0], v.at[1] + step * way[1]], true);
    });
    v.handle.addEventListener("focus", function () { selected = v; update(false); });
    plane.append(v.handle);
  });
  var answer = s("path", { class: "answer" }), answerName = s("text", { class: "name answer" }, "mean");
  plane.append(answer, answerName);

  vectors.forEach(function (v) {
    v.boxes = [0, 1].map(function (d) {
      var box = h("input", { type: "number", min: -limit, max: limit, step: 0.1, "aria-label": data.features[d] + " of " + v.name });
      box.addEventListener("input", function () {
        if (box.value === "" || !Number.isFinite(Number(box.value))) return;
        v.typing = box;
        selected = v;
        move(v, v.at.map(function (old, k) { return k === d ? Number(box.value) : old; }), false);
        v.typing = null;
      });
      box.addEventListener("change", function () { update(true); });
      return box;
    });
    v.score = h("td", { class: "right" });
    v.weight = weightBar();
    v.row = h("tr", {}, h("th", { scope: "row" }, v.name, v.query ? h("small", {}, " query") : null),
      v.boxes.map(function (box) { return h("td", {}, box); }), v.score, h("td", {}, v.query ? null : v.weight.box));
  });
  root.append(h("div", { class: "both" }, plane, h("div", { class: "beside" },
    h("table", {}, h("thead", {}, h("tr", {}, [].concat("", data.features, "dot product", "weight").map(function (name) {
      return name ? h("th", { scope: "col" }, name) : h("td");
    }))), h("tbody", {}, vectors.map(function (v) { return v.row; }))),
    message, goals.length ? h("ol", { class: "goals" }, goals.map(function (goal) { return goal.line; })) : null,
    h("button", { type: "button", onclick: reset }, "Start again"))), said);

  function reset() {
    query.at = data.query.slice();
    keys.forEach(function (key, k) { key.at = data.keys[k].slice(); });
    selected = null;
    goals.forEach(function (goal) { goal.done = false; });
    update(true);
  }

  function move(v, to, done) {
    v.at = to.map(function (number) { return Math.round(100 * Math.max(-limit, Math.min(limit, number))) / 100; });
    selected = v;
    update(done);
  }

  function draw(v, width) {
    var length = Math.hypot(v.at[0], v.at[1]), along = length ? [v.at[0] / length, -v.at[1] / length] : [0.7, 0.7];
    var tip = [x(v.at[0]), y(v.at[1])], size = length ? Math.min(13, length / limit * SIZE / 2) : 0;
    v.stem.setAttribute("x2", tip[0] - size / 2 * along[0]);
    v.stem.setAttribute("y2", tip[1] - size / 2 * along[1]);
    v.stem.setAttribute("stroke-width", width);
    var broad = 4 + width / 2;
    v.tip.setAttribute("d", length
      ? "M" + tip + "L" + [1, -1].map(function (side) {
        return [tip[0] - size * along[0] + side * broad * along[1], tip[1] - size * along[1] - side * broad * along[0]];
      }).join("L") + "Z"
      : "M" + (tip[0] - 5) + "," + tip[1] + "a5,5 0 1 0 10,0a5,5 0 1 0 -10,0");
    var half = v.text.getComputedTextLength() / 2;
    v.place = {
      half: half,
      x: Math.max(half + 2, Math.min(SIZE - half - 2, tip[0] + 10 * along[0] + half * (along[0] < -0.3 ? -1 : along[0] > 0.3 ? 1 : 0))),
      y: Math.max(16, Math.min(SIZE - 6, tip[1] + 5 + 16 * along[1])),
    };
    v.grip.setAttribute("cx", tip[0]);
    v.grip.setAttribute("cy", tip[1]);
    v.boxes.forEach(function (box, d) { if (v.typing !== box) box.value = v.at[d]; });
    v.handle.setAttribute("aria-label", (v.query ? "query " : "key ") + v.name + " at " + pair(v.at) + "; arrow keys move it");
  }

  // name: the names at the arrows' tips, each moved down until it covers no other
  function name() {
    vectors.forEach(function (v, k) {
      for (var tries = 0; tries < vectors.length; tries++) {
        var hit = vectors.slice(0, k).some(function (other) {
          return Math.abs(v.place.x - other.place.x) < v.place.half + other.place.half && Math.abs(v.place.y - other.place.y) < 15;
        });
        if (hit) v.place.y += v.place.y > SIZE - 22 ? -15 * vectors.length : 15;
      }
      v.text.setAttribute("x", v.place.x);
      v.text.setAttribute("y", v.place.y);
    });
  }

  // done: whether the arrow has been let go; only then is the result read out
  function update(done) {
    var scores = keys.map(function (key) { return query.at[0] * key.at[0] + query.at[1] * key.at[1]; });
    var weights = softmax(scores), mean = [0, 1].map(function (d) {
      return keys.reduce(function (sum, key, k) { return sum + weights[k] * (key.value || key.at)[d]; }, 0);
    });
    keys.forEach(function (key, k) {
      draw(key, 1.5 + 7 * weights[k]);
      key.score.textContent = fixed(scores[k], 2);
      key.weight.set(weights[k], fixed(weights[k], 3));
    });
    draw(query, 4);
    name();
    answer.setAttribute("d", "M" + x(mean[0]) + "," + (y(mean[1]) - 9) + "l9,9l-9,9l-9,-9z");
    answerName.setAttribute("x", x(mean[0]));
    answerName.setAttribute("y", y(mean[1]) + (mean[1] < 0 ? 26 : -15));
    var k = keys.indexOf(selected), key = keys[k < 0 ? (k = weights.indexOf(Math.max.apply(null, weights))) : k];
    var length = Math.hypot(query.at[0], query.at[1]), along = length ? scores[k] / (length * length) : 0;
    var end = [query.at[0] * along, query.at[1] * along];
    line(shadow, [0, 0], end);
    line(foot, key.at, end);
    message.replaceChildren("'" + query.name + "' · '" + key.name + "' = " + bracketed(query.at[0]) + bracketed(key.at[0]) + " + "
      + bracketed(query.at[1]) + bracketed(key.at[1]) + " = ", h("b", {}, fixed(scores[k], 2)), ", weight ", h("b", {}, fixed(weights[k], 3)),
      ". The weighted mean of the values: ", h("b", {}, pair(mean)), ".");
    var reached = goals.filter(function (goal) {
      var others = weights.filter(function (_, i) { return i !== goal.key; });
      var least = goal.over === null ? Math.max.apply(null, others) + 1e-9 : goal.over;
      if (goal.done || weights[goal.key] <= least) return false;
      return goal.done = true;
    });
    goals.forEach(function (goal) { goal.line.textContent = (goal.done ? "✓ done: " : "○ ") + goal.words; });
    if (done || reached.length) say(said, reached.map(function (goal) { return "Done: " + goal.words + " "; }).join("") + message.textContent);
    host.numbers = { scores: scores, weights: weights, answer: mean };
  }
  function bracketed(number) { return "(" + fixed(number, 2) + ")"; }
  function line(element, from, to) {
    element.setAttribute("x1", x(from[0]));
    element.setAttribute("y1", y(from[1]));
    element.setAttribute("x2", x(to[0]));
    element.setAttribute("y2", y(to[1]));
  }
  update(false);
}
