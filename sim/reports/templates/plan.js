// The page of a plan: a need, a budget and a probability are chosen; the answer, the front and the table follow from the rows in the page.
(() => {
  const KIND = document.getElementById("asked").dataset.kind ?? "cheapest";
  const ROWS = REPORT.rows, SHOWN = 10, Z90 = 1.6448536; // half of the width of a 90 % interval, in standard deviations
  const TIMED = ROWS.length > 0 && ROWS.every((row) => row.hours !== null && row.usd !== null);
  const COST = TIMED ? "usd" : "usd_per_hour", COST_UNIT = TIMED ? "USD" : "USD/h";
  const NEED_UNIT = TIMED ? "h" : "samples/s";
  const number = (value, digits = 4) => value === null ? "unknown" :
    Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
  const probability = (p) => p > 0.995 ? "over 0.99" : p < 0.005 ? "under 0.01" : p.toFixed(2);
  const speed = (row) => row.samples_per_s.mid;
  const quick = (row) => TIMED ? 1 / row.hours : speed(row);
  const protocol = (row) => [row.protocol, ...(row.settings ?? [])].join(" ");

  // Abramowitz and Stegun, 7.1.26: within 1.5e-7.
  function normal(z) {
    const x = Math.abs(z) / Math.SQRT2, t = 1 / (1 + 0.3275911 * x);
    const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x) / 2;
    return z > 0 ? 1 - tail : tail;
  }

  // How likely a row meets the need: its throughput is log-normal on either side of the middle, as the plan has it (Figures.chance).
  // The cost of a training follows from it; a budget at the slider's end is none.
  function likely(row, { need, budget }) {
    const { low, mid: middle, high } = row.samples_per_s, paid = budget < costs[1] ? middle * row.usd / budget : 0;
    const asked = TIMED ? Math.max(middle * row.hours / need, paid) : need;
    const side = low === null || high === null ? 1 : middle >= asked ? middle / low : high / middle;
    const steps = row.work ? Math.log(row.work.steps.high / row.work.steps.mid) : 0; // which are independent of the speed
    const spread = Math.hypot(Math.log(side), steps);
    if (spread <= 0) return middle >= asked ? 1 : 0;
    return normal(Math.log(middle / asked) / (spread / Z90));
  }

  function cheaper(one, other) { return one[COST] - other[COST] || quick(other) - quick(one); }

  function better(one, other) { return KIND === "fastest" ? quick(other) - quick(one) || one[COST] - other[COST] : cheaper(one, other); }

  function paretoFront(rows) { // no other row is both cheaper and faster
    let most = 0;
    return [...rows].sort(cheaper).filter((row) => quick(row) > most && (most = quick(row)));
  }

  const offer = (row) => (row.offer || "on-demand") === "on-demand" ? "" : `, ${row.offer}`;
  const name = (row) => [`${protocol(row)}, ${row.hosts_told}${offer(row)}`, `${row.workers} workers`,
    row.servers ? `${row.servers} server${row.servers > 1 ? "s" : ""}` : "", `batch ${row.batch}`].filter(Boolean).join(", ");

  function chosen() { return Object.fromEntries(Object.entries(CHOICES).map(([key, choice]) => [key, choice.value])); }

  function follow() {
    const now = chosen();
    const judged = ROWS.filter((row) => row[COST] !== null && speed(row) > 0).map((row) => ({ ...row, p: likely(row, now) }));
    const meet = judged.filter((row) => row.p >= now.probability && row[COST] <= now.budget).sort(better);
    say(judged, meet, now);
    drawFront(judged, meet, now);
    fill(meet);
    if (location.protocol !== "about:") history.replaceState(null, "", "#" + new URLSearchParams(now)); // a link to this choice
  }

  function say(judged, meet, now) {
    const said = document.getElementById("chosen"), command = document.getElementById("chosen-command");
    const affordable = judged.filter((row) => row[COST] <= now.budget).sort((one, other) => other.p - one.p || quick(other) - quick(one));
    const best = meet[0] ?? affordable[0];
    const figures = (row) => `${number(row[COST])} ${COST_UNIT}, ${number(speed(row))} samples/s` +
      (TIMED ? `, ${number(row.hours)} h` : "") + ` (met with probability ${probability(row.p)})`;
    if (meet.length) said.textContent = `${name(best)}: ${figures(best)}. The ${KIND} of ${meet.length} that meet it.`;
    else if (best) said.textContent = `None of ${judged.length} meets it. The best within the budget: ${name(best)}: ${figures(best)}.`;
    else said.textContent = `None of ${judged.length} is within the budget.`;
    command.textContent = best ? best.command : "";
  }

  function points(rows, name, marker) {
    return { type: "scatter", mode: "markers", name: `${name} (${rows.length})`, marker, text: rows.map(describe),
      x: rows.map((row) => TIMED ? row.hours : speed(row)), y: rows.map((row) => row[COST]), hovertemplate: "%{text}<extra></extra>" };
  }

  function describe(row) {
    const { low, high } = row.samples_per_s;
    const spread = low === null ? "" : ` (${number(low)} to ${number(high)})`;
    return `${name(row)}<br>${number(speed(row))} samples/s${spread}, ${number(row[COST])} ${COST_UNIT}<br>P ${probability(row.p)}; limited by ${row.limits ?? "unknown"}`;
  }

  function drawFront(judged, meet, now) {
    const inside = new Set(meet), front = paretoFront(judged);
    const line = points(front, "front of all", { symbol: "circle-open", size: 13, color: "#000000", line: { width: 1.5 } });
    const data = [
      points(judged.filter((row) => !inside.has(row)), "does not meet it", { symbol: "x", size: 6, color: "#999999" }),
      points(meet, "meets it", { symbol: "diamond", size: 9, color: "#0072b2" }),
      { ...line, mode: "lines+markers", line: { color: "#000000", width: 1, dash: "dot" } },
      ...(meet.length ? [points(meet.slice(0, 1), `the ${KIND}`, { symbol: "star", size: 18, color: "#d55e00", line: { width: 1, color: "#000000" } })] : []),
    ];
    const bound = { type: "line", line: { color: "#d55e00", width: 1.5, dash: "dash" } };
    const shapes = [{ ...bound, x0: now.need, x1: now.need, yref: "paper", y0: 0, y1: 1 },
      { ...bound, y0: now.budget, y1: now.budget, xref: "paper", x0: 0, x1: 1 }];
    plot(document.getElementById("front"), data, { height: 430, shapes,
      xaxis: { title: { text: TIMED ? "hours" : "samples/s" }, type: "log", ...ticks(needs) },
      yaxis: { title: { text: COST_UNIT }, type: "log", ...ticks(costs) } });
  }

  function ticks([least, most]) { // 1, 2, 5, 10, ... around a range
    const tickvals = [];
    for (let decade = 10 ** Math.floor(Math.log10(least)); decade <= most; decade *= 10) tickvals.push(decade, 2 * decade, 5 * decade);
    return { tickvals, ticktext: tickvals.map((value) => number(value)) };
  }

  const COLUMNS = [["protocol", protocol], ["hosts", (row) => `${row.hosts_told.replaceAll(" ", "\u00a0")}${offer(row)}`],
    ["workers", (row) => row.workers], ["servers", (row) => row.servers], ["batch", (row) => row.batch],
    ...(ROWS.some((row) => row.work) ? [["steps", (row) => row.work.steps.mid]] : []),
    ["samples/s", (row) => row.samples_per_s.mid], ["at least", (row) => row.samples_per_s.low], ["at most", (row) => row.samples_per_s.high],
    ["USD/h", (row) => row.usd_per_hour], ...(TIMED ? [["hours", (row) => row.hours], ["USD", (row) => row.usd]] : []),
    ["P", (row) => Number(row.p.toFixed(3))],
    ...(ROWS.some((row) => row.limits) ? [["limited by", (row) => row.limits]] : [])];

  function fill(meet) {
    const body = document.querySelector("#meeting tbody");
    body.replaceChildren(...meet.slice(0, SHOWN).map((row) => {
      const line = document.createElement("tr");
      for (const [, value] of COLUMNS) {
        const cell = line.insertCell(), found = value(row);
        if (typeof found === "number") cell.dataset.value = found;
        else cell.className = "words";
        cell.textContent = typeof found === "number" ? number(found) : found ?? "";
      }
      return line;
    }));
    document.getElementById("meeting-caption").textContent = meet.length > SHOWN ? `The ${SHOWN} ${KIND} of ${meet.length}.` : "";
  }

  // A slider from least to most, logarithmic where both are above 0, and a field for the exact number.
  function choice(id, label, unit, least, most, value, logarithmic = true) {
    const box = document.getElementById(`choose-${id}`), [range, field] = box.querySelectorAll("input");
    box.querySelector("label").textContent = label;
    box.querySelector("span").textContent = unit;
    const there = (share) => logarithmic ? least * (most / least) ** share : least + (most - least) * share;
    const back = (x) => logarithmic ? Math.log(x / least) / Math.log(most / least) : (x - least) / (most - least);
    const made = { set(x) { made.value = x; field.value = Number(x.toPrecision(6)); range.value = 1000 * (most > least ? back(x) : 0); } };
    range.addEventListener("input", () => { made.value = Number(there(range.value / 1000).toPrecision(3)); field.value = made.value; follow(); });
    field.addEventListener("change", () => { if (Number(field.value) > 0) { made.set(Number(field.value)); follow(); } });
    made.set(value);
    return made;
  }

  const ends = (values) => [Math.min(...values) / 1.05, Math.max(...values) * 1.05].map((x) => Number(x.toPrecision(3)));
  const costs = ends(ROWS.map((row) => row[COST]).filter((cost) => cost > 0));
  const needs = ends(ROWS.map((row) => TIMED ? row.hours : speed(row)).filter((x) => x > 0));
  const given = new URLSearchParams(location.hash.slice(1)), asked = document.getElementById("asked").dataset;
  const first = (key, otherwise) => Number(given.get(key)) > 0 ? Number(given.get(key)) : Number(asked[key]) > 0 ? Number(asked[key]) : otherwise;
  const CHOICES = {
    need: choice("need", TIMED ? "Done within" : "Target", NEED_UNIT, ...needs, first("need", TIMED ? needs[1] : Math.sqrt(needs[0] * needs[1]))),
    budget: choice("budget", "Budget", COST_UNIT, ...costs, first("budget", costs[1])),
    probability: choice("probability", "With probability", "", 0.5, 0.99, first("probability", 0.9), false),
  };
  document.getElementById("front-caption").textContent =
    `Each point is a configuration. Dashed: the ${TIMED ? "deadline" : "target"} and the budget. Dotted: nothing is both cheaper and faster.`;
  const head = document.querySelector("#meeting thead").insertRow();
  for (const [title] of COLUMNS) {
    const cell = document.createElement("th");
    cell.textContent = title;
    cell.className = ["protocol", "hosts", "limited by"].includes(title) ? "words" : "";
    head.append(cell);
  }
  follow();
})();
