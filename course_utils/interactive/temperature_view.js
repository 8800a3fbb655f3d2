function build(root, data, host) {
  var columns = ["key", "score at d_k = 1", "into softmax", "weight w", "slope w(1 − w)"];
  var said = h("p", { class: "said", "aria-live": "polite" }), message = h("p", { class: "message" });
  var width = slider("width d_k", {
    min: 0, max: 9, step: 1, value: Math.round(Math.log2(data.d_k)), text: function (v) { return String(Math.pow(2, v)); },
  }, update);
  var temperature = slider("temperature", {
    min: 0.1, max: 10, step: 0.1, value: data.temperature, text: function (v) { return fixed(v, 1); },
  }, update);
  var divide = h("input", { type: "checkbox", onchange: function () { update(true); } });
  divide.checked = data.divide;

  var keys = data.tokens.map(function (token, k) {
    var key = { name: shown(token), weight: weightBar(), slope: weightBar("slope"), enters: h("span", { class: "right" }) };
    key.slider = h("input", { type: "range", min: -data.limit, max: data.limit, step: 0.1, "aria-label": "score of " + key.name });
    key.slider.value = data.scores[k];
    key.number = h("span", { class: "right" });
    key.slider.addEventListener("input", function () { update(false); });
    key.slider.addEventListener("change", function () { update(true); });
    key.row = row("tr", h("th", { scope: "row", role: "rowheader" }, key.name), h("span", { class: "score" }, key.slider, key.number),
      key.enters, key.weight.box, key.slope.box);
    return key;
  });
  // row: roles too, because on a narrow screen the style sheet lays a row out as a grid
  function row(tag, head) {
    return h(tag, { role: "row" }, head, Array.prototype.slice.call(arguments, 2).map(function (inside, k) {
      return h("td", { role: "cell", "data-label": columns[k + 1] }, inside);
    }));
  }
  var total = { entropy: h("b"), slope: h("b") };
  root.append(
    width.box, temperature.box,
    h("label", { class: "check" }, divide, "divide by √d_k"),
    h("table", { role: "table" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map(function (name) {
        return h("th", { scope: "col", role: "columnheader" }, name);
      }))),
      h("tbody", { role: "rowgroup" }, keys.map(function (key) { return key.row; }))),
    h("p", { class: "totals" }, "Entropy ", total.entropy, " of log " + keys.length + "; the slopes add up to ", total.slope, "."),
    message, h("button", { type: "button", onclick: reset }, "Start again"), said);

  function reset() {
    width.value = Math.round(Math.log2(data.d_k));
    temperature.value = data.temperature;
    divide.checked = data.divide;
    keys.forEach(function (key, k) { key.slider.value = data.scores[k]; });
    update(true);
  }

  // done: whether a control has been let go; only then is the result read out
  function update(done) {
    var d_k = Math.pow(2, width.value), factor = (divide.checked ? 1 : Math.sqrt(d_k)) / temperature.value;
    var scores = keys.map(function (key) { return Number(key.slider.value) * factor; });
    var weights = softmax(scores), slopes = weights.map(function (w) { return w * (1 - w); });
    var slope = slopes.reduce(function (a, b) { return a + b; }, 0);
    var entropy = weights.reduce(function (sum, w) { return w > 0 ? sum - w * Math.log(w) : sum; }, 0) / Math.log(weights.length);
    keys.forEach(function (key, k) {
      key.number.textContent = fixed(Number(key.slider.value), 1);
      key.slider.setAttribute("aria-valuetext", key.number.textContent);
      key.enters.textContent = fixed(scores[k], 2);
      key.weight.set(weights[k], fixed(weights[k], 3));
      key.slope.set(4 * slopes[k], fixed(slopes[k], 3));          // a quarter is the largest there is
    });
    total.entropy.textContent = fixed(entropy, 3);
    total.slope.textContent = fixed(slope, 3);
    var first = weights.indexOf(Math.max.apply(null, weights)), left = slope / (1 - 1 / weights.length);
    message.textContent = left < 0.02
      ? "Frozen: '" + keys[first].name + "' has all the weight. Move its score a little: no weight moves, so nothing would be learned."
      : left < 0.5
        ? "Sharp: '" + keys[first].name + "' has most of the weight, and the slope is " + fixed(slope, 3) + " where equal weights would have "
          + fixed(1 - 1 / weights.length, 3) + "."
        : "Soft: every key has some weight. Move a score a little and the weights follow, so there is something to learn from.";
    if (done) say(said, message.textContent + " Weights: " + keys.map(function (key, k) { return key.name + " " + fixed(weights[k], 2); }).join(", "));
    host.numbers = { scores: scores, weights: weights, slopes: slopes, slope: slope, entropy: entropy };
  }
  update(false);
}
