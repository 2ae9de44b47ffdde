// Keeps an open status page up: the parts that have changed come as events and take the place of those that are there.
// Nothing is made of text here; the server has written and escaped every part.

const AGAIN_MS = 5000; // after a refusal; after a lost connection the browser tries again by itself

const live = document.getElementById("live");
const pause = document.getElementById("pause");
let source = null;
let again = 0;

function say(text) {
  if (live.textContent !== text) live.textContent = text;
}

function take(event) {
  for (const [id, written] of Object.entries(JSON.parse(event.data))) {
    const parsed = new DOMParser().parseFromString(written, "text/html");
    document.getElementById(id)?.replaceChildren(...parsed.body.childNodes);
  }
}

function begin() {
  source = new EventSource("/status/events");
  source.onopen = () => say("live");
  source.onmessage = take;
  source.onerror = () => {
    say("not connected; what stands here is old");
    if (source?.readyState === EventSource.CLOSED) again = setTimeout(begin, AGAIN_MS);
  };
  pause.textContent = "Pause";
}

function end() {
  clearTimeout(again);
  source?.close();
  source = null;
  say("paused");
  pause.textContent = "Go on";
}

pause.hidden = false;
pause.addEventListener("click", () => (source === null ? begin() : end()));
begin();
