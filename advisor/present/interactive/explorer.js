// The explorer of replication settings, without dependencies: the same file runs in a notebook's
// widget, in an exported page and in the report.
//
// mount(root, data, ask) fills `root`. `data` is what settings_grid.py made. `ask(values, reply)`
// asks the kernel for a setting that `data` lacks, and may reply several times; null without one.
// It returns `choose`, for a changed control, and `learn`, for a page with more settings.
function mount(root, data, ask) {
  "use strict";
  var sample = document.createElement("div");
  sample.innerHTML = "<svg></svg>";
  var SVG = sample.firstChild.namespaceURI;
  var WORDS = { loss: "durability", refused: "availability" };
  var number = (window.advisorExplorers = (window.advisorExplorers || 0) + 1);
  var texts = data.texts || [];
  var settings = Object.assign({}, data.settings);
  var marks = Object.assign({}, data.marks);
  var chosen = Object.assign({}, data.chosen);
  var shown = null; // the last values whose setting could be drawn
  var answered = ""; // the last answer, drawn or refused
  var waiting = 0;
  var idle = 0;
  var lookedAhead = null;
  var fields = {};

  function text(x) { return typeof x === "number" ? texts[x] : x; }
  function key(values) {
    return data.controls.map(function (c) { return values[c.key]; }).join("|");
  }
  function find(values) {
    var found = settings[key(values)];
    var factor = values.replication_factor, least = values.min_insync_replicas;
    if (found || ask || !data.capped || !(Number(least) > Number(factor))) { return found; }
    found = settings[key(placed(values, factor, factor))];
    return found && Object.assign({}, found, { notes: [["min_insync_replicas", data.capped]] });
  }
  function still(values) {
    // The same with the first values of what moves neither curve: how producers retry.
    var other = Object.assign({}, values);
    data.still.forEach(function (name) { other[name] = data.chosen[name]; });
    return other;
  }
  function drawable(values) { return settings[key(values)] || settings[key(still(values))]; }
  function context(values) {
    return data.context.map(function (name) { return values[name]; }).join("|");
  }
  function el(parent, tag, attributes, words) {
    var made = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (name) {
      made.setAttribute(name, attributes[name]);
    });
    // JupyterLab's rules match the focused element itself before they look at the root.
    if (/^(select|input|button|summary|textarea|a)$/.test(tag)) {
      made.setAttribute("data-lm-suppress-shortcuts", "true");
    }
    if (words !== undefined) { made.textContent = words; }
    if (parent) { parent.appendChild(made); }
    return made;
  }
  function svg(parent, tag, attributes, words) {
    var made = document.createElementNS(SVG, tag);
    Object.keys(attributes).forEach(function (name) { made.setAttribute(name, attributes[name]); });
    if (words !== undefined) { made.textContent = words; }
    parent.appendChild(made);
    return made;
  }

  // The page: controls on the left, the answer on the right, commands below.
  root.textContent = "";
  root.classList.add("advisor-explorer");
  root.setAttribute("data-mounted", "true");
  // JupyterLab reads the attribute before it looks for a shortcut.
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  ["keydown", "keypress", "keyup"].forEach(function (kind) {
    root.addEventListener(kind, function (event) { event.stopPropagation(); });
  });
  var columns = el(root, "div", { class: "ae-columns" });
  var form = el(columns, "div", { class: "ae-controls", role: "group", "aria-label": "Settings" });
  var result = el(columns, "div", { class: "ae-result" });
  var status = el(result, "div", { class: "ae-status", role: "status" });
  var badge = el(status, "p", { class: "ae-badge" });
  var verdict = el(status, "p", { class: "ae-verdict" });
  var busy = el(result, "p", { class: "ae-busy", "aria-live": "polite" });
  var picture = el(result, "div", { class: "ae-picture" });
  var panels = {
    loss: el(picture, "div", { class: "ae-panel" }),
    refused: el(picture, "div", { class: "ae-panel" })
  };
  var legend = el(picture, "ul", { class: "ae-legend" });
  var more = el(root, "details", { class: "ae-more" });
  el(more, "summary", {}, "All numbers of this setting");
  var lines = el(more, "ul");
  var commands = el(root, "div", { class: "ae-commands" });

  data.controls.forEach(function (control) {
    var id = "advisor-" + number + "-" + control.key;
    var row = el(form, "div", { class: "ae-row" });
    el(row, "label", { for: id }, control.label);
    var field;
    if (control.options) {
      field = el(row, "select", { id: id });
      control.options.forEach(function (option) {
        el(field, "option", { value: option[0] }, option[1]);
      });
      if (control.options.length === 1) {
        field.disabled = true;
        field.title = ask ? "There is nothing else to choose." :
          "This page holds no other value. In a notebook with a kernel you can change it.";
      }
    } else {
      field = el(row, "input", {
        id: id, type: "number", min: control.min, max: control.max, step: control.step
      });
    }
    field.value = chosen[control.key];
    var said = el(row, "p", { class: "ae-refusal", id: id + "-said", "aria-live": "assertive" });
    field.setAttribute("aria-describedby", id + "-said");
    field.addEventListener("change", function (event) {
      chosen[control.key] = field.value;
      choose(control.key, event.timeStamp);
    });
    fields[control.key] = { field: field, said: said };
  });

  // Choosing: look the setting up, or ask for it; the last picture stays meanwhile.
  function choose(changed, since) {
    var values = Object.assign({}, chosen);
    var asked = ++waiting;
    var found = find(values);
    if (found) {
      show(values, found, changed);
    } else if (ask) {
      // Asked before anything is drawn: the kernel works meanwhile.
      question(values, changed, since, asked);
      foresee(values);
    } else {
      refuse(changed, data.missing);
    }
    drawn(since, found || !ask);
    if (found && ask) { askAround(values, asked); }
  }
  function question(values, changed, since, asked) {
    ask(values, function (reply) {
      Object.assign(settings, reply.settings);
      if (asked !== waiting) { return; }
      if (reply.more) {
        // The picture; how many sends fail follows.
        if (picture.classList.contains("ae-old")) {
          foresee(values);
          drawn(since, false);
        }
        return;
      }
      if (!settings[key(values)]) { refuse(changed, "Interrupted. Choose again."); return; }
      show(values, settings[key(values)], changed);
      drawn(since, true);
      askAround(values, asked);
    }, "setting");
  }
  function foresee(values) {
    // Until the kernel answers: the picture, where retries alone changed.
    var known = settings[key(still(values))];
    var drawn = known && known.refusal === undefined;
    [more, commands].forEach(function (part) { part.classList.add("ae-old"); });
    picture.classList.toggle("ae-old", !drawn);
    if (drawn) {
      clear();
      judge(known);
      shown = still(values);
      draw();
    }
    badge.classList.toggle("ae-old", !drawn || data.sends);
    busy.textContent = "Computing " + (drawn ? "failed sends" : nameOf(values)) + " …";
  }
  function askAround(values, asked) {
    // The curve and the marks come after the setting itself, which is drawn first.
    if (complete(values)) { return; }
    ask(values, function (reply) {
      Object.assign(settings, reply.settings);
      Object.assign(marks, reply.marks);
      if (asked === waiting && shown) { draw(); }
    }, "around");
  }
  function learn(page) {
    // The kernel computed more. What stands on the screen is touched only where it changes.
    data = page;
    texts = page.texts;
    Object.assign(settings, page.settings);
    Object.assign(marks, page.marks);
    var found = find(chosen);
    if (found && answerOf(chosen, found) !== answered) {
      show(Object.assign({}, chosen), found);
    } else if (shown) {
      draw();
    }
  }
  function whenIdle() {
    // Intervals take seconds. They come after the picture, and then what one change would need;
    // another process works on both.
    clearTimeout(idle);
    var values = shown;
    if (!ask || lookedAhead === key(values)) { return; }
    idle = setTimeout(function () {
      lookedAhead = key(values);
      ask(values, function (reply) {
        Object.assign(settings, reply.settings);
        Object.assign(marks, reply.marks);
        if (key(shown) === key(values) && reply.settings[key(shown)]) {
          show(shown, settings[key(shown)]);
        }
      }, "ahead");
    }, 150);
  }
  function complete(values) {
    return marks[context(values)] !== undefined && [values].concat(data.places.map(function (at) {
      return placed(values, at[0], at[1]);
    })).every(function (each) { return drawable(each) !== undefined; });
  }
  function every(name) {
    return data.controls.reduce(function (found, control) {
      return control.key !== name ? found : control.options.map(function (option) {
        return option[0];
      });
    }, []);
  }
  function placed(values, factor, least) {
    return Object.assign({}, values, {
      replication_factor: String(factor), min_insync_replicas: String(least)
    });
  }
  function drawn(since, answers) {
    requestAnimationFrame(function () {
      var channel = new MessageChannel(); // its message comes after the frame was painted
      channel.port1.onmessage = function () {
        var taken = (performance.now() - since).toFixed(1);
        if (answers) { root.dataset.answerMs = taken; }
        if (!picture.classList.contains("ae-old")) {
          root.dataset.pictureMs = root.dataset.pictureMs || taken;
        }
        root.dataset.redraws = String(Number(root.dataset.redraws || 0) + 1);
      };
      channel.port2.postMessage(0);
    });
  }
  function nameOf(values) {
    return "RF " + values.replication_factor + ", min ISR " + values.min_insync_replicas +
      ", acks=" + values.acks;
  }
  function clear() {
    Object.keys(fields).forEach(function (name) {
      fields[name].said.textContent = "";
      fields[name].field.removeAttribute("aria-invalid");
    });
    busy.textContent = "";
  }
  function refuse(changed, words) {
    clear();
    [picture, more, commands].forEach(function (part) { part.classList.add("ae-old"); });
    var at = fields[changed] || fields[Object.keys(fields)[0]];
    at.said.textContent = words;
    at.field.setAttribute("aria-invalid", "true");
    badge.className = "ae-badge ae-none";
    badge.textContent = "– No answer for this setting";
    verdict.textContent = "Below is the answer before this change" +
      (shown ? ": " + before(chosen) + "." : ".");
  }
  function before(values) {
    // The setting below; and of what its name leaves out, the controls that have changed since.
    var named = ["replication_factor", "min_insync_replicas", "acks"];
    var changed = data.controls.filter(function (c) { return values[c.key] !== shown[c.key]; });
    var others = changed.filter(function (c) { return named.indexOf(c.key) < 0; });
    var said = others.map(function (c) {
      var option = (c.options || []).find(function (o) { return o[0] === shown[c.key]; });
      return c.label + " " + (option ? option[1] : shown[c.key]);
    });
    var name = text(find(shown).name);
    return (others.length && others.length === changed.length ? said : [name].concat(said))
      .join(", ");
  }
  function answerOf(values, setting) { return key(values) + JSON.stringify(setting.loss || ""); }
  function show(values, setting, changed) {
    answered = answerOf(values, setting);
    if (setting.refusal !== undefined) {
      refuse(changed || setting.by, text(setting.refusal));
      return;
    }
    clear();
    [picture, more, commands].forEach(function (part) { part.classList.remove("ae-old"); });
    shown = values;
    judge(setting);
    (setting.notes || []).forEach(function (note) {
      var field = fields[text(note[0])];
      if (field) { field.said.textContent = text(note[1]); }
    });
    lines.textContent = "";
    setting.lines.forEach(function (line) { el(lines, "li", {}, text(line)); });
    draw();
    tell(setting.commands || []);
    whenIdle();
  }
  function judge(setting) {
    var met = setting.unsure ? "unsure" : setting.met ? "met" : "missed";
    if (setting.met === null) { met = "open"; }
    badge.className = "ae-badge ae-" + met;
    badge.textContent = { unsure: "≈ ", met: "✓ ", missed: "✗ ", open: "" }[met]
      + text(setting.badge);
    verdict.textContent = text(setting.verdict);
  }
  function tell(blocks) {
    commands.textContent = "";
    blocks.forEach(function (block) {
      var part = el(commands, "div", { class: "ae-block" });
      var head = el(part, "div", { class: "ae-head" });
      el(head, "strong", {}, text(block[0]));
      var words = text(block[1]);
      var button = el(head, "button", { type: "button" }, "Copy");
      button.setAttribute("aria-label", "Copy " + text(block[0]));
      button.addEventListener("click", function () { copy(words, button); });
      el(part, "pre", { tabindex: "0", role: "group", "aria-label": text(block[0]) }, words);
    });
  }
  function copy(words, button) {
    function told(said) {
      button.textContent = said;
      setTimeout(function () { button.textContent = "Copy"; }, 2000);
    }
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(words).then(
        function () { told("Copied"); }, function () { byHand(words, told); });
    } else {
      byHand(words, told);
    }
  }
  function byHand(words, told) {
    // A page opened as a file has no clipboard of its own.
    var area = el(root, "textarea", { class: "ae-clip", "aria-hidden": "true" });
    area.value = words;
    area.select();
    told(document.execCommand("copy") ? "Copied" : "Select the text");
    area.remove();
  }

  // The picture: every known setting that differs in RF and min ISR only.
  function curve() {
    var points = [];
    for (var factor = 1; factor <= data.most; factor++) {
      for (var least = 1; least <= factor; least++) {
        var setting = drawable(placed(shown, factor, least));
        if (setting && setting.at && setting.at[1] === least) { points.push(setting); }
      }
    }
    return points;
  }
  function draw() {
    var here = find(shown);
    var marked = (marks[context(shown)] || []).concat([Object.assign({ mark: "chosen" }, here)]);
    var points = curve();
    panel("loss", points, marked);
    panel("refused", points, marked);
    legend.textContent = "";
    marked.forEach(function (mark) { explain(mark.mark, markWord(mark) + ": " + text(mark.name)); });
    var searched = marks[context(shown)] || [{ mark: "best" }];
    if (!searched.some(function (mark) { return mark.mark === "best"; })) {
      explain("best", data.marked.best + ": " + data.unmarked);
    }
    var ranges = points.concat(marked).some(function (s) {
      return s.loss && s.loss[1] < s.loss[2];
    });
    data.legend.forEach(function (entry) {
      if (entry[0] === "interval" && !ranges) { return; }
      var item = el(legend, "li");
      el(item, "span", { class: "ae-key ae-key-" + entry[0], "aria-hidden": "true" });
      el(item, "span", {}, entry[1]);
    });
  }
  function explain(kind, words) {
    var item = el(legend, "li");
    sign(svg(item, "svg", { width: 16, height: 16, "aria-hidden": "true" }), kind, 8, 8);
    el(item, "span", {}, words);
  }
  function slots(all) {
    var at = {}, x = 0, before = null;
    all.map(function (s) { return s.at; })
      .sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; })
      .forEach(function (place) {
        if (at[place] !== undefined) { return; }
        if (before !== null) { x += before === place[0] ? 1 : 2; }
        at[place] = x;
        before = place[0];
      });
    return { at: at, last: x };
  }
  function sign(parent, kind, x, y) {
    var shape = { fill: "none", "stroke-width": 2, class: "ae-mark ae-" + kind };
    if (kind === "today") {
      svg(parent, "rect", Object.assign({ x: x - 6, y: y - 6, width: 12, height: 12 }, shape));
    } else if (kind === "best") {
      var d = "M" + x + " " + (y - 7) + "l7 7l-7 7l-7 -7z";
      svg(parent, "path", Object.assign({ d: d }, shape));
    } else {
      svg(parent, "circle", Object.assign({ cx: x, cy: y, r: 4.5 }, shape));
    }
  }
  function markWord(mark) { return mark.word || data.marked[mark.mark]; }
  function nines(q) { return -Math.log10(q); }
  function reach(name, all) {
    // The decades to draw, from the worst value to the best, and whether a lane for 0 is needed.
    var ends = data.goals[name] ? [data.goals[name]] : [];
    var zero = false;
    all.forEach(function (s) {
      s[name].slice(0, 7).forEach(function (q) { if (q > 0) { ends.push(q); } });
      zero = zero || s[name][0] === 0;
    });
    var logs = ends.map(nines);
    var low = logs.length ? Math.max(0, Math.min.apply(null, logs) - 0.15) : 0;
    var high = logs.length ? Math.max.apply(null, logs) + 0.15 : 1;
    if (high - low < 1) { high = low + 1; }
    return { low: low, high: high + (zero ? 0.16 * (high - low) : 0), zero: zero, best: high };
  }
  function panel(name, points, marked) {
    var holder = panels[name];
    var wide = Math.max(280, holder.clientWidth || 560), high = 178;
    var box = { left: 102, right: wide - 10, top: 24, bottom: high - (name === "loss" ? 20 : 34) };
    var all = points.concat(marked.filter(function (m) { return m[name]; }));
    var range = reach(name, all), places = slots(all);
    function y(q) {
      var at = q > 0 ? nines(q) : (range.high + range.best) / 2;
      at = Math.min(Math.max(at, range.low), range.high);
      return box.bottom - (at - range.low) / (range.high - range.low) * (box.bottom - box.top);
    }
    function x(place) {
      return box.left + (places.at[place] + 0.8) / (places.last + 1.6) * (box.right - box.left);
    }
    holder.textContent = "";
    var g = svg(holder, "svg", {
      viewBox: "0 0 " + wide + " " + high, width: wide, height: high, role: "img",
      "aria-label": alternative(name, points, marked), class: "ae-chart ae-" + WORDS[name]
    });
    svg(g, "text", { x: 2, y: 13, class: "ae-title" }, data.axes[name].title);
    axis(g, name, box, range, y, wide);
    goal(g, name, box, y);
    lines_(g, name, points, x, y);
    named(g, all, x, box, name);
    marked.forEach(function (m) { if (m[name]) { sign(g, m.mark, x(m.at), y(m[name][0])); } });
  }
  function axis(g, name, box, range, y, wide) {
    var decades = data.axes[name].ticks.filter(function (tick) {
      return nines(tick[0]) >= range.low - 1e-9 && nines(tick[0]) <= range.best + 1e-9;
    });
    var step = Math.ceil(decades.length / 6);
    decades.forEach(function (tick, place) {
      if (place % step) { return; }
      svg(g, "line", { x1: box.left, x2: wide - 10, y1: y(tick[0]), y2: y(tick[0]), class: "ae-grid" });
      svg(g, "text", { x: box.left - 6, y: y(tick[0]) + 4, class: "ae-tick" }, tick[1]);
    });
    if (range.zero) {
      svg(g, "text", { x: box.left - 6, y: y(0) + 4, class: "ae-tick" }, data.axes[name].zero);
    }
  }
  function goal(g, name, box, y) {
    if (data.goals[name] === undefined) { return; }
    var at = y(data.goals[name]);
    svg(g, "line", { x1: box.left, x2: box.right, y1: at, y2: at, class: "ae-goal" });
    svg(g, "text", { x: box.left + 4, y: at - 4, class: "ae-goal-word" }, "your goal");
  }
  function lines_(g, name, points, x, y) {
    var groups = {};
    points.forEach(function (s) { (groups[s.at[0]] = groups[s.at[0]] || []).push(s); });
    Object.keys(groups).forEach(function (factor) {
      var group = groups[factor];
      svg(g, "polyline", {
        points: group.map(function (s) { return x(s.at) + "," + y(s[name][0]); }).join(" "),
        class: "ae-line"
      });
      group.forEach(function (s) {
        var at = x(s.at), q = s[name];
        if (q[1] < q[2]) {
          svg(g, "path", {
            d: "M" + at + " " + y(q[1]) + "V" + y(q[2]) + "M" + (at - 4) + " " + y(q[1]) + "h8M" +
              (at - 4) + " " + y(q[2]) + "h8", class: "ae-interval"
          });
        }
        var dot = svg(g, "circle", { cx: at, cy: y(q[0]), r: 3.5, class: "ae-dot" });
        svg(dot, "title", {}, text(s.name) + ": " + text(s.said[name === "loss" ? 0 : 1]));
      });
    });
  }
  function named(g, all, x, box, name) {
    var factors = {};
    all.forEach(function (s) {
      (factors[s.at[0]] = factors[s.at[0]] || {})[s.at[1]] = x(s.at);
    });
    Object.keys(factors).forEach(function (factor) {
      var xs = Object.keys(factors[factor]).map(function (least) {
        var at = factors[factor][least];
        svg(g, "text", { x: at, y: box.bottom + 14, class: "ae-slot" }, least);
        return at;
      });
      if (name === "loss") { return; }
      var middle = (Math.min.apply(null, xs) + Math.max.apply(null, xs)) / 2;
      svg(g, "text", { x: middle, y: box.bottom + 29, class: "ae-slot ae-factor" }, "RF " + factor);
    });
    if (name === "refused") {
      svg(g, "text", { x: box.left - 6, y: box.bottom + 14, class: "ae-tick" }, "min ISR");
    }
  }
  function alternative(name, points, marked) {
    var part = name === "loss" ? 0 : 1;
    var said = points.map(function (s) { return text(s.name) + ": " + text(s.said[part]); });
    var others = marked.filter(function (m) { return m[name]; }).map(function (m) {
      return markWord(m) + ": " + text(m.name) + ", " + text(m.said[part]);
    });
    var goals = data.goals[name] === undefined ? [] : [data.axes[name].goal];
    return [data.axes[name].title].concat(goals, others, said).join(". ") + ".";
  }

  if (data.note && !ask) { el(form, "p", { class: "ae-note" }, data.note); }
  show(Object.assign({}, chosen), find(chosen));
  var width = 0;
  new ResizeObserver(function () {
    if (shown && panels.loss.clientWidth !== width) {
      width = panels.loss.clientWidth;
      draw();
    }
  }).observe(root);
  return { choose: choose, learn: learn };
}
