"use strict";
// The page of a server: what it counts (from /metrics, once a second), and a place to try it.
// It keeps nothing, and loads nothing from elsewhere.

const at = (id) => document.getElementById(id);
const WINDOW_S = 60; // rates are those of the last minute, or since the start where nothing ran in it
const LINE_S = 120;

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text; // never as HTML: it is a model's text
  if (className) made.className = className;
  return made;
}

function headers() {
  const key = at("key").value;
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// ---- what the server counts ----

function read(text) {
  const found = { positions: [] };
  for (const line of text.split("\n")) {
    const match = /^([a-z_:]+)\{([^}]*)\} (\S+)$/.exec(line);
    if (!match) continue;
    const [, name, labels, value] = match;
    if (name === "vllm:spec_decode_num_accepted_tokens_per_pos_total") {
      found.positions[Number(/position="(\d+)"/.exec(labels)[1])] = Number(value);
    } else if (!name.endsWith("_bucket") && !name.endsWith("_created")) {
      found[name] = (found[name] || 0) + Number(value);
    }
    const model = /model_name="([^"]*)"/.exec(labels);
    if (model) found.model = model[1];
  }
  return found;
}

const looks = []; // of the last two minutes: {at, counts}

function since(now, before, name) {
  return (now[name] || 0) - (before[name] || 0);
}

function show(counts) {
  const now = performance.now() / 1000;
  looks.push({ at: now, counts });
  while (looks.length > 2 && looks[0].at < now - LINE_S) looks.shift();
  const first = looks.find((look) => look.at >= now - WINDOW_S) || looks[0];
  const recent = since(counts, first.counts, "outrider:rounds_total") > 0;
  const before = recent ? first.counts : {};
  const rounds = since(counts, before, "outrider:rounds_total");
  const accepted = since(counts, before, "vllm:spec_decode_num_accepted_tokens_total");
  const drafted = since(counts, before, "vllm:spec_decode_num_draft_tokens_total");
  const firsts = since(counts, before, "vllm:time_to_first_token_seconds_count");
  const speeds = looks.slice(1).map((look, i) => speed(looks[i], look));
  at("speed").textContent = (speeds.slice(-3).reduce((sum, one) => sum + one, 0) / Math.max(1, Math.min(3, speeds.length))).toFixed(1);
  at("length").textContent = rounds ? (1 + accepted / rounds).toFixed(2) : "–";
  at("rate").textContent = drafted ? `${((100 * accepted) / drafted).toFixed(1)} %` : "–";
  at("slots").textContent = `${counts["vllm:num_requests_running"]} of ${counts["outrider:slots"]}`;
  at("waiting").textContent = String(counts["vllm:num_requests_waiting"]);
  at("filled").textContent = `${(100 * counts["vllm:kv_cache_usage_perc"]).toFixed(0)} %`;
  at("first").textContent = firsts ? `${((1000 * since(counts, before, "vllm:time_to_first_token_seconds_sum")) / firsts).toFixed(0)} ms` : "–";
  at("window").textContent = `Share of all rounds in which the draft was accepted up to a position; ${recent ? "the last minute" : "since the start"}, ${rounds} rounds.`;
  draw(speeds);
  showPositions(counts.positions.map((count, i) => (rounds ? (count - ((before.positions || [])[i] || 0)) / rounds : 0)));
}

function speed(before, after) {
  return since(after.counts, before.counts, "vllm:generation_tokens_total") / (after.at - before.at);
}

function draw(speeds) {
  const top = Math.max(1, ...speeds);
  const points = speeds.map((one, i) => `${(240 * i) / Math.max(1, speeds.length - 1)},${39 - (37 * one) / top}`);
  at("line").querySelector("polyline").setAttribute("points", points.join(" "));
}

function showPositions(rates) {
  const rows = rates.map((rate, i) => {
    const row = make("tr");
    const bar = make("div", undefined, "bar");
    bar.style.width = `${100 * rate}%`;
    const cell = make("td");
    cell.append(bar);
    row.append(make("td", String(i + 1)), make("td", `${(100 * rate).toFixed(1)} %`), cell);
    return row;
  });
  at("positions").tBodies[0].replaceChildren(...rows);
}

function say(text, good) {
  if (at("state").textContent === text) return; // a screen reader would say it again
  at("state").textContent = text;
  at("state").className = good ? "good" : "bad";
}

let model = "";

async function look() {
  try {
    const answer = await fetch("/metrics", { headers: headers() });
    if (answer.status === 401) {
      say("needs an API key", false);
    } else {
      const counts = read(await answer.text());
      model = counts.model;
      at("serving").textContent = model;
      say(counts["outrider:engine_up"] ? "serving" : "the engine is being loaded", Boolean(counts["outrider:engine_up"]));
      show(counts);
    }
  } catch {
    say("does not answer", false);
  }
  setTimeout(look, 1000);
}

