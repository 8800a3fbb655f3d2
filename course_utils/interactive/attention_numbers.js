// The numbers of an attention view: decoded weights, means of heads, rows and columns, and their colours.

// readKind: one kind of attention of one side; layers[i].heads maps of rows (query) by width (the keys, then the rests)
function readKind(kind) {
  var keys = kind.keys || kind.queries;
  return { name: kind.name, note: kind.note || "", queries: kind.queries, keys: keys, oneText: !kind.keys, pages: kind.pages, queryPages: kind.queryPages,
    layers: kind.layers.map(function (layer) {
      var shape = layer.weights.shape;
      return { number: layer.number, heads: shape[0], width: shape[2], step: layer.weights.step, steps: decode(layer.weights),
        size: shape[1] * shape[2] };
    }) };
}

// mapOf: the map of one head (a number, or "mean"): its steps, row by row
function mapOf(layer, head) {
  if (head !== "mean") return layer.steps.subarray(head * layer.size, (head + 1) * layer.size);
  if (!layer.mean) {
    layer.mean = new Float32Array(layer.size);
    for (var i = 0; i < layer.steps.length; i++) layer.mean[i % layer.size] += layer.steps[i] / layer.heads;
  }
  return layer.mean;
}

// lineOf: what token t attends to (its row), or is attended to by (its column), as weights
function lineOf(kind, layer, head, t, from) {
  var map = mapOf(layer, head), line = new Float64Array(from ? kind.keys.length : kind.queries.length);
  for (var i = 0; i < line.length; i++) line[i] = layer.step * (from ? map[t * layer.width + i] : map[i * layer.width + t]);
  return line;
}

// restOf: what the keys that a page doesn't show add up to, in steps, for the row of a map that begins at `start`: the rounded
// weights, and how far their sum is from the rounded sum (see slack in attention_data.py)
function restOf(kind, map, start, page) {
  var keys = kind.keys.length, hidden = keys, sum = 0;
  for (var i = 0; i < keys; i++) sum += map[start + i];
  kind.pages[page].ranges.forEach(function (range) {
    for (var i = range[0]; i < range[1]; i++) { sum -= map[start + i]; hidden--; }
  });
  return sum + map[start + keys + page] - Math.min(Math.floor((hidden + 1) / 2), 500);
}

// largestIn: the largest weight of a head's map, rests apart
function largestIn(kind, layer, head) {
  var map = mapOf(layer, head), most = 0;
  for (var i = 0; i < map.length; i++) if (i % layer.width < kind.keys.length && map[i] > most) most = map[i];
  return most * layer.step;
}

// niceLimit: the smallest of 1, 2, 3, 4, 5, 6, 8, 10 times a power of ten that is not below
function niceLimit(largest) {
  if (!(largest > 0)) return 1;
  var power = Math.pow(10, Math.floor(Math.log10(largest) + 1e-9));
  var step = [1, 2, 3, 4, 5, 6, 8, 10].find(function (one) { return largest <= one * power * (1 + 1e-6); }) || 10;
  return Number((step * power).toPrecision(6));
}

// shades: 256 colours from zero to the end of the scale, with the ink for each, and packed for the pixels of a canvas
function shades(host) {
  var made = { css: [], ink: [], packed: new Uint32Array(256) };
  for (var k = 0; k < 256; k++) {
    var colour = weightColour(k / 255, host), rgb = colour.background.match(/\d+/g).map(Number);
    made.css.push(colour.background);
    made.ink.push(colour.ink);
    made.packed[k] = (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;
  }
  return made;
}

function shadeOf(weight, scale) { return Math.max(0, Math.min(255, Math.round(weight / scale * 255))); }

// written: a weight as it is printed; halves go up, as they would on paper
function written(weight, decimals) { return (weight + 1e-9).toFixed(weight >= 100 ? 0 : weight >= 10 ? 1 : decimals || 2); }

// positionsOn: the positions of the tokens that a page shows, "rest" among them where others are added up
function positionsOn(pages, page, length) {
  var shown = [], all = pages.length - 1, ranges = pages.length ? pages[page].ranges : [[0, length]];
  ranges.forEach(function (range, k) {
    for (var i = range[0]; i < range[1]; i++) shown.push(i);
    if (pages.length && page < all && k === 0) shown.push("rest");
  });
  return shown;
}

// named: a token with its position, as in a sentence
function named(tokens, i) { return "‘" + shown(tokens[i]) + "’ (" + i + ")"; }

// largestThree: where the three largest weights are, fewer where fewer aren't zero
function largestThree(line) {
  var order = Array.from(line, function (_, i) { return i; }).sort(function (a, b) { return line[b] - line[a] || a - b; });
  return order.slice(0, 3).filter(function (i) { return line[i] > 0; });
}

// dotsOf: how many dots the small map of a head has at most in each direction
function dotsOf(kind) {
  return Math.max.apply(null, kind.layers.map(function (layer) { return layer.heads; })) > 4 ? 32 : 100;
}

// dots: rows by columns of weights on a small canvas; where there are more than `most`, a dot shows the largest that it covers
function dots(canvas, rows, columns, most, weight, scale, colours) {
  var tall = Math.min(rows, most), wide = Math.min(columns, most), largest = new Float32Array(tall * wide);
  for (var r = 0; r < rows; r++) {
    var start = Math.floor(r * tall / rows) * wide;
    for (var c = 0; c < columns; c++) {
      var place = start + Math.floor(c * wide / columns), value = weight(r, c);
      if (value > largest[place]) largest[place] = value;
    }
  }
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== tall) canvas.height = tall;
  var pen = canvas.getContext("2d"), image = pen.createImageData(wide, tall), out = new Uint32Array(image.data.buffer);
  for (var i = 0; i < out.length; i++) out[i] = colours.packed[shadeOf(largest[i], scale)];
  pen.putImageData(image, 0, 0);
}

// poolingStrip: the tokens of a page with their pooling weights
function poolingStrip(kind, pooling, positions, page) {
  var steps = decode(pooling), strip = h("div", { class: "flow pooling", role: "group", "aria-label": "Pooling weights" },
    h("span", { class: "caption" }, "Pooling weights"));
  strip.chips = positions.map(function (i) {
    var weight = pooling.step * (i === "rest" ? restOf(kind, steps, 0, page) : steps[i]);
    var chip = h("span", { class: i === "rest" ? "token rest" : "token" }, h("span", {}, i === "rest" ? "rest" : shown(kind.keys[i])),
      h("span", { class: "weight" }, written(weight)));
    strip.append(chip);
    return { element: chip, weight: i === "rest" ? -1 : weight };
  });
  return strip;
}
