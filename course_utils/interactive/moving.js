function build(root, data, host) {
  var steps = data.captions.length, total = steps * data.seconds, time = data.seconds * 0.9, playing = false, before = 0;
  var less = window.matchMedia("(prefers-reduced-motion: reduce)");
  var caption = h("p", { class: "caption", "aria-live": "polite" });
  var picture = s("svg", { viewBox: "0 0 " + data.width + " " + data.height, "aria-hidden": "true" }, data.nodes.map(function (node) {
    return s(node.text === null ? "rect" : "text", node.is, node.text);
  }));
  var play = h("button", { type: "button", onclick: function () { toggle(!playing); } });
  var step = slider("step", {
    min: 1, max: steps, step: 1, value: 1, text: function (v) { return v + " of " + steps; },
  }, function () { time = (step.value - 0.1) * data.seconds; toggle(false); });
  var style = document.createElement("style");
  // every animation rests at --moment, however often the page hides the picture and shows it again, as slides do
  style.textContent = data.style +
    "\nsvg * { animation-play-state: paused !important; animation-delay: calc(-1s * var(--moment)) !important; }";
  root.append(style, picture, caption, h("div", { class: "player" }, play, step.box));

  // seek: show the moment `seconds`; where less motion is asked for, the end of its step
  function seek(seconds) {
    time = Math.max(0, Math.min(total - 0.001, seconds));
    var now = Math.floor(time / data.seconds);
    var moment = less.matches ? (now + 0.9) * data.seconds : time;
    picture.style.setProperty("--moment", moment);
    if (step.value !== now + 1) step.value = now + 1;
    if (caption.textContent !== data.captions[now]) caption.textContent = data.captions[now];
    host.numbers = { time: time, moment: moment, step: now, playing: playing };
  }
  function toggle(on) {
    playing = on;
    play.textContent = on ? "Pause" : "Play";
    if (on) {
      if (time > total - data.seconds / 2) time = 0;
      before = performance.now();
      requestAnimationFrame(frame);
    }
    seek(time);
  }
  function frame(now) {
    if (!playing || !host.isConnected) return;
    var next = time + Math.max(0, now - before) / 1000;
    before = now;
    seek(next);
    if (next >= total) toggle(false);
    else requestAnimationFrame(frame);
  }
  toggle(false);
}
