// decode: the numbers that coded.py wrote, as whole steps in a Uint16Array; given.step is the size of a step
function decode(given) {
  var alphabet = "", single = 85, size = given.shape.reduce(function (a, b) { return a * b; }, 1);
  for (var code = 33; code < 127; code++) if (code !== 34 && code !== 60 && code !== 92) alphabet += String.fromCharCode(code);
  var places = new Uint8Array(128), steps = new Uint16Array(size), text = given.coded, n = 0;
  for (var i = 0; i < alphabet.length; i++) places[alphabet.charCodeAt(i)] = i;
  for (var k = 0; k < text.length; k++) {
    var place = places[text.charCodeAt(k)];
    if (place < single) steps[n++] = place;
    else if (place === single) n += places[text.charCodeAt(++k)] + 3; // a run of zeros, which the array holds already
    else if (place < 90) steps[n++] = single + 91 * (place - single - 1) + places[text.charCodeAt(++k)];
    else steps[n++] = single + 364 + 91 * places[text.charCodeAt(++k)] + places[text.charCodeAt(++k)];
  }
  if (n !== size) throw new Error(n + " numbers instead of " + size);
  return steps;
}
