// choice: {element, show()}: buttons of which one is picked. Tab reaches the picked one, arrow keys pick the next.
// options: [{text, label (what a screen reader says), value}]; get() gives the value that is picked, set(value) picks one.
function choice(label, options, get, set) {
  var buttons = options.map(function (option, k) {
    return h("button", { type: "button", role: "radio", "aria-label": option.label, onclick: function () { pick(k); },
      onkeydown: function (event) {
        var by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        pick((k + by + options.length) % options.length);
      } }, option.text);
  });
  var element = h("div", { class: "choice", role: "radiogroup", "aria-label": label }, h("span", {}, label), buttons);
  function pick(k) {
    var root = element.getRootNode();
    set(options[k].value);
    if (!element.isConnected) { // set() has drawn these buttons anew
      var again = Array.from(root.querySelectorAll(".choice")).find(function (one) { return one.getAttribute("aria-label") === label; });
      if (again) again.querySelector("[aria-checked=true]").focus();
    } else buttons[k].focus();
  }
  function show() {
    buttons.forEach(function (button, k) {
      var on = options[k].value === get();
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    });
  }
  show();
  return { element: element, show: show };
}
