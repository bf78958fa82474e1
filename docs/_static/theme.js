// What the theme of this site lacks, for pictures of notebooks and for readers with a keyboard.
addEventListener("DOMContentLoaded", function () {
  "use strict";
  // Pictures ask JupyterLab's attribute whether the page is light. The reader may have chosen with
  // the button of this site, else the computer decides.
  function follow() {
    var theme = document.body.dataset.theme;
    if (theme === "light" || theme === "dark") {
      document.body.dataset.jpThemeLight = String(theme === "light");
    } else {
      delete document.body.dataset.jpThemeLight;
    }
  }
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-theme"] });
  follow();
  document.querySelectorAll("[role=heading]:not([aria-level])").forEach(function (heading) {
    heading.setAttribute("aria-level", "2");
  });
  // On a phone, words in charts stay as large as on a desk; the chart is scrolled instead.
  document.querySelectorAll("svg.advisor-chart").forEach(function (chart) {
    chart.style.minWidth = 0.75 * parseFloat(chart.style.maxWidth) + "pt";
    chart.parentNode.style.overflowX = "auto";
  });
  // What is wider than the page is scrolled; the keyboard must reach it.
  function reach() {
    document.querySelectorAll("pre, .table-wrapper, .advisor-figure").forEach(function (part) {
      if (part.scrollWidth > part.clientWidth) { part.tabIndex = 0; }
    });
  }
  reach();
  addEventListener("resize", reach);
});
