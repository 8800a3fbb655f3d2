// The heatmap of an attention view, on a canvas with a second one above it for what is picked.

var MAP = { largest: 44, height: 460, letters: 12, font: '"DejaVu Sans", "Segoe UI", system-ui, sans-serif', printed: 12 };

// heatmap: {element, draw(what), mark(row, column), at(event)}; what: {rows, columns (positions or "rest"), rowLabels,
// columnLabels, weight(row, column), scale, shades, empty(row)}, rows and columns counted as shown
function heatmap(host) {
  var base = h("canvas"), top = h("canvas", { class: "top" });
  var element = h("div", { class: "map", role: "img" }, base, top);
  var place = null, drawn = null, above = 8;

  function look(name) { return getComputedStyle(host.shadowRoot.querySelector(".piece")).getPropertyValue(name).trim(); }

  function context(canvas, width, height) {
    var ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    var pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, above * ratio);
    pen.font = MAP.letters + "px " + MAP.font;
    return pen;
  }

  // measure: cells that fit the room there is, and labels every so many cells
  function measure(what, room) {
    var pen = base.getContext("2d");
    pen.font = "bold " + MAP.letters + "px " + MAP.font; // as a picked label is written
    function widest(labels, most) {
      return Math.min(most, labels.reduce(function (w, label) { return Math.max(w, pen.measureText(label).width); }, 0));
    }
    var left = widest(what.rowLabels, Math.min(130, room / 3)) + 8;
    var long = widest(what.columnLabels, 130);
    var cell = Math.min(MAP.largest, (room - left - 4) / what.columns.length, MAP.height / what.rows.length);
    cell = cell >= 4 ? Math.floor(cell) : cell;
    var level = long + 6 <= cell;
    return { left: left, cell: cell, level: level, long: long, below: level ? MAP.letters + 10 : long * 0.72 + 18,
      step: Math.max(1, Math.ceil((MAP.letters + 1) / cell)), width: cell * what.columns.length, height: cell * what.rows.length };
  }

  function label(pen, text, most) {
    while (text.length > 1 && pen.measureText(text).width > most) text = text.slice(0, -2) + "…";
    return text;
  }

  function rowLabel(pen, row) {
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(label(pen, drawn.rowLabels[row], place.left - 8), place.left - 5, (row + 0.5) * place.cell);
  }

  function columnLabel(pen, column) {
    var x = place.left + (column + 0.5) * place.cell, y = place.height + 6, text = label(pen, drawn.columnLabels[column], 130);
    pen.save();
    pen.textBaseline = "top";
    pen.translate(x + (place.level ? 0 : 3), y);
    pen.textAlign = place.level ? "center" : "right";
    if (!place.level) pen.rotate(-Math.PI / 4);
    pen.fillText(text, 0, 0);
    pen.restore();
  }

  function draw(what) {
    var room = element.clientWidth;
    if (!room) return;
    drawn = what;
    place = measure(what, room);
    var pen = context(base, room, above + place.height + place.below), cell = place.cell;
    var print = what.columns.length <= MAP.printed && what.rows.length <= MAP.printed && cell >= 33;
    pen.fillStyle = look("--soft");
    for (var r = 0; r < what.rows.length; r += place.step) rowLabel(pen, r);
    for (var c = 0; c < what.columns.length; c += place.step) columnLabel(pen, c);
    what.rows.forEach(function (query, row) {
      if (query === "rest") return;
      what.columns.forEach(function (key, column) {
        var weight = what.weight(query, key), shade = shadeOf(weight, what.scale), ink = what.shades.ink[shade];
        var x = place.left + column * cell, y = row * cell;
        pen.fillStyle = what.empty(query) ? look("--none") : what.shades.css[shade];
        if (key === "rest") {
          pen.fillStyle = look("--sum");
          pen.globalAlpha = 0.15 + 0.5 * Math.min(1, weight);
        }
        pen.fillRect(x, y, cell + (cell < 4 ? 0.5 : 0), cell + (cell < 4 ? 0.5 : 0));
        pen.globalAlpha = 1;
        if (print) {
          pen.fillStyle = key === "rest" || what.empty(query) ? look("--ink") : ink;
          pen.textAlign = "center";
          pen.textBaseline = "middle";
          pen.fillText(written(weight), x + cell / 2, y + cell / 2 + 1);
        }
      });
    });
    pen.strokeStyle = look("--line");
    if (cell >= 12) {
      pen.lineWidth = 0.5;
      for (var i = 1; i < what.columns.length; i++) pen.strokeRect(place.left + i * cell, 0, 0, place.height);
      for (var j = 1; j < what.rows.length; j++) pen.strokeRect(place.left, j * cell, place.width, 0);
    }
    pen.lineWidth = 1;
    pen.strokeRect(place.left + 0.5, 0.5, place.width - 1, place.height - 1);
    mark(-1, -1);
  }

  // mark: frame a row and a column (-1 for none) and write their labels in bold
  function mark(row, column) {
    if (!place) return;
    var pen = context(top, element.clientWidth, above + place.height + place.below), cell = place.cell;
    [[row, place.left, row * cell, place.width, cell], [column, place.left + column * cell, 0, cell, place.height]].forEach(
      function (frame) {
        if (frame[0] < 0) return;
        ["--paper", "--ink"].forEach(function (name, k) { // outside the cells, which it must not hide
          pen.lineWidth = k ? 2 : 4;
          pen.strokeStyle = look(name);
          pen.strokeRect(frame[1] - 1, frame[2] - 1, frame[3] + 2, frame[4] + 2);
        });
      });
    pen.font = "bold " + pen.font;
    if (row >= 0) {
      var y = (row + 0.5) * cell - MAP.letters / 2 - 3;
      pen.fillStyle = look("--paper");
      pen.fillRect(0, y, place.left - 2, MAP.letters + 6);
      pen.fillStyle = look("--ink");
      rowLabel(pen, row);
    }
    if (column >= 0) {
      pen.strokeStyle = pen.fillStyle = look("--ink");
      columnLabel(pen, column);
    }
  }

  // at: [row, column] under the pointer, as positions in the text, or null
  function at(event) {
    if (!place) return null;
    var box = base.getBoundingClientRect();
    var row = Math.floor((event.clientY - box.top - above) / place.cell), column = Math.floor((event.clientX - box.left - place.left) / place.cell);
    var inside = row >= 0 && column >= 0 && row < drawn.rows.length && column < drawn.columns.length;
    return inside ? [drawn.rows[row], drawn.columns[column]] : null;
  }

  return { element: element, draw: draw, mark: mark, at: at };
}
