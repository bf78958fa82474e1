// The explorer of replication settings, without dependencies: the same file runs in a notebook's
// widget, in an exported page and in the report.
//
// mount(root, data, ask, tell) fills `root`. `data` is what settings_grid.py made. `ask(values,
// reply, kind)` asks the kernel for a setting that `data` lacks, and may reply several times; null
// without one. `tell(values)` is called with what the screen shows. It returns `set`, to show other
// values, and `learn`, for a page with more settings.
//
// `chosen` is what the controls show, `shown` is the setting on the screen. They differ while a
// setting is computed, and while a value is refused: then what is shown has the last value of that
// control that was not. Texts, picture and commands are always those of `shown`.
function mount(root, data, ask, tell) {
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
  var shown = null;
  var refused = {}; // why the value of a control is not the one shown, by control
  var answered = ""; // the last answer that was drawn
  var waiting = 0;
  var clock = 0; // of the setting that is being computed
  var idle = 0;
  var lookedAhead = null;
  var fields = {};

  function text(x) {
    // A text, its place, or the places of its clauses.
    return Array.isArray(x) ? x.map(text).join(" ") : typeof x === "number" ? texts[x] : x;
  }
  function key(values) {
    return joined(data.controls.map(function (control) { return control.key; }), values);
  }
  function joined(names, values) {
    // What a cluster has seen is named, and left out where nothing is typed.
    var typed = names.filter(function (name) { return isSeen(name) && values[name]; });
    return names.filter(function (name) { return name !== data.price && !isSeen(name); })
      .map(function (name) { return values[name]; })
      .concat(typed.map(function (name) { return name + "=" + JSON.stringify(values[name]); }))
      .join("|");
  }
  function isSeen(name) { return name.indexOf(data.seen) === 0; }
  function find(values) {
    var found = settings[key(values)];
    var factor = values.replication_factor, least = values.min_insync_replicas;
    var capped = data.capped[values.kafka_version || data.version];
    if (found || ask || !capped || !(Number(least) > Number(factor))) { return found; }
    found = settings[key(placed(values, factor, factor))];
    return found && Object.assign({}, found, { notes: [["min_insync_replicas", capped]] });
  }
  function still(values) {
    // The same with the first values of what moves neither curve: how producers retry.
    var other = Object.assign({}, values);
    data.still.forEach(function (name) { other[name] = data.chosen[name]; });
    return other;
  }
  function drawable(values) { return settings[key(values)] || settings[key(still(values))]; }
  function context(values) { return joined(data.context, values); }
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
  var progress = el(result, "p", { class: "ae-busy" });
  var busy = el(progress, "span", { "aria-live": "polite" });
  var seconds = el(progress, "span", { "aria-hidden": "true" });
  var cancel = el(progress, "button", { type: "button", class: "ae-button" }, "Cancel");
  var held = el(result, "p", { class: "ae-held", role: "status" });
  var answer = el(result, "div", { class: "ae-answer" });
  var status = el(answer, "div", { class: "ae-status", role: "status" });
  var badge = el(status, "p", { class: "ae-badge" });
  var headline = el(status, "p", { class: "ae-headline" });
  var verdict = el(status, "p", { class: "ae-verdict" });
  var goals = el(status, "ul", { class: "ae-goals" });
  var better = el(answer, "p", { class: "ae-better" });
  var moved = el(answer, "p", { class: "ae-moved", role: "status" });
  var picture = el(answer, "div", { class: "ae-picture" });
  var panels = {
    loss: el(picture, "div", { class: "ae-panel" }),
    refused: el(picture, "div", { class: "ae-panel" })
  };
  var legend = el(picture, "ul", { class: "ae-legend" });
  var floor = el(answer, "p", { class: "ae-note ae-floor" });
  var more = el(root, "details", { class: "ae-more" });
  el(more, "summary", {}, "All numbers of this setting");
  var lines = el(more, "ul");
  var commands = el(root, "div", { class: "ae-commands" });
  var pays = null; // where on the scale of prices the verdict holds
  var counts = null; // what the cluster has seen: its fold, and the line with the last control
  progress.hidden = true;
  cancel.addEventListener("click", stop);

  data.controls.forEach(function (control) {
    var id = "advisor-" + number + "-" + control.key;
    var isPrice = control.key === data.price;
    var place_ = control.group ? counted(control) : form;
    var row = el(place_, "div", { class: "ae-row" + (isPrice ? " ae-price" : "") });
    el(row, "label", { for: id }, control.label);
    var field;
    if (isPrice) {
      field = scale(row, id, control.options);
    } else if (control.options) {
      field = el(row, "select", { id: id });
      control.options.forEach(function (option) {
        el(field, "option", { value: option[0] }, option[1]);
      });
      if (control.options.length === 1) {
        field.disabled = true;
        field.title = ask ? "There is nothing else to choose." :
          "This page holds no other value. In a notebook with a kernel you can change it.";
      }
    } else if (control.group) {
      // Not a number field: that shows what is no number, and says that it is empty.
      field = el(row, "input", {
        id: id, type: "text", inputmode: "decimal", placeholder: control.hint, autocomplete: "off"
      });
    } else {
      field = el(row, "input", {
        id: id, type: "number", min: control.min, max: control.max, step: control.step
      });
    }
    var said = el(row, "p", { class: "ae-said", id: id + "-said", "aria-live": "assertive" });
    field.setAttribute("aria-describedby", id + "-said");
    fields[control.key] = {
      control: control, field: field, said: said,
      get: function () {
        return isPrice ? control.options[field.value][0] : control.group ? field.value.trim() :
          field.value;
      },
      set: function (value) {
        field.value = isPrice ? String(place(control.options, value)) : value;
        if (isPrice) { named(field, control.options[field.value][1]); }
      }
    };
    field.addEventListener(isPrice ? "input" : "change", function (event) {
      chosen[control.key] = fields[control.key].get();
      if (isPrice) { named(field, control.options[field.value][1]); }
      choose(control.key, event.timeStamp);
    });
  });

  // What the cluster has seen: a line for each thing that may have happened, folded at first.
  function counted(control) {
    if (!counts) {
      counts = { fold: el(form, "details", { class: "ae-seen" }), pair: null };
      el(counts.fold, "summary", {}, "What your cluster has seen");
      el(counts.fold, "p", { class: "ae-note" }, "How often each happened; 0 for never, empty for " +
        "not counted.");
    }
    if (!control.beside) { counts.pair = el(counts.fold, "div", { class: "ae-pair" }); }
    return counts.pair;
  }

  // The price of a loss: a scale of named steps, with a bar where the verdict holds.
  function place(options, value) {
    return options.findIndex(function (option) { return option[0] === value; });
  }
  function scale(row, id, options) {
    var box = el(row, "div", { class: "ae-scale" });
    var name = el(box, "output", { for: id, class: "ae-step" });
    var field = el(box, "input", {
      id: id, type: "range", min: 0, max: options.length - 1, step: 1
    });
    var track = el(box, "div", { class: "ae-track", "aria-hidden": "true" });
    pays = { options: options, bar: el(track, "span", { class: "ae-pays" }), marks: [
      el(track, "span", { class: "ae-even" }), el(track, "span", { class: "ae-even" })
    ], name: name };
    pays.sure = el(row, "p", { class: "ae-note ae-sure" });
    return field;
  }
  function named(field, name) {
    pays.name.textContent = name;
    field.setAttribute("aria-valuetext", name);
  }
  function position(minutes) {
    // Where a price stands between the steps, in percent of the scale; beyond its ends the end.
    var prices = pays.options.map(function (option) { return Number(option[0]); });
    var last = prices.length - 1;
    if (!(minutes > prices[0])) { return 0; }
    if (minutes >= prices[last]) { return 100; }
    var at = prices.findIndex(function (price) { return price > minutes; }) - 1;
    var part = Math.log(minutes / prices[at]) / Math.log(prices[at + 1] / prices[at]);
    return (at + part) / last * 100;
  }
  function holds(judged) {
    var ends = judged.pays.map(function (minutes, end) {
      return minutes === null ? end * 100 : minutes === "infinite" ? 100 : position(minutes);
    });
    pays.bar.style.left = ends[0] + "%";
    pays.bar.style.width = Math.max(0, ends[1] - ends[0]) + "%";
    pays.marks.forEach(function (mark, end) {
      mark.hidden = ends[end] <= 0 || ends[end] >= 100;
      mark.style.left = ends[end] + "%";
    });
    pays.sure.textContent = text(judged.sure);
  }

  // Choosing: look the setting up, or ask for it; what is on the screen stays meanwhile.
  function fill() {
    Object.keys(fields).forEach(function (name) { fields[name].set(chosen[name]); });
  }
  function choose(changed, since) {
    if (changed === "topic" && data.today[chosen.topic]) {
      // The topic as it is today.
      Object.assign(chosen, data.today[chosen.topic]);
      Object.keys(data.today[chosen.topic]).forEach(function (name) { delete refused[name]; });
      fill();
    }
    attempt(Object.assign({}, chosen), {}, { changed: changed, since: since, asked: ++waiting });
  }
  function set(values) {
    // What the kernel chose, or one click.
    var same = data.controls.every(function (c) { return (shown || {})[c.key] === values[c.key]; });
    if (same) { return; }
    Object.keys(chosen).forEach(function (name) {
      if (values[name] !== undefined) { chosen[name] = values[name]; }
    });
    refused = {};
    fill();
    choose("", performance.now());
  }
  function attempt(values, why, change) {
    // `why` holds the values that are refused; in `values` others stand for them.
    var found = find(values);
    if (found) {
      arrived(values, why, change, found);
    } else if (ask) {
      // Asked before anything is drawn: the kernel works meanwhile.
      question(values, why, change);
      compute(values);
      drawn(change.since, false);
    } else {
      arrived(values, why, change, { refusal: data.missing, by: [] });
    }
  }
  function question(values, why, change) {
    ask(values, function (reply) {
      Object.assign(settings, reply.more ? {} : reply.settings);
      if (change.asked !== waiting) { return; }
      var found = reply.settings[key(values)];
      if (reply.more) {
        // The numbers; the verdict compares them with other settings, which takes longer.
        if (found) {
          settings[key(values)] = found;
          show(values, found, why);
          delete settings[key(values)];
          compute(values);
          drawn(change.since, false);
        }
        return;
      }
      if (found) { arrived(values, why, change, found); } else { stop(); }
    }, "setting");
  }
  function arrived(values, why, change, found) {
    if (found.refusal === undefined) {
      show(values, found, why);
      drawn(change.since, true);
      if (ask) { askAround(values, change.asked); }
      return;
    }
    // The value that was just chosen is to blame if it takes part, else one that already was.
    var by = found.by || [];
    var open = Object.keys(fields).filter(function (name) {
      var instead = shown ? shown[name] : name === "min_insync_replicas" ?
        values.replication_factor : values[name];
      return why[name] === undefined && instead !== values[name];
    });
    function among(names) {
      return open.filter(function (name) { return names.indexOf(name) >= 0; });
    }
    var blamed = among(by).concat(open);
    var first = among(by.indexOf(change.changed) >= 0 ? [change.changed] : [])
      .concat(among(by).filter(function (name) { return refused[name] !== undefined; }))
      .concat(by.length ? [] : among([change.changed])).concat(blamed)[0];
    if (first === undefined) {
      // Nothing was answered before: there is only the reason to show.
      why[by[0] || Object.keys(fields)[0]] = text(found.refusal);
      blame(why);
      root.dataset.state = "refused";
      drawn(change.since, true);
      return;
    }
    why[first] = text(found.refusal);
    var other = Object.assign({}, values);
    other[first] = shown ? shown[first] : values.replication_factor;
    attempt(other, why, change);
  }
  function compute(values) {
    var start = performance.now();
    clearInterval(clock);
    root.dataset.state = "computing";
    old(true);
    busy.textContent = "Computing " + nameOf(values) + " …";
    progress.hidden = false;
    cancel.hidden = true;
    clock = setInterval(function () {
      var taken = Math.floor((performance.now() - start) / 1000);
      cancel.hidden = taken < 1 || !shown;
      seconds.textContent = taken ? taken + " s" : "";
    }, 250);
  }
  function stop() {
    // Back to what is on the screen.
    waiting += 1;
    settled();
    if (ask) { ask(shown || chosen, null, "cancel"); }
    if (!shown) { return; }
    Object.assign(chosen, shown);
    fill();
    show(shown, find(shown) || drawable(shown), {});
    held.textContent = "Not computed. The controls are back at the setting that was shown.";
  }
  function settled() {
    clearInterval(clock);
    progress.hidden = true;
    seconds.textContent = "";
    busy.textContent = "";
  }
  function old(is) {
    [answer, more, commands].forEach(function (part) { part.classList.toggle("ae-old", is); });
    commands.querySelectorAll("button").forEach(function (button) { button.disabled = is; });
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
    var before = data.today;
    data = page;
    data.today = Object.assign({}, before, page.today);
    texts = page.texts;
    Object.assign(settings, page.settings);
    Object.assign(marks, page.marks);
    var found = shown && find(shown);
    if (found && answerOf(shown, found) !== answered) {
      again(found);
    } else if (shown) {
      draw();
    }
  }
  function again(found) {
    // The same setting with more about it, which must not look like an answer to another.
    var computing = root.dataset.state === "computing";
    if (computing) { return; }
    show(shown, found, refused);
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
          again(settings[key(shown)]);
        }
      }, "ahead");
    }, 150);
  }
  function complete(values) {
    return marks[context(values)] !== undefined && [values].concat(data.places.map(function (at) {
      return placed(values, at[0], at[1]);
    })).every(function (each) { return drawable(each) !== undefined; });
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
        if (!answer.classList.contains("ae-old")) {
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
  function blame(why) {
    // The refused values, each beside its control; and whose numbers stand here instead.
    refused = why;
    Object.keys(fields).forEach(function (name) {
      var part = fields[name], words = why[name];
      part.said.textContent = words || "";
      part.said.className = "ae-said" + (words ? " ae-refusal" : "");
      if (words) { part.field.setAttribute("aria-invalid", "true"); }
      else { part.field.removeAttribute("aria-invalid"); }
    });
    var names = Object.keys(why);
    if (names.some(isSeen)) { counts.fold.open = true; }
    held.textContent = !names.length ? "" : !shown ? "There is no answer for this setting." :
      "Not what the controls show: " + names.map(function (name) {
        return fields[name].control.label + " " + (optionOf(name, chosen[name]) || "left empty") +
          " has no answer, so this is with " + (optionOf(name, shown[name]) || "it left empty");
      }).join("; ") + ".";
  }
  function optionOf(name, value) {
    var option = (fields[name].control.options || []).find(function (o) { return o[0] === value; });
    return option ? option[1] : value;
  }
  function markToday() {
    // What the topic has today, in the lists; of a number only where it differs.
    var today = chosen.topic ? data.today[chosen.topic] || {} : {};
    Object.keys(fields).forEach(function (name) {
      var part = fields[name], value = today[name];
      if (part.field.tagName === "SELECT") {
        Array.prototype.forEach.call(part.field.options, function (option, at) {
          var word = part.control.options[at][1];
          option.textContent = option.value === value ? word + " (today)" : word;
        });
      } else if (value !== undefined && value !== chosen[name] && !part.said.textContent) {
        part.said.textContent = "Today: " + value + ".";
      }
    });
  }
  function answerOf(values, setting) {
    return key(values) + values[data.price] +
      JSON.stringify([setting.loss, setting.complete, Object.keys(setting.verdicts).length]);
  }
  function show(values, setting, why) {
    answered = answerOf(values, setting);
    settled();
    shown = values;
    old(false);
    blame(why);
    judge(setting);
    (setting.notes || []).forEach(function (note) {
      var part = fields[text(note[0])];
      if (part && !part.said.textContent) { part.said.textContent = text(note[1]); }
    });
    markToday();
    moved.textContent = text(setting.learned || "");
    lines.textContent = "";
    setting.lines.forEach(function (line) { el(lines, "li", {}, text(line)); });
    draw();
    list(setting.commands || []);
    if (Object.keys(why).length) { old(true); }
    root.dataset.state = Object.keys(why).length ? "refused" : "answered";
    whenIdle();
    if (tell) { tell(Object.assign({}, shown)); }
  }
  function judged(setting) {
    // The kernel sends whole verdicts by their prices; a page has places of rows.
    var price = shown[data.price], table = data.judged, said = {};
    if (!Array.isArray(setting.verdicts)) { return setting.verdicts[price]; }
    table.rows[setting.verdicts[table.prices.indexOf(price)]].forEach(function (value, at) {
      said[table.fields[at]] = value;
    });
    if (said.better !== null) { said.better = table.better[said.better]; }
    return said;
  }
  function judge(setting) {
    var said = judged(setting);
    [verdict, goals, better, floor].forEach(function (part) { part.textContent = ""; });
    if (!said) {
      badge.className = "ae-badge ae-open";
      badge.textContent = "being compared with other settings";
      headline.textContent = text(setting.name);
      if (pays) { pays.sure.textContent = ""; }
      return;
    }
    var tone = said.severity === "ok" && said.confidence === "depends" ? "unsure" : said.severity;
    // A page without a kernel learns no more: what is wrong at the middle values has its colour
    // there, and only what is well waits for how sure that is.
    var coloured = said.known || (!ask && said.severity !== "ok");
    badge.className = "ae-badge ae-" + (coloured ? tone : "open");
    badge.textContent =
      (coloured ? { critical: "✗ ", warning: "! ", ok: "✓ " }[said.severity] : "") + said.severity +
      (!said.known ? " at the card's middle values" :
        said.confidence ? "; how sure: " + data.confidence[said.confidence] : "");
    headline.textContent = text(said.headline);
    verdict.textContent = text(said.text);
    said.goals.forEach(function (goal) { el(goals, "li", {}, text(goal)); });
    floor.textContent = text(said.floor);
    if (pays) { holds(said); }
    if (said.better) {
      var button = el(better, "button", { type: "button", class: "ae-button" },
        "Show " + text(said.better.name));
      button.addEventListener("click", function () {
        set(Object.assign({}, shown, said.better.values));
      });
    }
  }
  function list(blocks) {
    commands.textContent = "";
    if (blocks.length) {
      el(commands, "p", { class: "ae-for" }, "For " + text(find(shown).name) +
        (shown.topic ? " of " + shown.topic : "") + ":");
    }
    blocks.forEach(function (block) {
      var part = el(commands, "div", { class: "ae-block" });
      var head = el(part, "div", { class: "ae-head" });
      el(head, "strong", {}, text(block[0]));
      var words = text(block[1]);
      if (block[2]) {
        var button = el(head, "button", { type: "button", class: "ae-button" }, "Copy");
        button.setAttribute("aria-label", "Copy " + text(block[0]));
        button.addEventListener("click", function () { copy(words, button); });
      }
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
  var unreached = []; // goals that no setting meets
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
    var said = judged(here);
    var marked = (marks[context(shown)] || [])
      .concat(said && said.better ? [Object.assign({ mark: "best" }, said.better)] : [])
      .concat([Object.assign({ mark: "chosen" }, here)]);
    unreached = said ? said.unreached : [];
    var points = curve();
    panel("loss", points, marked);
    panel("refused", points, marked);
    legend.textContent = "";
    marked.forEach(function (mark) { explain(mark.mark, markWord(mark) + ": " + text(mark.name)); });
    var ranges = points.concat(marked).some(function (s) {
      return s.loss && s.loss[1] < s.loss[2];
    });
    data.legend.forEach(function (entry) {
      if (entry[0] === "interval" ? !ranges : !Object.keys(data.goals).length) { return; }
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
    slotNames(g, all, x, box, name);
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
    svg(g, "text", { x: box.left + 4, y: at - 4, class: "ae-goal-word" },
      "your goal" + (unreached.indexOf(name) < 0 ? "" : ", out of reach"));
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
  function slotNames(g, all, x, box, name) {
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
  fill();
  choose("", performance.now());
  var width = 0;
  new ResizeObserver(function () {
    if (shown && panels.loss.clientWidth !== width) {
      width = panels.loss.clientWidth;
      draw();
    }
  }).observe(root);
  return { set: set, learn: learn };
}
