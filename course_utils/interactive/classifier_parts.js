// What classifier_view and gates_view draw: the answer, the words with their numbers, switches for heads, one head's map.
// Each make…() returns {element, draw(state)}; state is what classifier_view.js keeps. Text goes in by textContent only.

function two(value) { return value.toFixed(2); }
function three(value) { return value.toFixed(3); }
function signed(value, digits) {
  var text = Math.abs(value).toFixed(digits);
  return (Number(text) === 0 ? "" : value > 0 ? "+" : "−") + text;
}
function quoted(tokens) { return tokens.map(function (token) { return "‘" + isolated(cut(shown(token), 24)) + "’"; }).join(", "); }
// isolated: a word written from right to left keeps its place among words written from left to right
function isolated(text) { return /[\u0590-\u08ff\ufb1d-\ufefc]/.test(text) ? "\u2068" + text + "\u2069" : text; }
function cut(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }
function headName(layer, head) { return layer + "." + head; }

// scaleEnd: where the colours of weights end, in steps, so that they don't change with every letter
function scaleEnd(weights) {
  var largest = weights.reduce(function (a, b) { return Math.max(a, b); }, 0);
  return [0.02, 0.05, 0.1, 0.25, 0.5].find(function (end) { return largest <= end; }) || 1;
}

// colours: 101 steps of the weights' colours, computed once for each theme
function makeColours(host) {
  var steps = null;
  host.addEventListener("themechange", function () { steps = null; });
  return function (share) {
    if (!steps) steps = Array.from({ length: 101 }, function (_, k) { return weightColour(k / 100, host); });
    return steps[Math.round(100 * Math.max(0, Math.min(1, share)))];
  };
}

// makeRamp: a bar in the weights' colours
function makeRamp(colour, host) {
  var ramp = h("i", { class: "ramp" });
  function paintRamp() {
    var steps = [0, 0.2, 0.4, 0.6, 0.8, 1].map(function (share) { return colour(share).background; });
    ramp.style.background = "linear-gradient(90deg," + steps.join(",") + ")";
  }
  paintRamp();
  host.addEventListener("themechange", paintRamp);
  return ramp;
}

// makeAnswer: label, probability as a number and a bar with one half marked, and what it was before
function makeAnswer(labels) {
  var label = h("strong", { class: "label" }), number = h("span", { class: "number" }), change = h("span", { class: "change" });
  var fill = h("div", { class: "fill" });
  var bar = h("div", { class: "bar", "aria-hidden": "true" }, fill, h("i", { class: "half" }));
  var element = h("div", { class: "answer" }, h("div", null, label, number, change), bar,
    h("div", { class: "ends soft", "aria-hidden": "true" }, h("span", null, labels[0] + " 0"), h("span", null, "0.5"),
      h("span", null, "1 " + labels[1])));
  return {
    element: element,
    draw: function (probability, said) {
      var positive = probability > 0.5;
      label.textContent = labels[positive ? 1 : 0];
      label.className = "label " + (positive ? "positive" : "negative");
      number.textContent = "probability of ‘" + labels[1] + "’ " + three(probability);
      change.textContent = said;
      fill.className = "fill " + (positive ? "positive" : "negative");
      fill.style.left = 100 * Math.min(0.5, probability) + "%";
      fill.style.width = 100 * Math.abs(probability - 0.5) + "%";
    },
  };
}

