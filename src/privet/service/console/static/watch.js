// Follows a fit: by events of the server, or where they do not come, by asking again and again.

const job = document.getElementById("job");
const slot = (name) => job.querySelector(`[data-slot=${name}]`);
const WORDS = { queued: "It waits for its turn.", running: "It grows.", done: "The model is ready.", failed: "It failed.", cancelled: "It was cancelled." };
let last = "";

function tell(seen) {
  slot("state").textContent = WORDS[seen.state] ?? seen.state;
  slot("step").textContent = seen.step;
  const bar = slot("progress");
  if (seen.total) {
    bar.max = seen.total;
    bar.value = Math.min(seen.done, seen.total);
  }
  if (seen.step && seen.step !== last) {
    const line = document.createElement("li");
    line.textContent = seen.step;
    slot("log").append(line);
    slot("log").scrollTop = slot("log").scrollHeight;
    last = seen.step;
  }
  if (seen.state !== "done" && seen.state !== "failed" && seen.state !== "cancelled") return false;
  location.reload(); // the server shows the model, or what went wrong
  return true;
}

async function poll() {
  try {
    const answer = await fetch(`${job.dataset.job}/state`, { headers: { Accept: "application/json" } });
    if (answer.status === 401 || answer.status === 404) return location.reload();
    if (answer.ok && tell(await answer.json())) return;
  } catch { /* the server may be back in a moment */ }
  setTimeout(poll, 1000);
}

const events = new EventSource(`${job.dataset.job}/events`);
let ended = false;
events.onmessage = (event) => {
  ended = tell(JSON.parse(event.data));
  if (ended) events.close();
};
events.onerror = () => {
  events.close();
  if (!ended) setTimeout(poll, 300);
};
