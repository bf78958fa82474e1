// The explorer in a notebook, as anywidget runs it: `explorer.js` with a kernel to ask.
export default () => {
  let kept = null; // the explorer drawn last

  function opened(el, page) {
    const replies = new Map();
    const own = Math.random().toString(36).slice(2);
    const root = el.appendChild(document.createElement("div"));
    const explorer = { root, seen: false, focused: null, stop: null };
    // The kernel works on one question at a time. Of those that wait only the latest is sent: what
    // was chosen in between is not on the screen any more.
    let open = null;
    let next = null;
    requestAnimationFrame(() => { explorer.seen = root.isConnected; });
    explorer.heard = (message) => {
      const reply = replies.get(message.id);
      if (open && open.id === message.id && !message.more) {
        open = next;
        next = null;
        explorer.again();
      }
      if (reply) { reply(message); }
    };
    explorer.again = () => { if (open) { explorer.send(open); } };
    explorer.tell = () => {};
    const early = []; // asked while the page is being drawn, before the kernel is connected
    explorer.send = (question) => { if (question.kind !== "setting") { early.push(question); } };
    explorer.early = () => early.splice(0).forEach((question) => explorer.send(question));
    explorer.mounted = mount(root, page, (values, reply, kind) => {
      const question = { id: own + replies.size, values, kind };
      replies.set(question.id, reply);
      if (kind === "cancel") {
        next = null;
        if (open) { explorer.send({ ...question, id: open.id }); }
      } else if (kind !== "setting") {
        explorer.send(question); // other processes work on it and answer in parts
      } else if (open) {
        // What takes seconds ends when something else is chosen.
        next = question;
        explorer.send({ id: open.id, values: open.values, kind: "cancel" });
      } else {
        open = question;
        explorer.again();
      }
    }, (values) => explorer.tell(values));
    root.addEventListener("focusin", (event) => { explorer.focused = event.target; });
    root.addEventListener("focusout", () => setTimeout(() => {
      const gone = root.isConnected && !root.contains(document.activeElement);
      if (gone) { explorer.focused = null; }
    }));
    return explorer;
  }

  function connect(explorer, model) {
    const learned = () => explorer.mounted.learn(model.get("page"));
    const chosen = () => explorer.mounted.set(model.get("values"));
    model.on("msg:custom", explorer.heard);
    model.on("change:page", learned);
    model.on("change:values", chosen);
    explorer.send = (question) => model.send(question);
    explorer.tell = (values) => {
      model.set("values", values);
      model.save_changes();
    };
    explorer.early();
    explorer.again();
    explorer.stop = () => {
      model.off("msg:custom", explorer.heard);
      model.off("change:page", learned);
      model.off("change:values", chosen);
    };
    return explorer.stop;
  }

  return {
    render({ model, el }) {
      if (kept === null || !kept.seen || kept.root.isConnected) {
        const page = model.get("page");
        el.dataset.advisorLive = model.get("token");
        kept = opened(el, { ...page, chosen: model.get("values") || page.chosen });
        return connect(kept, model);
      }
      // An output that is written again, as the kernel does when its page is complete, gets the
      // explorer that was there, with what was chosen in it and the control in use.
      const { root, focused } = kept;
      el.dataset.advisorLive = model.get("token");
      kept.stop();
      el.appendChild(root);
      kept.mounted.learn(model.get("page"));
      requestAnimationFrame(() => { // until then the output is not in the document
        if (focused && root.isConnected) { focused.focus({ preventScroll: true }); }
      });
      return connect(kept, model);
    }
  };
};
