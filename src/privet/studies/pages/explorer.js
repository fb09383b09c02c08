"use strict";
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const form = document.getElementById("picker");
  const fields = index.names.map((name) => form.elements[name]);
  const measure = form.elements.measure;
  const moved = document.getElementById("moved");
  let chosen = index.chosen;

  function put(place, name) {
    const found = document.getElementById(name);
    document.getElementById(place).replaceChildren(found ? found.content.cloneNode(true) : "");
  }

  function show() {
    fields.forEach((field, i) => { field.value = index.groups[chosen][i]; });
    put("spread", `spread-${index.places[chosen]}-${measure.selectedIndex}`);
    put("model", `model-${chosen}`);
    for (const lane of document.querySelectorAll("#spread [data-group]")) {
      lane.classList.toggle("chosen", Number(lane.dataset.group) === chosen);
      lane.onclick = () => { chosen = Number(lane.dataset.group); moved.hidden = true; show(); remember(); };
    }
  }

  // Not everything was run with everything: of what was, the one that agrees with most, first of all with the last pick.
  function nearest(wanted, last) {
    const agreement = (words) => words.reduce((sum, word, i) => sum + (word === wanted[i] ? (i === last ? 10 : 1) : 0), 0);
    const best = index.groups.reduce((a, words, i) => (agreement(words) > agreement(index.groups[a]) ? i : a), chosen);
    moved.hidden = index.groups[best].every((word, i) => word === wanted[i]);
    return best;
  }

  function remember() {
    const said = new URLSearchParams(index.names.map((name, i) => [name, index.groups[chosen][i]]));
    said.set("measure", measure.value);
    history.replaceState(null, "", `#${said}`);
  }

  function recall() {
    const said = new URLSearchParams(location.hash.slice(1));
    if (![...said.keys()].some((name) => name in form.elements)) return;
    if (index.measures.includes(said.get("measure"))) measure.value = said.get("measure");
    chosen = nearest(index.names.map((name, i) => said.get(name) ?? index.groups[chosen][i]), -1);
  }

  fields.forEach((field, last) => field.addEventListener("change", () => {
    chosen = nearest(fields.map((each) => each.value), last);
    show();
    remember();
  }));
  measure.addEventListener("change", () => { show(); remember(); });
  window.addEventListener("hashchange", () => { recall(); show(); });
  form.hidden = false;
  document.body.classList.add("live");
  recall();
  show();
})();
