// Copies the command of a topic. Without scripts the column is not shown: the text is elsewhere too.
(function () {
  "use strict";
  document.querySelectorAll(".advisor-verdict:not(.av-scripted)").forEach(function (root) {
    root.classList.add("av-scripted");
    root.querySelectorAll("button[data-command]").forEach(function (button) {
      button.addEventListener("click", function () {
        copy(button.dataset.command, function (said) {
          button.textContent = said;
          setTimeout(function () { button.textContent = "Copy"; }, 2000);
        });
      });
    });
  });
  function copy(words, told) {
    function byHand() {
      // A page opened as a file may not be allowed to write to the clipboard.
      var area = document.createElement("textarea");
      area.value = words;
      area.style.cssText = "position: fixed; top: 0; left: -100vw";
      document.body.appendChild(area);
      area.select();
      told(document.execCommand("copy") ? "Copied" : "Not copied");
      area.remove();
    }
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(words).then(function () { told("Copied"); }, byHand);
    } else {
      byHand();
    }
  }
})();
