function build(root, data, host) {
  var said = h("p", { class: "said", "aria-live": "polite" }), message = h("p", { class: "message" }), far = data.farthest;
  var pairs = data.speeds.length, names = data.names.map(shown), start = data.n - data.m;
  function whole(v) { return String(v); }
  var m = slider("m, " + names[0], { min: 0, max: far, step: 1, value: data.m, text: whole }, update);
  var n = slider("n, " + names[1], { min: 0, max: far, step: 1, value: data.n, text: whole }, update);
  var back = h("button", { type: "button", onclick: function () { both(-1); } }, "← both one back");
  var on = h("button", { type: "button", onclick: function () { both(1); } }, "both one on →");
  var again = h("button", { type: "button", onclick: function () { m.value = data.m; n.value = data.n; update(true); } }, "Start again");

  function both(step) {
    if (Math.min(m.value, n.value) + step < 0 || Math.max(m.value, n.value) + step > far) return;
    m.value += step;
    n.value += step;
    update(true);
  }

  // one dial for each pair: dotted arrows before the turn, solid ones after it, an arc from the query to the key
  var dials = data.speeds.map(function (speed, i) {
    var q = data.query.slice(2 * i, 2 * i + 2), k = data.key.slice(2 * i, 2 * i + 2);
    var dial = { speed: speed, q: Math.atan2(q[1], q[0]), k: Math.atan2(k[1], k[0]), size: [Math.hypot(q[0], q[1]), Math.hypot(k[0], k[1])] };
    var unit = 86 / Math.max.apply(null, dial.size);
    dial.reach = dial.size.map(function (one) { return one * unit; });
    dial.arc = s("path", { class: "arc" });
    dial.angle = s("text", { class: "angle" });
    dial.arrows = ["query", "key"].map(function (role) {
      return { stem: s("line", { class: role }), tip: s("path", { class: role }), text: s("text", { class: "name " + role }) };
    });
    var before = [dial.q, dial.k].map(function (angle, side) {
      return s("line", { class: "before " + ["query", "key"][side], x2: dial.reach[side] * Math.cos(angle), y2: -dial.reach[side] * Math.sin(angle) });
    });
    dial.picture = s("svg", { viewBox: "-150 -135 300 270", class: "dial", "aria-hidden": "true" }, s("circle", { r: 94, class: "rim" }), before,
      dial.arc, dial.arrows.map(function (arrow) { return [arrow.stem, arrow.tip, arrow.text]; }).flat(), dial.angle,
      s("text", { x: -146, y: -120, class: "note" }, (pairs > 1 ? "pair " + i + ": " : "") + speed + " rad per position"));
    return dial;
  });

  function score(distance) {
    return dials.reduce(function (sum, dial) {
      return sum + dial.size[0] * dial.size[1] * Math.cos(dial.k - dial.q + dial.speed * distance);
    }, 0);
  }
  var most = dials.reduce(function (sum, dial) { return sum + dial.size[0] * dial.size[1]; }, 0);
  function px(distance) { return 190 + 170 * distance / far; }
  function py(value) { return 120 - 92 * value / most; }
  var path = [];
  for (var d = -2 * far; d <= 2 * far; d++) path.push(px(d / 2).toFixed(1) + "," + py(score(d / 2)).toFixed(1));
  var mark = s("circle", { r: 7, class: "mark" }), drop = s("line", { class: "drop", y1: py(0) }), value = s("text", { class: "name value" });
  var chart = s("svg", { viewBox: "0 0 380 250", class: "chart", "aria-hidden": "true" },
    s("line", { x1: 20, x2: 360, y1: py(0), y2: py(0), class: "rim" }), s("line", { x1: px(0), x2: px(0), y1: 28, y2: 212, class: "rim" }),
    [-far, -far / 2, 0, far / 2, far].map(function (tick) { return s("text", { x: px(tick), y: 230, class: "tick" }, fixed(tick, 0)); }),
    s("text", { x: px(0), y: 246, class: "tick" }, "distance n − m"), s("text", { x: 20, y: 16, class: "note" }, "score"),
    s("path", { d: "M" + path.join("L"), class: "curve" }), drop, mark, value);

  root.append(m.box, n.box, h("p", { class: "buttons" }, back, on, again),
    h("div", { class: "pictures" }, dials.map(function (dial) { return dial.picture; }), chart), message, said);

  // done: whether a slider has been let go; only then is the result read out
  function update(done) {
    var distance = n.value - m.value, turned = { query: [], key: [] };
    dials.forEach(function (dial) {
      var angles = [dial.q + dial.speed * m.value, dial.k + dial.speed * n.value];
      dial.arrows.forEach(function (arrow, side) {
        var c = Math.cos(angles[side]), t = Math.sin(angles[side]), reach = dial.reach[side];
        turned[side ? "key" : "query"].push(dial.size[side] * c, dial.size[side] * t);
        arrow.stem.setAttribute("x2", (reach - 8) * c);
        arrow.stem.setAttribute("y2", -(reach - 8) * t);
        arrow.tip.setAttribute("d", "M" + reach * c + "," + -reach * t + [1, -1].map(function (way) {
          return "L" + ((reach - 15) * c - way * 7 * t) + "," + -((reach - 15) * t + way * 7 * c);
        }).join("") + "Z");
        arrow.text.textContent = names[side] + " " + [m, n][side].value;
        arrow.x = 116 * c;
        arrow.y = -108 * t + 5;
      });
      if (Math.abs(dial.arrows[0].y - dial.arrows[1].y) < 16 && Math.abs(dial.arrows[0].x - dial.arrows[1].x) < 60) {
        var lower = dial.arrows[0].y > dial.arrows[1].y ? 0 : 1;             // two names over each other: apart
        dial.arrows[lower].y += 9;
        dial.arrows[1 - lower].y -= 9;
      }
      dial.arrows.forEach(function (arrow) {
        var half = arrow.text.getComputedTextLength() / 2;
        arrow.text.setAttribute("x", Math.max(half - 148, Math.min(148 - half, arrow.x)));
        arrow.text.setAttribute("y", Math.max(-100, Math.min(130, arrow.y)));
      });
      var between = angles[1] - angles[0], points = [];
      for (var step = 0; step <= 60; step++) {                               // more than a full turn becomes a spiral
        var angle = angles[0] + between * step / 60, r = 28 + 4 * Math.abs(between) / (2 * Math.PI) * step / 60;
        points.push((r * Math.cos(angle)).toFixed(1) + "," + (-r * Math.sin(angle)).toFixed(1));
      }
      dial.arc.setAttribute("d", "M" + points.join("L"));
      var middle = angles[0] + between / 2;
      dial.angle.textContent = fixed(between, 2);
      dial.angle.setAttribute("x", 58 * Math.cos(middle));
      dial.angle.setAttribute("y", -52 * Math.sin(middle) + 5);
    });
    var now = turned.query.reduce(function (sum, q, i) { return sum + q * turned.key[i]; }, 0);
    mark.setAttribute("cx", px(distance));
    mark.setAttribute("cy", py(now));
    drop.setAttribute("x1", px(distance));
    drop.setAttribute("x2", px(distance));
    drop.setAttribute("y2", py(now));
    value.textContent = fixed(now, 4);
    value.setAttribute("x", Math.max(45, Math.min(335, px(distance))));
    value.setAttribute("y", py(now) < 120 ? py(now) - 14 : py(now) + 24);
    back.setAttribute("aria-disabled", Math.min(m.value, n.value) === 0);
    on.setAttribute("aria-disabled", Math.max(m.value, n.value) === far);
    message.replaceChildren("Distance n − m = ", h("b", {}, fixed(distance, 0)), ", score ", h("b", {}, fixed(now, 4)), ". ", distance === start
      ? (m.value === data.m ? "Move both together: the arrows turn, the score stays." : "Other positions, the same distance as at first: the same score.")
      : "Another distance than at first (" + fixed(start, 0) + "): another score.");
    if (done) say(said, message.textContent);
    host.numbers = { m: m.value, n: n.value, query: turned.query, key: turned.key, score: now };
  }
  update(false);
}