// ---- trying it ----

let rounds = []; // of the answer, as told
let chosen = -1;

function addTokens(told) {
  const number = rounds.push(told.round) - 1;
  for (const token of told.tokens) {
    const kind = token.kind === "draft" ? `d${Math.min(4, token.depth)}` : token.kind;
    const made = make("span", token.text, `token ${kind}`);
    made.dataset.round = String(number);
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", "false");
    made.setAttribute("aria-label", `${token.text}: ${origin(token)}`);
    made.id = `token-${at("text").childElementCount}`;
    at("text").append(made);
  }
}

function origin(token) {
  if (token.kind === "draft") return `drafted at depth ${token.depth} and accepted`;
  return token.kind === "bonus" ? "bonus: the target's own after the draft" : "without a draft";
}

function choose(index) {
  const tokens = at("text").children;
  if (index < 0 || index >= tokens.length) return;
  chosen = index;
  for (const token of tokens) {
    token.classList.toggle("same", token.dataset.round === tokens[index].dataset.round);
    token.classList.toggle("chosen", token === tokens[index]);
    token.setAttribute("aria-selected", String(token === tokens[index]));
  }
  at("text").setAttribute("aria-activedescendant", tokens[index].id);
  showRound(rounds[Number(tokens[index].dataset.round)], tokens[index].getAttribute("aria-label"));
}

function showRound(round, label) {
  const tree = make("ul");
  tree.append(branch(round, 0, `${JSON.stringify(round.anchor)} (anchor)`));
  const said = round.nodes.length
    ? `${round.path.length} of ${round.nodes.length} drafted nodes accepted; then the bonus token `
    : "Nothing was drafted; the target's token is ";
  const line = make("p", said);
  line.append(make("code", JSON.stringify(round.bonus)), ` in ${(1000 * round.seconds).toFixed(1)} ms.`);
  at("round").replaceChildren(make("p", label), line, tree);
}

function branch(round, node, text) {
  const item = make("li");
  const kept = node === 0 || round.path.includes(node);
  item.append(make("code", text, kept ? "kept" : ""));
  if (node) {
    const { target, reach } = round.nodes[node - 1];
    const hoped = reach === undefined ? "" : `, drafter hoped ${(100 * reach).toFixed(0)} %`;
    item.append(` ${kept ? "accepted" : "not taken"}: target ${(100 * target).toFixed(1)} %${hoped}`);
  }
  const children = make("ul");
  round.nodes.forEach((child, i) => {
    if (child.parent === node) children.append(branch(round, i + 1, JSON.stringify(child.text)));
  });
  if (children.childElementCount) item.append(children);
  return item;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

let running = null;

async function send() {
  const chat = at("chat").checked;
  const wishes = {
    model,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: Number(at("most").value),
    temperature: Number(at("temperature").value),
    outrider: { rounds: true, acceptance: true, draft_length: at("drafting").checked ? null : 0 },
    ...(chat ? { messages: [{ role: "user", content: at("prompt").value }] } : { prompt: at("prompt").value }),
  };
  rounds = [];
  chosen = -1;
  at("text").replaceChildren();
  running = new AbortController();
  const begun = performance.now();
  const answer = await fetch(chat ? "/v1/chat/completions" : "/v1/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers() },
    body: JSON.stringify(wishes),
    signal: running.signal,
  });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  for await (const event of events(answer.body)) {
    if (event.error) throw new Error(event.error.message);
    if (event.outrider && event.outrider.tokens) addTokens(event.outrider);
    if (event.usage) sum(event, (performance.now() - begun) / 1000);
  }
}

function sum(event, seconds) {
  const { acceptance } = event.outrider;
  const tokens = event.usage.completion_tokens;
  at("summary").textContent =
    `${tokens} tokens in ${acceptance.rounds} rounds, ${(tokens / acceptance.rounds).toFixed(2)} a round; ` +
    `${acceptance.accepted} of ${acceptance.drafted} drafted accepted; ${(tokens / seconds).toFixed(1)} tokens a second.`;
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("go").disabled = true;
  at("stop").disabled = false;
  at("summary").textContent = "…";
  try {
    await send();
  } catch (error) {
    at("summary").textContent = error.name === "AbortError" ? "Stopped." : error.message;
  }
  at("go").disabled = false;
  at("stop").disabled = true;
});
at("stop").addEventListener("click", () => running && running.abort());
at("text").addEventListener("mouseover", (event) => {
  const token = event.target.closest(".token");
  if (token) choose([...at("text").children].indexOf(token));
});
at("text").addEventListener("keydown", (event) => {
  const last = at("text").childElementCount - 1;
  const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(Math.max(0, Math.min(last, to)));
});
look();
