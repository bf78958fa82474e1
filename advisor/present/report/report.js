// What the report can do in a browser; without it, everything is still there to read.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");
  function make(parent, tag, words) {
    var made = document.createElement(tag);
    if (words !== undefined) { made.textContent = words; }
    parent.appendChild(made);
    return made;
  }

  // Copy and download what stands below a title.
  document.querySelectorAll(".tools").forEach(function (tools) {
    var section = tools.nextElementSibling;
    while (section && !section.matches("pre, details")) { section = section.nextElementSibling; }
    var text = section && (section.matches("pre") ? section : section.querySelector("pre"));
    if (!text) { return; }
    tools.hidden = false;
    var title = text.getAttribute("aria-label");
    var copy = make(tools, "button", "Copy");
    copy.type = "button";
    copy.setAttribute("aria-label", "Copy " + title);
    copy.addEventListener("click", function () {
      function done() { copy.textContent = "Copied"; }
      function select() {
        getSelection().selectAllChildren(text);
        if (document.execCommand("copy")) { done(); }
      }
      // A page opened from a file may not be allowed to write to the clipboard.
      if (navigator.clipboard) {
        navigator.clipboard.writeText(text.textContent).then(done, select);
      } else {
        select();
      }
    });
    var name = tools.dataset.name;
    if (!name) { return; }
    var download = make(tools, "button", "Download");
    download.type = "button";
    download.setAttribute("aria-label", "Download " + name);
    download.addEventListener("click", function () {
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text.textContent], { type: "text/plain" }));
      link.download = name;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  });

  // On a phone the rows of a wide table are blocks, and each cell names its column.
  document.querySelectorAll(".table table:not(.grid)").forEach(function (table) {
    var names = Array.from(table.tHead.rows[0].cells).map(function (cell) {
      return cell.textContent;
    });
    if (names.length < 4) { return; }
    table.classList.add("stacked");
    table.querySelectorAll("tbody td").forEach(function (cell) {
      cell.dataset.label = names[cell.cellIndex] + ": ";
    });
  });

  // Sort a table by a column: a click on its heading; another one turns it round.
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var rows = Array.from(table.tBodies[0].rows);
    Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.textContent = "";
      heading.appendChild(button);
      button.addEventListener("click", function () {
        var up = heading.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("[aria-sort]").forEach(function (each) {
          each.removeAttribute("aria-sort");
        });
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.slice().sort(function (one, two) {
          var found = compared(one.cells[column], two.cells[column]);
          return up ? found : -found;
        }).forEach(function (row) { table.tBodies[0].appendChild(row); });
      });
    });
  });
  function compared(one, two) {
    if (one.dataset.order !== undefined) { return one.dataset.order - two.dataset.order; }
    return one.textContent.localeCompare(two.textContent, "en", { numeric: true });
  }

  // Show only the topics with a text in their name, their settings today or their findings, or
  // that miss a goal. What the plan would set is not searched: a topic has not got it yet.
  document.querySelectorAll(".filter").forEach(function (filter) {
    var table = filter.nextElementSibling.querySelector("table");
    var rows = Array.from(table.tBodies[0].rows);
    function fitting(row, words) {
      return Array.from(row.querySelectorAll("[data-searched]")).some(function (cell) {
        return cell.textContent.toLowerCase().includes(words);
      });
    }
    var search = filter.querySelector("[type=search]");
    var missed = filter.querySelector("[type=checkbox]");
    var status = filter.querySelector("[role=status]");
    filter.hidden = false;
    function show() {
      var words = search.value.toLowerCase();
      var count = 0;
      rows.forEach(function (row) {
        row.hidden = !fitting(row, words) || (missed.checked && !row.classList.contains("missed"));
        count += row.hidden ? 0 : 1;
      });
      status.textContent = count === rows.length ? "" : count + " of " + rows.length + " rows";
    }
    search.addEventListener("input", show);
    missed.addEventListener("change", show);
  });

  // What is wider than the page is scrolled; the keyboard must reach it.
  function reach() {
    document.querySelectorAll(".table").forEach(function (table) {
      if (table.scrollWidth > table.clientWidth) {
        table.setAttribute("tabindex", "0");
      } else {
        table.removeAttribute("tabindex");
      }
    });
  }
  reach();
  addEventListener("resize", reach);

  // A link opens what it leads to.
  function unfold() {
    var target = document.getElementById(location.hash.slice(1));
    for (var each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") { each.open = true; }
    }
  }
  unfold();
  addEventListener("hashchange", unfold);

  // On paper everything is open.
  addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (each) { each.open = true; });
  });
})();
