// The search of the site runs in a worker, which browsers refuse to pages opened from a folder.
// There it runs in a hidden frame instead. (Material for MkDocs would load such a script from a network.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.document.write("<!doctype html><body></body>");
      this.inside.document.close();
      const load = (address) =>
        new Promise((resolve) => {
          const script = this.inside.document.createElement("script");
          script.src = address;
          script.onload = resolve;
          this.inside.document.body.appendChild(script);
        });
      this.inside.importScripts = async (...addresses) => {
        for (const address of addresses) await load(new URL(address, url).href);
      };
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