// makeWords: one button a token with its pooling weight and its occlusion score; on(what, i): "pick", "look" (i or null), "edit"
function makeWords(labels, rows, colour, on) {
  var chips = [], focus = 0;
  var list = h("div", { class: "words", role: "toolbar", "aria-label": "The words that the model reads; arrow keys move" });
  var gap = h("span", { class: "gap soft" });
  list.addEventListener("keydown", function (event) {
    var step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step) { event.preventDefault(); moveTo(Math.max(0, Math.min(chips.length - 1, focus + step))); }
    if (event.key === "F2") { event.preventDefault(); on("edit", focus); }
    if (event.key === "Escape") on("pick", null);
  });
  list.addEventListener("pointerleave", function () { on("look", null); });

  function moveTo(i) {
    if (chips[focus]) chips[focus].button.tabIndex = -1;
    focus = i;
    if (chips[i]) { chips[i].button.tabIndex = 0; chips[i].button.focus(); }
  }

  function chip(i) {
    var made = { word: h("bdi", { class: "word" }) };
    made.button = h("button", {
      type: "button", tabindex: "-1",
      onclick: function () { focusOnly(i); on("pick", i); },
      ondblclick: function () { on("edit", i); },
      onpointerenter: function (event) { if (event.pointerType === "mouse") on("look", i); },
      onfocus: function () { if (made.button.matches(":focus-visible")) on("look", i); },
      onblur: function () { on("look", null); },
    }, made.word);
    rows.forEach(function (row) { made.button.append(made[row] = h("span", { class: row })); });
    return made;
  }

  function focusOnly(i) { chips.forEach(function (one, k) { one.button.tabIndex = k === i ? 0 : -1; }); focus = i; }

  return {
    element: list,
    focus: moveTo,
    draw: function (state) {
      var n = state.read.tokens.length, end = scaleEnd(state.result.pooling);
      while (chips.length > n) chips.pop().button.remove();
      while (chips.length < n) { chips.push(chip(chips.length)); list.append(chips[chips.length - 1].button); }
      gap.remove();
      if (state.read.dropped) {
        gap.textContent = "… " + state.read.dropped + " not read …";
        list.insertBefore(gap, chips[state.read.from].button);
      }
      if (focus >= n) focus = Math.max(0, n - 1);
      chips.forEach(function (one, i) {
        var token = state.read.tokens[i].text, known = state.read.known[i], words = ["word " + (i + 1) + " of " + n + ": " + token];
        one.button.tabIndex = i === focus ? 0 : -1;
        one.word.textContent = cut(shown(token), 30);
        one.button.title = token.length > 30 ? cut(token, 300) : "";
        one.button.className = (known ? "" : "unknown ") + (i === state.picked ? "picked " : "") + (i === state.looked ? "looked " : "") +
          (state.changed && state.changed[i] ? "changed" : "");
        one.button.setAttribute("aria-pressed", i === state.picked ? "true" : "false");
        if (!known) words.push("unknown");
        if (state.changed && state.changed[i]) words.push("changed");
        if (one.pooling) {
          var weight = state.result.pooling[i], look = colour(weight / end);
          one.pooling.textContent = end < 0.25 ? three(weight) : two(weight);
          one.pooling.style.background = look.background;
          one.pooling.style.color = look.ink;
          words.push("pooling weight " + one.pooling.textContent);
        }
        if (one.occlusion) {
          var score = state.occlusion[i], empty = score === undefined;
          one.occlusion.textContent = empty ? "…" : signed(score, 2);
          one.occlusion.className = "occlusion " + (empty || Math.abs(score) < 0.005 ? "" : score > 0 ? "positive" : "negative");
          one.occlusion.style.setProperty("--share", empty ? 0 : Math.min(1, Math.abs(score)));
          if (!empty) words.push("without it the probability changes by " + signed(-score, 2));
        }
        one.button.setAttribute("aria-label", words.join(", "));
      });
    },
  };
}

