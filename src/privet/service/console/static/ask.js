// Says what a question would buy while its form is filled in. Without this script the page says it when asked to.
// Nothing here makes HTML: replies are plain texts, and they are set as texts.

const form = document.getElementById("ask");
const fit = document.getElementById("fit");
const trial = document.getElementById("trial");

function shownFor(kind) {
  for (const part of form.querySelectorAll("[data-for]")) {
    part.hidden = !part.dataset.for.split(" ").includes(kind);
  }
  const numbers = kind === "mean" || kind === "sum";
  for (const option of form.querySelectorAll("#column option[value]:not([value=''])")) {
    const fits = numbers ? "number" in option.dataset : kind !== "quantile" || "number" in option.dataset || "date" in option.dataset;
    option.disabled = !fits;
    if (!fits && option.selected) form.elements.column.value = "";
  }
}

function chosenText(details) {
  const checked = [...details.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
  const [low, high] = [...details.querySelectorAll("input:not([type=checkbox])")].map((box) => box.value.trim());
  if (checked.length) return `is ${checked.slice(0, 4).join(" or ")}${checked.length > 4 ? " …" : ""}`;
  if (low && high) return `from ${low} to ${high}`;
  return low ? `from ${low}` : high ? `below ${high}` : "";
}

let waiting = 0;
let running = null;

async function preview() {
  const box = document.getElementById("preview");
  if (running) running.abort();
  running = new AbortController();
  box.setAttribute("aria-busy", "true");
  const fields = new URLSearchParams(new FormData(form));
  fields.delete("key");
  let reply;
  try {
    const answer = await fetch(`${form.dataset.preview}?${fields}`, { signal: running.signal, headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    reply = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") return;
    reply = { accuracy: "", remark: "", cost: "", more: "", problem: "The server did not say what this would buy. Sign in again, or try later." };
  }
  for (const slot of box.querySelectorAll("[data-slot]")) {
    const text = reply[slot.dataset.slot] ?? "";
    slot.textContent = text;
    if (slot.dataset.slot === "problem") slot.hidden = text === "";
  }
  box.removeAttribute("aria-busy");
}

function later() {
  clearTimeout(waiting);
  waiting = setTimeout(preview, 200);
}

if (form) {
  document.getElementById("look").hidden = true;
  shownFor(form.elements.kind.value);
  for (const details of form.querySelectorAll(".condition")) details.querySelector(".chosen").textContent = chosenText(details);
  form.addEventListener("input", (event) => {
    if (event.target.id === "kind") shownFor(event.target.value);
    if (event.target.id === "within") form.elements.aim.value = "accuracy";
    if (event.target.id === "epsilon") form.elements.aim.value = "epsilon";
    const details = event.target.closest(".condition");
    if (details) details.querySelector(".chosen").textContent = chosenText(details);
    later();
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.id === "pay-button") {
      // after the form was read: a disabled button is not sent, and a second press would do nothing but wait
      setTimeout(() => { event.submitter.disabled = true; event.submitter.textContent = "Asking …"; }, 0);
    }
  });
  addEventListener("pageshow", () => { const button = document.getElementById("pay-button"); button.disabled = false; button.textContent = "Ask and pay"; });
}

if (fit) { // the page opens again with the choices of another algorithm, and the keyboard stays where it was
  const choose = document.getElementById("choose"), algorithm = document.getElementById("algorithm");
  choose.hidden = true;
  algorithm.addEventListener("change", () => { sessionStorage.setItem("privet-focus", "algorithm"); choose.click(); });
  if (sessionStorage.getItem("privet-focus") === "algorithm") algorithm.focus();
  sessionStorage.removeItem("privet-focus");
}

if (trial) {
  const says = (words, busy) => { document.getElementById("trying").textContent = words; document.getElementById("choose").disabled = busy; };
  trial.addEventListener("submit", () => setTimeout(() => says("Fitting models to invented rows …", true), 0));
  addEventListener("pageshow", () => says("", false));
}
