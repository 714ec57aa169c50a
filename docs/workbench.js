// Runs the scenarios of a page in place: beside each link to the workbench, a button opens its
// sliders and results in a frame. Nothing of the workbench is loaded before.

(() => {
  const frames = new Set();

  // A browser loads no modules from disk: there, the workbench is the one that is a single file.
  const pageOf = (href) => (location.protocol === "file:" ? href.replace("/index.html", "/offline.html") : href);

  for (const link of document.querySelectorAll('main a[href*="workbench/index.html#"]')) {
    link.href = pageOf(link.href);
    if (!link.hash.startsWith("#s=")) {
      continue;
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "run-here";
    button.textContent = "Run";
    button.setAttribute("aria-expanded", "false");
    let frame = null;
    button.addEventListener("click", () => {
      if (frame !== null) {
        frames.delete(frame);
        frame.remove();
        frame = null;
      } else {
        frame = document.createElement("iframe");
        frame.title = "The scenario above, with sliders and results";
        frame.className = "workbench-frame";
        const address = new URL(link.href);
        address.search = "?view=embed";
        frame.src = address.href;
        link.closest("p").after(frame);
        frames.add(frame);
      }
      button.textContent = frame === null ? "Run" : "Close";
      button.setAttribute("aria-expanded", String(frame !== null));
    });
    link.before(button, " ");
  }

  // The frame has the height of its content.
  addEventListener("message", (event) => {
    const frame = [...frames].find((one) => one.contentWindow === event.source);
    const height = Number(event.data?.bentpipeHeight);
    if (frame && height > 0 && height < 5000) {
      frame.style.height = `${height}px`;
    }
  });
})();
