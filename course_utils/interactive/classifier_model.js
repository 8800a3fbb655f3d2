// The course's trained classifier in plain JavaScript: words, vectors, rotary positions, pre-norm blocks, pooling, answer.
// Does what course_utils/classifier.py does in evaluation mode; classifier_view.py says which models it can run.

// classifierModel(saved): `saved` is what classifier_view.py wrote, its weights 16-bit floats in base64. Returns
//   tokenize(text): [{text, start, end}], the words and punctuation in lower case, with their range in the text
//   read(text): {tokens, ids, known: [bool], from, dropped}: what the model reads, `dropped` tokens missing before token `from`
//   run(ids, {gates, weights}): {probability, pooling, attentions}: the second label's probability; gates[layer][head] is 1 or 0;
//     with `weights` attentions[layer][head] is an array of query × key
//   occlusion(ids, i, {gates, how}): the probability without token i: how "unk" or "delete"
function classifierModel(saved) {
  var c = saved.config, d = c.d_model, heads = c.num_heads, width = d / heads, scale = 1 / Math.sqrt(width);
  var words = saved.words, index = new Map(words.map(function (word, i) { return [word, i]; }));
  var numbers = halfFloats(saved.weights), at = 0, tokenize = tokenizer(saved.plain);

  function take(count) { at += count; return numbers.subarray(at - count, at); }
  function linear(wide, narrow) { return { weight: take(wide * narrow), bias: take(wide), wide: wide, narrow: narrow }; }
  function norm() { return { weight: take(d), bias: take(d) }; }

  var embedding = take(words.length * d), blocks = [];
  for (var i = 0; i < c.num_layers; i++) {
    blocks.push({ query: linear(d, d), key: linear(d, d), value: linear(d, d), output: linear(d, d), expand: linear(c.d_ff, d),
      contract: linear(d, c.d_ff), attentionNorm: norm(), feedForwardNorm: norm() });
  }
  var lastNorm = norm(), poolingQuery = c.pooling === "attention" ? take(d) : null, output = linear(2, d);
  if (at !== numbers.length) throw new Error("expected " + at + " weights, got " + numbers.length);

  var cos = new Float32Array(c.max_len * width / 2), sin = new Float32Array(cos.length);
  for (var p = 0; p < c.max_len; p++) {
    for (var pair = 0; pair < width / 2; pair++) {
      var angle = p * Math.pow(c.base, -2 * pair / width);
      cos[p * width / 2 + pair] = Math.cos(angle);
      sin[p * width / 2 + pair] = Math.sin(angle);
    }
  }

  // apply: x (n, narrow) -> (n, wide)
  function apply(layer, x, n) {
    var result = new Float32Array(n * layer.wide), narrow = layer.narrow, wide = layer.wide;
    for (var t = 0; t < n; t++) {
      for (var o = 0; o < wide; o++) {
        var sum = layer.bias[o];
        for (var k = 0, row = o * narrow, from = t * narrow; k < narrow; k++) sum += layer.weight[row + k] * x[from + k];
        result[t * wide + o] = sum;
      }
    }
    return result;
  }

  function normalised(layer, x, n) {
    var result = new Float32Array(n * d);
    for (var t = 0; t < n; t++) {
      var mean = 0, variance = 0, k;
      for (k = 0; k < d; k++) mean += x[t * d + k] / d;
      for (k = 0; k < d; k++) variance += Math.pow(x[t * d + k] - mean, 2) / d;
      var shrink = 1 / Math.sqrt(variance + c.eps);
      for (k = 0; k < d; k++) result[t * d + k] = (x[t * d + k] - mean) * shrink * layer.weight[k] + layer.bias[k];
    }
    return result;
  }

  function rotate(x, n) {
    if (c.positions !== "rotary") return;
    for (var t = 0; t < n; t++) {
      for (var k = 0; k < d; k += 2) {
        var where = t * width / 2 + (k % width) / 2, even = x[t * d + k], odd = x[t * d + k + 1];
        x[t * d + k] = even * cos[where] - odd * sin[where];
        x[t * d + k + 1] = even * sin[where] + odd * cos[where];
      }
    }
  }

  // attend: weights of one head, all queries, and its context in its columns of `context`
  function attend(query, key, value, n, head, gate, context, kept) {
    var first = head * width, row = new Float32Array(n);
    for (var q = 0; q < n; q++) {
      var largest = -Infinity, total = 0, k, j;
      for (k = 0; k < n; k++) {
        var score = 0;
        for (j = first; j < first + width; j++) score += query[q * d + j] * key[k * d + j];
        row[k] = score * scale;
        if (row[k] > largest) largest = row[k];
      }
      for (k = 0; k < n; k++) total += row[k] = Math.exp(row[k] - largest);
      for (k = 0; k < n; k++) {
        var weight = row[k] / total;
        if (kept) kept[q * n + k] = weight;
        for (j = first; j < first + width; j++) context[q * d + j] += gate * weight * value[k * d + j];
      }
    }
  }

  function run(ids, options) {
    var n = ids.length, gates = options && options.gates, attentions = [], x = new Float32Array(n * d), t, k;
    for (t = 0; t < n; t++) for (k = 0; k < d; k++) x[t * d + k] = embedding[ids[t] * d + k] * c.embedding_scale;
    blocks.forEach(function (block, l) {
      var input = normalised(block.attentionNorm, x, n), context = new Float32Array(n * d), maps = [];
      var query = apply(block.query, input, n), key = apply(block.key, input, n), value = apply(block.value, input, n);
      rotate(query, n);
      rotate(key, n);
      for (var head = 0; head < heads; head++) {
        var kept = options && options.weights ? new Float32Array(n * n) : null;
        attend(query, key, value, n, head, gates ? gates[l][head] : 1, context, kept);
        maps.push(kept);
      }
      attentions.push(maps);
      x = sum(x, apply(block.output, context, n));
      var inner = apply(block.expand, normalised(block.feedForwardNorm, x, n), n);
      for (var i = 0; i < inner.length; i++) inner[i] = gelu(inner[i]);
      x = sum(x, apply(block.contract, inner, n));
    });
    x = normalised(lastNorm, x, n);
    var pooling = poolingWeights(x, n), pooled = new Float32Array(d);
    for (t = 0; t < n; t++) for (k = 0; k < d; k++) pooled[k] += pooling[t] * x[t * d + k];
    var logits = apply(output, pooled, 1);
    return { probability: 1 / (1 + Math.exp(logits[0] - logits[1])), pooling: pooling, attentions: attentions };
  }

  function poolingWeights(x, n) {
    var weights = new Float32Array(n).fill(1 / n), largest = -Infinity, total = 0, t, k;
    if (!poolingQuery) return weights;
    for (t = 0; t < n; t++) {
      var score = 0;
      for (k = 0; k < d; k++) score += poolingQuery[k] * x[t * d + k];
      weights[t] = score / Math.sqrt(d);
      if (weights[t] > largest) largest = weights[t];
    }
    for (t = 0; t < n; t++) total += weights[t] = Math.exp(weights[t] - largest);
    return weights.map(function (weight) { return weight / total; });
  }

  function occlusion(ids, i, options) {
    var without = Array.from(ids);
    if (options.how === "unk") without[i] = c.unk_id;
    else without.splice(i, 1);
    return run(without, { gates: options.gates }).probability;
  }

  function read(text) {
    var tokens = tokenize(text), all = tokens.length, head = Math.floor(c.max_len / 4);
    if (all > c.max_len) tokens = tokens.slice(0, head).concat(tokens.slice(all - (c.max_len - head)));
    return {
      tokens: tokens, from: head, dropped: all - tokens.length,
      ids: tokens.map(function (token) { return index.has(token.text) ? index.get(token.text) : c.unk_id; }),
      known: tokens.map(function (token) { return index.has(token.text); }),
    };
  }
  return { config: c, tokenize: tokenize, read: read, run: run, occlusion: occlusion };
}

