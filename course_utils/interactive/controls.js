// Controls and numbers that several pieces share.

// fixed: a number with so many decimals, with a proper minus sign and no negative zero
function fixed(number, decimals) {
  var text = number.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// slider("d_k", {min: 0, max: 9, step: 1, value: 6, text: function (v) { … }}, changed): a native range with its name on the
// left and its value in words on the right. `changed(done)` is called at each move, with done = true once it is let go.
function slider(name, options, changed) {
  var input = h("input", { type: "range", min: options.min, max: options.max, step: options.step });
  var output = h("output", { "aria-hidden": "true" });
  var box = h("label", { class: "slider" }, h("span", {}, name), input, output);
  var made = {
    box: box, input: input,
    get value() { return Number(input.value); },
    set value(number) { input.value = number; speak(); },
  };
  function speak() {
    output.textContent = options.text(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  }
  input.addEventListener("input", function () { speak(); changed(false); });
  input.addEventListener("change", function () { changed(true); });
  made.value = options.value;
  return made;
}

// weightBar: a bar for a number from 0 to 1, with the number beside it
function weightBar(kind) {
  var fill = h("span", { class: "fill " + (kind || "") }), text = h("span", { class: "number" });
  var box = h("span", { class: "bar" }, h("span", { class: "track" }, fill), text);
  return {
    box: box,
    set: function (share, words) { fill.style.width = 100 * Math.max(0, Math.min(1, share)) + "%"; text.textContent = words; },
  };
}

// softmax of a list of numbers
function softmax(scores) {
  var most = Math.max.apply(null, scores);
  var exps = scores.map(function (score) { return Math.exp(score - most); });
  var sum = exps.reduce(function (a, b) { return a + b; }, 0);
  return exps.map(function (e) { return e / sum; });
}
