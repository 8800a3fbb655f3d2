// An attention view: tokens to pick, the layer and the head, the map, every head; two sides share all that is picked.

function build(root, data, host) {
  var sides = data.sides.map(function (side) { return side.kinds.map(readKind); });
  var linked = sides.length === 1 || sameHeads();
  var pinned = false, colours = shades(host), heard = h("p", { class: "said", "aria-live": "polite" });
  var state = { kind: 0, from: true, side: 0, token: data.start.token, page: 0, queryPage: 0, own: false };
  var picks = sides.map(function () { return { layer: 0, head: data.start.head }; });
  picks[0].layer = sides[0][0].layers.findIndex(function (layer) { return layer.number === data.start.layer; });
  if (linked) picks.fill(picks[0]);
  else picks.slice(1).forEach(function (pick, k) { fit(pick, sides[k + 1][0]); });
  if (data.title) root.append(h("p", { class: "title" }, data.title));
  var bar = h("div", { class: "bar" }), views = h("div", { class: "views" + (sides.length > 1 ? " two" : "") });
  var legend = h("div", { class: "legend" });
  root.append(bar, views, legend, heard);
  var panels = sides.map(makePanel), controls = [];
  layOut();
  host.addEventListener("themechange", function () { colours = shades(host); drawAll(); });
  new ResizeObserver(function () { requestAnimationFrame(drawMaps); }).observe(root);
  root.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && pinned) { pinned = false; drawToken(true); }
  });

  function kindOf(side) { return sides[side][state.kind]; }
  function layerOf(side) { return kindOf(side).layers[picks[side].layer]; }
  function headOf(side) { return picks[side].head; }

  function sameHeads() {
    var told = sides.map(function (kinds) {
      return JSON.stringify(kinds.map(function (kind) {
        return kind.layers.map(function (layer) { return [layer.number, layer.heads]; });
      }));
    });
    return told[0] === told[1];
  }

  // fit: a pick that this kind has
  function fit(pick, kind) {
    if (!kind.layers[pick.layer]) pick.layer = 0;
    if (pick.head !== "mean" && pick.head >= kind.layers[pick.layer].heads) pick.head = 0;
  }

  // partner: the position on a side of the token that is picked, -1 where that text has none
  function partner(side) {
    if (side === state.side || state.token < 0) return state.token;
    var match = data.match[state.kind][state.from || kindOf(0).oneText ? "queries" : "keys"];
    return state.side === 0 ? match[state.token] : match.indexOf(state.token);
  }

  function headChoices(side) {
    var kind = kindOf(side), pick = picks[side];
    var layers = choice("Layer", kind.layers.map(function (layer, k) {
      return { text: String(layer.number), label: "layer " + layer.number, value: k };
    }), function () { return pick.layer; }, function (k) { pick.layer = k; fit(pick, kind); changed(true); });
    var heads = Array.from({ length: kind.layers[pick.layer].heads }, function (_, k) {
      return { text: String(k), label: "head " + k, value: k };
    });
    if (heads.length > 1) heads.push({ text: "mean", label: "mean of the heads", value: "mean" });
    return [layers, choice("Head", heads, function () { return pick.head; }, function (k) { pick.head = k; changed(); })];
  }

  function pageChoice(label, pages, name) {
    return choice(label, pages.map(function (page, k) { return { text: page.name, label: page.name + " tokens", value: k }; }),
      function () { return state[name]; }, function (k) { turn(name, k); });
  }

  function turn(name, k) {
    state[name] = k;
    state.cell = null;
    if (kindOf(0).oneText) state.page = state.queryPage = k;
    fillPanels();
    drawAll();
    controls.forEach(function (one) { one.show(); });
  }

  // layOut: controls and panels for the kind that is picked
  function layOut() {
    var kind = kindOf(0);
    controls = [];
    if (sides[0].length > 1) {
      controls.push(choice("Kind", sides[0].map(function (one, k) { return { text: one.name, label: one.name, value: k }; }),
        function () { return state.kind; }, function (k) {
          state.kind = k;
          picks.forEach(function (pick, side) { fit(pick, kindOf(side)); });
          state.token = 0;
          state.cell = null;
          state.side = state.page = state.queryPage = 0;
          layOut();
        }));
    }
    if (linked) controls = controls.concat(headChoices(0));
    controls.push(choice("Show what a token", [{ text: "attends to", label: "what it attends to: its row", value: true },
      { text: "is attended to by", label: "what attends to it: its column", value: false }],
    function () { return state.from; }, function (from) {
      if (!kind.oneText && from !== state.from) state.token = 0;
      state.from = from;
      changed();
    }));
    var longest = longestPages("pages"), longestQueries = longestPages("queryPages");
    if (longest.length) controls.push(pageChoice(kind.oneText ? "Tokens" : "Attended to", longest, "page"));
    if (!kind.oneText && longestQueries.length) controls.push(pageChoice("Attends from", longestQueries, "queryPage"));
    controls.push(choice("Darkest colour", [{ text: data.scale + ", all heads", label: "one scale for all heads", value: false },
      { text: "largest of this head", label: "a scale for this head", value: true }],
    function () { return state.own; }, function (own) { state.own = own; changed(); }));
    bar.replaceChildren.apply(bar, controls.map(function (one) { return one.element; }));
    panels.forEach(function (panel, side) {
      panel.heads = linked ? [] : headChoices(side);
      panel.controls.replaceChildren.apply(panel.controls, panel.heads.map(function (one) { return one.element; }));
    });
    fillPanels();
    drawAll();
  }

  function longestPages(name) {
    return sides.map(function (_, side) { return kindOf(side)[name]; }).sort(function (a, b) { return b.length - a.length; })[0];
  }

  // pageOf: the page that a side shows: 'all' stays the last one where the other text has more pages
  function pageOf(side, name, pick) {
    var own = kindOf(side)[name], most = longestPages(name).length;
    return state[pick] === most - 1 ? Math.max(0, own.length - 1) : Math.min(state[pick], Math.max(0, own.length - 2));
  }

  function makePanel(kinds, side) {
    var panel = { controls: h("div", { class: "bar" }), note: h("p", { class: "caption" }), texts: h("div"), read: h("p", { class: "read" }), about: h("p", { class: "caption" }), map: heatmap(host),
      grid: h("div", { class: "grid", role: "radiogroup", "aria-label": "every head" }) };
    var told = data.sides[side];
    var answer = told.answer || (told.label ? "Predicted: " + told.label + ", probability " + told.probability.toFixed(2) : "");
    panel.element = h("section", { class: "panel" },
      data.names[side] ? h("h3", {}, data.names[side]) : null, answer ? h("p", { class: "answer" }, answer) : null,
      panel.controls, panel.note, panel.texts, panel.read,
      h("div", { class: "maps" }, h("div", { class: "one" }, h("p", { class: "caption" }, "Rows: query (attends from). Columns: key (attended to)."),
        panel.map.element), h("div", { class: "all" }, panel.about, panel.grid)));
    panel.map.element.addEventListener("pointermove", function (event) { fromMap(event, false); });
    panel.map.element.addEventListener("click", function (event) { fromMap(event, true); });
    function fromMap(event, click) {
      var cell = panel.map.at(event), t = cell && cell[state.from ? 0 : 1];
      if (cell && t !== "rest" && (click || !pinned)) {
        if (click) pinned = !(pinned && state.token === t && state.side === side);
        state.cell = cell[1] === "rest" || cell[0] === "rest" ? null : cell;
        pick(side, t, click);
      }
    }
    views.append(panel.element);
    return panel;
  }

  // fillPanels: the tokens of the page that is picked
  function fillPanels() {
    panels.forEach(function (panel, side) {
      var kind = kindOf(side), page = pageOf(side, "pages", "page"), queryPage = pageOf(side, "queryPages", "queryPage");
      panel.columns = positionsOn(kind.pages, page, kind.keys.length);
      panel.rows = positionsOn(kind.queryPages, queryPage, kind.queries.length);
      panel.page = page;
      panel.note.textContent = kind.note;
      panel.note.hidden = !kind.note;
      panel.flows = kind.oneText ? [flow(side, panel.columns, kind.keys, "both", "Tokens")]
        : [flow(side, panel.rows, kind.queries, "queries", "Attends from"), flow(side, panel.columns, kind.keys, "keys", "Attended to")];
      var pooling = data.sides[side].pooling, parts = panel.flows.map(function (one) { return one.element; });
      if (pooling && state.kind === 0) parts.push(poolingStrip(kind, pooling, panel.columns, page));
      panel.texts.replaceChildren.apply(panel.texts, parts);
      panel.pooling = pooling && state.kind === 0 ? parts[parts.length - 1] : null;
      fillGrid(panel, side);
    });
  }

  // flow: tokens as a line of text, each a button with room for its weight
  function flow(side, positions, tokens, role, label) {
    var made = { role: role, chips: [], rest: null };
    made.element = h("div", { class: "flow", role: "group", "aria-label": label + "; arrow keys go from token to token" },
      h("span", { class: "caption" }, label));
    positions.forEach(function (i) {
      if (i === "rest") {
        var hidden = tokens.length - positions.length + 1, what = role === "queries" ? "queryPage" : "page";
        made.rest = h("span", { class: "weight" });
        made.element.append(h("button", { type: "button", class: "token rest", "aria-label": "rest: " + hidden + " tokens, show all",
          onclick: function () { turn(what, longestPages(what === "page" ? "pages" : "queryPages").length - 1); } },
        "rest (" + hidden + ")", made.rest));
        return;
      }
      var weight = h("span", { class: "weight" });
      var button = h("button", { type: "button", class: "token", tabindex: "-1" }, h("span", {}, shown(tokens[i])), weight);
      button.addEventListener("pointerover", function (event) {
        if (event.pointerType !== "touch" && !pinned) choose(false);
      });
      button.addEventListener("focus", function () { if (button.matches(":focus-visible")) choose(true); });
      button.addEventListener("click", function () {
        pinned = !(pinned && state.side === side && state.token === i);
        choose(true);
      });
      button.addEventListener("keydown", function (event) {
        var here = made.chips.findIndex(function (chip) { return chip.i === i; }), last = made.chips.length - 1;
        var next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: last }[event.key];
        if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        made.chips[Math.max(0, Math.min(last, next))].button.focus();
      });
      function choose(aloud) {
        if (role !== "both") {
          var from = role === "queries";
          if (from !== state.from) {
            state.from = from;
            controls.forEach(function (one) { one.show(); });
          }
        }
        state.cell = null;
        pick(side, i, aloud);
      }
      made.chips.push({ i: i, button: button, weight: weight });
      made.element.append(button);
    });
    return made;
  }

  // fillGrid: a button for every head with its map and the line of the token that is picked
  function fillGrid(panel, side) {
    var kind = kindOf(side), most = Math.max.apply(null, kind.layers.map(function (layer) { return layer.heads; }));
    panel.thumbs = [];
    panel.about.textContent = "Every head (columns) of every layer (rows): its map, and below it the picked token’s weights."
      + (Math.max(kind.keys.length, kind.queries.length) > dotsOf(kind) ? " A dot shows the largest of the weights it covers." : "");
    panel.grid.style.gridTemplateColumns = "auto repeat(" + most + ", minmax(18px, " + (most > 4 ? 84 : 120) + "px))";
    panel.grid.replaceChildren(h("span", { class: "caption" }, ""));
    for (var k = 0; k < most; k++) panel.grid.append(h("span", { class: "caption" }, String(k)));
    kind.layers.forEach(function (layer, l) {
      panel.grid.append(h("span", { class: "caption" }, String(layer.number)));
      for (var head = 0; head < most; head++) panel.grid.append(head < layer.heads ? thumb(panel, side, l, head) : h("span"));
    });
  }

  function thumb(panel, side, l, head) {
    var made = { layer: l, head: head, map: h("canvas"), line: h("canvas", { class: "line" }), mark: h("i") };
    made.button = h("button", { type: "button", class: "thumb", role: "radio", "aria-label": "layer " + kindOf(side).layers[l].number + ", head " + head,
      onclick: function () { choose(made); },
      onkeydown: function (event) {
        var by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
        if (!by) return;
        event.preventDefault();
        var next = panel.thumbs.find(function (one) { return one.layer === l + by[0] && one.head === head + by[1]; });
        if (next) choose(next);
      } }, h("span", { class: "whole" }, made.map, made.mark), made.line);
    function choose(one) {
      picks[side].layer = one.layer;
      picks[side].head = one.head;
      changed(true);
      var again = panel.thumbs.find(function (other) { return other.layer === one.layer && other.head === one.head; });
      again.button.focus();
    }
    panel.thumbs.push(made);
    return made.button;
  }

  function scaleOf() {
    if (!state.own) return data.scale;
    return niceLimit(Math.max.apply(null, sides.map(function (_, side) {
      return largestIn(kindOf(side), layerOf(side), headOf(side));
    })));
  }

  // changed: another head, direction or scale; `layers` where the number of heads may differ
  function changed(layers) {
    if (layers) {
      layOut();
    } else {
      controls.concat.apply(controls, panels.map(function (panel) { return panel.heads; })).forEach(function (one) { one.show(); });
      drawAll();
    }
  }

  function drawAll() {
    drawMaps();
    drawThumbs();
    var scale = scaleOf(), ends = [0, 0.25, 0.5, 0.75, 1].map(function (k) { return colours.css[Math.round(255 * k)]; });
    legend.replaceChildren("0", h("span", { class: "ramp", style: "background: linear-gradient(90deg, " + ends.join(",") + ")" }),
      String(scale), h("span", { class: "soft" }, " attention weight, " + (state.own ? "a scale for this head"
        : "one scale for all heads" + (sides.length > 1 ? " of both" : ""))));
    drawToken(true);
  }

  function drawMaps() {
    panels.forEach(function (panel, side) {
      var kind = kindOf(side), layer = layerOf(side), map = mapOf(layer, headOf(side)), none = {};
      panel.rows.forEach(function (query) {
        none[query] = query !== "rest" && !kind.note && !map.subarray(query * layer.width, query * layer.width + kind.keys.length)
          .some(function (steps) { return steps > 0; });
      });
      function labels(positions, tokens, rest) {
        return positions.map(function (i) { return i === "rest" ? rest : shown(tokens[i]); });
      }
      panel.map.draw({ rows: panel.rows, columns: panel.columns, rowLabels: labels(panel.rows, kind.queries, "⋮"),
        columnLabels: labels(panel.columns, kind.keys, "rest (" + (kind.keys.length - panel.columns.length + 1) + ")"),
        scale: scaleOf(), shades: colours, empty: function (query) { return none[query]; },
        weight: function (query, key) {
          var start = query * layer.width;
          return layer.step * (key === "rest" ? restOf(kind, map, start, panel.page) : map[start + key]);
        } });
      panel.map.element.setAttribute("aria-label", "Heatmap of " + place(side) + ", " + kind.queries.length + " queries by "
        + kind.keys.length + " keys; pick a token to hear its weights");
      mark(panel, side);
    });
  }

  function drawThumbs() {
    panels.forEach(function (panel, side) {
      var kind = kindOf(side), keys = kind.keys.length, most = dotsOf(kind), scale = scaleOf();
      panel.thumbs.forEach(function (one) {
        var layer = kind.layers[one.layer], map = mapOf(layer, one.head);
        dots(one.map, kind.queries.length, keys, most, function (query, key) {
          return layer.step * map[query * layer.width + key];
        }, scale, colours);
        var on = one.layer === picks[side].layer && one.head === headOf(side);
        one.button.setAttribute("aria-checked", String(on));
        one.button.tabIndex = on || (headOf(side) === "mean" && one.layer === picks[side].layer && one.head === 0) ? 0 : -1;
      });
      if (panel.pooling) {
        panel.pooling.chips.forEach(function (chip) {
          if (chip.weight >= 0) paint(chip.element, chip.weight, data.scale);
        });
      }
    });
  }

  function place(side) {
    var head = headOf(side);
    return "layer " + layerOf(side).number + ", " + (head === "mean" ? "mean of the heads" : "head " + head);
  }

  function paint(element, weight, scale) {
    var shade = shadeOf(weight, scale);
    element.style.background = colours.css[shade];
    element.style.color = colours.ink[shade];
  }

  function pick(side, token, aloud) {
    state.side = side;
    state.token = token;
    drawToken(aloud);
  }

  // drawToken: the line of the token that is picked, over the text, in the map and in every head
  function drawToken(aloud) {
    var scale = scaleOf(), told = [];
    panels.forEach(function (panel, side) {
      var kind = kindOf(side), t = partner(side), layer = layerOf(side), from = state.from;
      var line = t < 0 ? null : lineOf(kind, layer, headOf(side), t, from);
      panel.flows.forEach(function (flow) {
        var source = flow.role === (from ? "queries" : "keys"), both = flow.role === "both";
        var focusable = flow.chips.find(function (chip) { return (source || both) && chip.i === t; }) || flow.chips[0];
        flow.chips.forEach(function (chip) {
          var picked = chip.i === t && (source || both);
          chip.button.tabIndex = chip === focusable ? 0 : -1;
          chip.button.classList.toggle("picked", picked);
          chip.button.setAttribute("aria-pressed", String(picked && pinned));
          if (source || !line) {
            chip.button.style.background = chip.button.style.color = chip.weight.textContent = "";
          } else {
            paint(chip.button, line[chip.i], scale);
            chip.weight.textContent = written(line[chip.i]);
          }
        });
        if (flow.rest) {
          var summed = line && from && flow.role !== "queries";
          flow.rest.textContent = summed
            ? written(layer.step * restOf(kind, mapOf(layer, headOf(side)), t * layer.width, panel.page)) : "";
        }
      });
      panel.thumbs.forEach(function (one) {
        var l = kind.layers[one.layer], other = t < 0 ? null : lineOf(kind, l, one.head, t, from);
        var length = from ? kind.keys.length : kind.queries.length;
        dots(one.line, 1, length, dotsOf(kind), function (_, i) { return other ? other[i] : 0; }, scale, colours);
        var part = 100 / (from ? kind.queries.length : kind.keys.length);
        one.mark.className = t < 0 ? "none" : from ? "row" : "column";
        one.mark.style.cssText = from ? "top:" + t * part + "%;height:" + part + "%" : "left:" + t * part + "%;width:" + part + "%";
      });
      mark(panel, side);
      var words = inWords(kind, side, t, line);
      panel.read.textContent = words + (pinned && side === state.side ? " Pinned: click it again or press Escape to let go." : "");
      told.push((data.names[side] ? data.names[side] + ": " : "") + words);
    });
    if (aloud) say(heard, told.join(" "));
  }

  function mark(panel, side) {
    var t = partner(side), cell = side === state.side ? state.cell : null;
    panel.map.mark(cell ? panel.rows.indexOf(cell[0]) : state.from && t >= 0 ? panel.rows.indexOf(t) : -1,
      cell ? panel.columns.indexOf(cell[1]) : !state.from && t >= 0 ? panel.columns.indexOf(t) : -1);
  }

  // inWords: the line in words: the three largest weights
  function inWords(kind, side, t, line) {
    var tokens = state.from ? kind.queries : kind.keys, others = state.from ? kind.keys : kind.queries;
    if (t < 0) return "This text has no partner of the picked token.";
    var who = named(tokens, t), cell = side === state.side && state.cell;
    if (cell) {
      return named(kind.queries, cell[0]) + " attends to " + named(kind.keys, cell[1]) + " with weight "
        + written(lineOf(kind, layerOf(side), headOf(side), cell[0], true)[cell[1]], 3) + " in " + place(side) + ".";
    }
    var most = largestThree(line).map(function (i) { return named(others, i) + " " + written(line[i], 3); });
    if (!most.length && kind.note) return who + (state.from ? " gives nothing to these tokens" : " gets nothing from these tokens") + " in " + place(side) + ".";
    if (!most.length) return who + (state.from ? " has no key to attend to" : " is attended to by no token") + " in " + place(side) + ".";
    return who + (state.from ? " attends most to " : " is attended to most by ") + most.join(", ") + " in " + place(side) + ".";
  }
}