// tokenizer(rules): a function text -> [{text, start, end}]. Without rules, by WordTokenizer's regular expression; with those of
// course_utils/training/plain_text.py, as PlainWords reads: the words of the text's plain form, with their range in the text.
// Python's \w is letters, numbers and '_', its \s the list of spaces below.
var SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000", WORD = "\\p{L}\\p{N}_", MARKS = "\\p{M}";
var PATTERN = new RegExp("<br[" + SPACE + "]*/?>|([" + WORD + "]+(?:['’][" + WORD + "]+)*|[^" + WORD + SPACE + "])", "gu");
function tokenizer(rules) {
  var make = rules && plainForm(rules), pattern = rules ? compiled(rules.words) : PATTERN;
  return function (text) {
    var plain = make ? make(text) : { text: text };
    return Array.from(plain.text.matchAll(pattern)).filter(function (m) { return m[1]; }).map(function (m) {
      var end = m.index + m[0].length;
      return { text: m[1].toLowerCase(), start: make ? plain.starts[m.index] : m.index, end: make ? plain.ends[end - 1] : end };
    });
  };
}

function compiled(rule) {
  var here = { letter: "[" + WORD + MARKS + "]", marks: MARKS, word_and_space: WORD + SPACE, word: "[" + WORD + "]", space: "[" + SPACE + "]" };
  return new RegExp(rule.replace(/\{([a-z_]+)\}/g, function (all, name) { return here[name]; }), "gu");
}

// plainForm(rules): a function text -> {text, starts, ends}, the plain form and the range of each of its characters in the text
function plainForm(rules) {
  var character = compiled(rules.character), apostrophe = compiled(rules.apostrophe), quote = compiled(rules.quote);
  var dropped = new RegExp("[" + rules.dropped + "]", "gu");
  return function (text) {
    var plain = "", starts = [], ends = [];
    Array.from(text.matchAll(character)).forEach(function (m) {
      var made = Array.from(m[0].replace(dropped, "").normalize("NFC")).map(function (c) { return rules.forms[c] || c; }).join("");
      var start = m.index, size = m[0].length, same = made.length === size;
      for (var i = 0; i < made.length; i++) {
        starts.push(same ? start + i : start);
        ends.push(same ? start + i + 1 : start + size);
      }
      plain += made;
    });
    return { text: plain.replace(apostrophe, "'").replace(quote, "'"), starts: starts, ends: ends };
  };
}

// halfFloats: base64 of little-endian 16-bit floats -> Float32Array
function halfFloats(base64) {
  var bytes = atob(base64), result = new Float32Array(bytes.length / 2);
  for (var i = 0; i < result.length; i++) {
    var low = bytes.charCodeAt(2 * i), high = bytes.charCodeAt(2 * i + 1), exponent = (high >> 2) & 31;
    var fraction = ((high & 3) << 8) | low, size = exponent ? (1 + fraction / 1024) * Math.pow(2, exponent - 15) : fraction * Math.pow(2, -24);
    result[i] = high & 128 ? -size : size;
  }
  return result;
}

function sum(a, b) { return a.map(function (value, i) { return value + b[i]; }); }

// gelu: x Φ(x), with erf to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26)
function gelu(x) {
  var z = Math.abs(x) / Math.SQRT2, t = 1 / (1 + 0.3275911 * z);
  var tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-z * z);
  return x >= 0 ? x * (1 - tail / 2) : x * tail / 2;
}