// newWords: for each token whether it is new compared with `before`, by the longest common subsequence; none if nothing is old
function newWords(before, now) {
  var width = before.length + 1, length = new Uint16Array((now.length + 1) * width), i, j, fresh = now.map(function () { return true; });
  for (i = now.length - 1; i >= 0; i--) {
    for (j = before.length - 1; j >= 0; j--) {
      length[i * width + j] = now[i].text === before[j].text ? 1 + length[(i + 1) * width + j + 1]
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  for (i = j = 0; i < now.length && j < before.length;) {
    if (now[i].text === before[j].text) { fresh[i++] = false; j++; }
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) i++;
    else j++;
  }
  return 2 * length[0] > now.length ? fresh : [];
}

// makeSwitches: a gate for each head; on(layer, head)
function makeSwitches(config, on) {
  var all = [], element = h("div", { class: "switches", role: "group", "aria-label": "Gates of the heads" });
  for (var layer = 0; layer < config.num_layers; layer++) {
    var row = h("div", { class: "layer" }, h("span", { class: "soft" }, "Layer " + layer));
    for (var head = 0; head < config.num_heads; head++) row.append(one(layer, head));
    element.append(row);
  }
  function one(layer, head) {
    var word = h("span", { class: "onoff" });
    var button = h("button", { type: "button", role: "switch", class: "switch", "aria-label": "Head " + headName(layer, head),
      onclick: function () { on(layer, head); } }, headName(layer, head) + " ", word);
    all.push({ layer: layer, head: head, button: button, word: word });
    return button;
  }
  return {
    element: element,
    draw: function (state) {
      all.forEach(function (one) {
        var open = state.gates[one.layer][one.head] === 1;
        one.button.setAttribute("aria-checked", open ? "true" : "false");
        one.word.textContent = open ? "on" : "off";
      });
    },
  };
}

// makeMap: one head's weights as a grid, with a picker of heads; on("head", [layer, head]) and on("look", i or null)
function makeMap(config, colour, host, on) {
  var canvas = h("canvas", { role: "img" }), about = h("p", { class: "row" }), pickers = [], place = null;
  var picker = h("div", { class: "picker", role: "group", "aria-label": "Map of which head" }, h("span", { class: "soft" }, "Map of head"));
  for (var layer = 0; layer < config.num_layers; layer++) {
    for (var head = 0; head < config.num_heads; head++) picker.append(one(layer, head));
  }
  function one(layer, head) {
    var button = h("button", { type: "button", onclick: function () { on("head", [layer, head]); } }, headName(layer, head));
    pickers.push({ layer: layer, head: head, button: button });
    return button;
  }
  function rowAt(event) {
    if (!place) return null;
    var box = canvas.getBoundingClientRect(), i = Math.floor((event.clientY - box.top - place.top) / place.cell);
    return i >= 0 && i < place.n ? i : null;
  }
  canvas.addEventListener("pointermove", function (event) { on("look", rowAt(event)); });
  canvas.addEventListener("pointerdown", function (event) { on("look", rowAt(event)); });
  canvas.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") on("look", null); });
  function draw(state) {
    pickers.forEach(function (one) {
      one.button.setAttribute("aria-pressed", one.layer === state.layer && one.head === state.head ? "true" : "false");
    });
    var n = state.read.tokens.length, weights = state.result.attentions[state.layer][state.head];
    var row = state.looked !== null && state.looked < n ? state.looked : state.picked;
    canvas.hidden = n === 0;
    place = n ? paint(canvas, state.read.tokens, weights, row, colour, host) : null;
    var off = state.gates[state.layer][state.head] === 0 ? " This head is switched off: what it reads adds nothing to the answer." : "";
    if (n === 0) about.textContent = "No words, no map.";
    else about.textContent = (row === null || row === undefined ? "Point at a word to read its row." : described(row)) + off;
    canvas.setAttribute("aria-label", "Head " + headName(state.layer, state.head) + ", " + n + " queries by " + n +
      " keys. Walk through the words above with the arrow keys to read a row.");

    function described(row) {
      var best = Array.from({ length: n }, function (_, k) { return k; })
        .sort(function (a, b) { return weights[row * n + b] - weights[row * n + a] || a - b; }).slice(0, 4);
      return quoted([state.read.tokens[row].text]) + " attends to " + best.map(function (k) {
        return quoted([state.read.tokens[k].text]) + " " + two(weights[row * n + k]);
      }).join(", ") + (n > 4 ? ", …" : ".");
    }
  }
  var scale = h("div", { class: "scale soft" }, "0 ", makeRamp(colour, host),
    " 1 · row: the word that attends; column: the word it attends to");
  return { element: h("div", { class: "map" }, picker, h("div", { class: "scroll" }, canvas), scale, about), draw: draw };
}

// squares: n × n weights as a picture of one pixel each
function squares(weights, n, colour) {
  var small = document.createElement("canvas"), steps = [];
  small.width = small.height = n;
  for (var k = 0; k <= 100; k++) steps.push(colour(k / 100).background.match(/\d+/g).map(Number));
  var picture = new ImageData(n, n);
  for (var i = 0; i < n * n; i++) {
    var rgb = steps[Math.round(100 * weights[i])];
    for (var c = 0; c < 3; c++) picture.data[4 * i + c] = rgb[c];
    picture.data[4 * i + 3] = 255;
  }
  small.getContext("2d").putImageData(picture, 0, 0);
  return small;
}

// paint: the grid on a canvas, labels where there is room, numbers up to 12 tokens; returns where the rows are
function paint(canvas, tokens, weights, row, colour, host) {
  var n = tokens.length, style = getComputedStyle(host), ink = style.getPropertyValue("--ink"), room = canvas.parentNode.clientWidth || 600;
  var font = room < 420 ? 12 : 14, pen = canvas.getContext("2d"), family = "px 'DejaVu Sans','Segoe UI',system-ui,sans-serif";
  pen.font = font + family;
  var names = tokens.map(function (token) { return cut(shown(token.text), 12); });
  var label = Math.ceil(names.reduce(function (most, name) { return Math.max(most, pen.measureText(name).width); }, 0)) + 8;
  var cell = Math.max(2, Math.min(30, Math.floor((room - label - 2) / n))), every = cell >= font - 1;
  if (!every) cell = Math.max(2, Math.min(cell, Math.floor(520 / n)));
  var left = label, top = every ? label : 4, size = n * cell, ratio = window.devicePixelRatio || 1, k;
  canvas.width = (left + size + 2) * ratio;
  canvas.height = (top + size + 2) * ratio;
  canvas.style.width = left + size + 2 + "px";
  canvas.style.height = top + size + 2 + "px";
  pen.scale(ratio, ratio);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(squares(weights, n, colour), left, top, size, size);
  pen.font = font + family;
  pen.textBaseline = "middle";
  for (k = 0; k < n; k++) {
    if (!every && k !== row) continue;
    pen.fillStyle = ink;
    pen.font = (k === row ? "bold " : "") + font + family;
    pen.textAlign = "right";
    pen.fillText(names[k], left - 4, top + (k + 0.5) * cell, label - 4);
    pen.save();
    pen.translate(left + (k + 0.5) * cell, top - 4);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    if (every) pen.fillText(names[k], 0, 0, label - 4);
    pen.restore();
  }
  if (n <= 12 && cell >= 26) {
    pen.textAlign = "center";
    pen.font = Math.min(12, cell / 2.7) + family;
    for (var q = 0; q < n; q++) {
      for (k = 0; k < n; k++) {
        pen.fillStyle = colour(weights[q * n + k]).ink;
        pen.fillText(weights[q * n + k].toFixed(2).replace(/^0/, ""), left + (k + 0.5) * cell, top + (q + 0.5) * cell);
      }
    }
  }
  pen.strokeStyle = style.getPropertyValue("--line");
  pen.strokeRect(left - 0.5, top - 0.5, size + 1, size + 1);
  if (row !== null && row !== undefined) {
    pen.strokeStyle = style.getPropertyValue("--focus");
    pen.lineWidth = 2;
    pen.strokeRect(left - 1, top + row * cell - 1, size + 2, cell + 2);
  }
  return { n: n, top: top, cell: cell };
}
