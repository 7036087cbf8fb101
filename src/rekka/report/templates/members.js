/**
 * Members: a searchable list in pages, a card for each bridge, and a map without tiles. All of them stand on the page
 * as columns; rows are drawn fifty at a time.
 */
(async () => {
  const source = document.getElementById("members-data");
  const box = document.getElementById("member-list");
  if (!source || !box || !("DecompressionStream" in window)) return; // the tables of the first of them stay
  const bytes = Uint8Array.from(atob(source.textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { find, findAll, make, say, texts, collator, rove, save, writeRows, announce, followers, light, SVG, getPicked } = rekka;
  const data = JSON.parse(await new Response(unpacked).text());
  const { case: caseOf, cases, bridge, member, tab, state, seen, soon, median, calendar, ratings } = data;
  const PAGE = 50, TABS = { there: 1, next: 0, outside: 2 };
  const SHORT = 10, LATE = 40; // years of the colours of a map
  const labels = JSON.parse(box.dataset.labels);
  const lang = document.documentElement.lang;
  const percent = (value) => (value === null ? "" : new Intl.NumberFormat(lang, { style: "percent", maximumFractionDigits: value < 0.1 || value > 0.9 ? 1 : 0 }).format(value));
  const figure = new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 });
  const count = new Intl.NumberFormat(lang);
  const several = cases.length > 1;
  let shownTab = tab.includes(TABS.there) ? "there" : "next";
  let query = "", order = "median", page = 0, mapped = false, rows = [];

  /* -- Which, and in which order --------------------------------------------------------------------------- */

  const fold = (text) => text.normalize("NFKC").toLowerCase();
  let names = null;
  const byBridge = new Map();
  bridge.forEach((name, n) => byBridge.has(name) ? byBridge.get(name).push(n) : byBridge.set(name, [n]));

  /** Members of the component and the search, by tab. */
  function select() {
    names ??= bridge.map((name, n) => fold(`${name} ${member[n] ?? ""} ${cases[caseOf[n]]}`));
    const words = fold(query).split(/\s+/).filter(Boolean);
    const place = getPicked();
    const found = { there: [], next: [], outside: [] };
    const home = Object.fromEntries(Object.entries(TABS).map(([name, number]) => [number, name]));
    for (let n = 0; n < bridge.length; n += 1) {
      if (place !== "" && String(data.places[caseOf[n]]) !== place) continue;
      if (words.every((word) => names[n].includes(word))) found[home[tab[n]]].push(n);
    }
    return found;
  }

  const last = (value) => (value === null || value === undefined ? Infinity : value);
  const compare = {
    median: (a, b) => a - b, // as they come
    state: (a, b) => state[b] - state[a] || a - b,
    soon: (a, b) => (soon[b] ?? -1) - (soon[a] ?? -1) || a - b,
    seen: (a, b) => collator.compare(seen[a] ?? "9999", seen[b] ?? "9999") || a - b,
    bridge: (a, b) => collator.compare(bridge[a], bridge[b]) || a - b,
  };

  /* -- The list -------------------------------------------------------------------------------------------- */

  const search = make("input", { type: "search", placeholder: texts.search, ariaLabel: texts.search, id: "search" });
  const sorter = make("select", { id: "sort" });
  const tabs = Object.keys(TABS).map((name) => {
    const one = make("button", { type: "button", role: "tab", id: `tab-${name}` });
    one.setAttribute("aria-controls", "member-panel");
    one.addEventListener("click", () => { shownTab = name; page = 0; refresh(); });
    return one;
  });
  const tabList = make("div", { role: "tablist", ariaLabel: texts.tabs }, ...tabs);
  const note = make("p", { className: "prose aside" });
  const body = make("tbody");
  const every = ["bridge", ...(several ? ["case"] : []), ...(member.length ? ["member"] : []), "state", "soon", "when", "seen", ...(data.remark.length ? ["remark"] : [])];
  const numeric = new Set(["soon", "when"]); // which a member that is there already has no use for
  let columns = every;
  const head = make("thead");
  const table = make("table", { role: "table" }, make("caption", { className: "unseen" }, labels.caption), head, body);
  const scroll = make("div", { className: "scroll" }, table);
  const back = make("button", { type: "button" }, texts.previous);
  const forth = make("button", { type: "button" }, texts.next);
  const where = make("span");
  const csv = make("button", { type: "button", ariaLabel: say("tools", { table: labels.caption }) }, texts.csv);
  const pager = make("div", { className: "pager" }, back, where, forth, csv);
  const panel = make("div", { id: "member-panel", role: "tabpanel" }, note, make("div", { className: "table cards" }, scroll), pager);
  const plot = make("div", { className: "map", hidden: true });
  const toggle = make("button", { type: "button", ariaPressed: "false" }, texts.map);
  const tools = make("div", { className: "lister" }, search, make("label", {}, texts.sorted, sorter));
  const located = data.latitude.some((one) => one !== null);
  if (located) tools.append(toggle);
  box.append(tools, tabList, plot, panel);
  box.hidden = false;
  find("#member-tables").hidden = true;

  const when = (n) => calendar[n] ?? (median[n] === null || median[n] === undefined ? "\u221e" : figure.format(median[n]));
  const remarksOf = (n) => (data.remark[n] ?? []).map((place) => data.remarks[place]);
  const cellTexts = {
    bridge: (n) => bridge[n],
    case: (n) => cases[caseOf[n]],
    member: (n) => member[n] ?? "",
    state: (n) => ratings[state[n] - 1],
    soon: (n) => percent(soon[n]),
    when: (n) => String(when(n)),
    seen: (n) => seen[n] ?? "",
    remark: (n) => remarksOf(n).join(labels.between),
  };

  const makeHead = (key) => make("th", { scope: "col", className: numeric.has(key) ? "n" : "" }, labels[key]);

  /** The orders of the tab: members that are there already come by rating, and have no year or probability. */
  function offerOrders() {
    const there = shownTab === "there";
    const orders = Object.keys(compare).filter((key) => !(there && (key === "median" || key === "soon")));
    sorter.replaceChildren(...orders.map((key) => make("option", { value: key }, say(`by_${key}`, { years: data.soon_years }))));
    sorter.value = orders.includes(order) ? order : "state";
    return sorter.value;
  }

  /** A row: its name opens the card. */
  function makeRow(n) {
    const row = make("tr");
    for (const key of columns) {
      const text = cellTexts[key](n);
      const cell = make(key === "bridge" ? "th" : "td", { className: `${numeric.has(key) ? "n" : ""}${text === "" ? " missing" : ""}${key === "seen" ? " d" : ""}${key === "remark" ? " t" : ""}` });
      if (key === "bridge") {
        cell.scope = "row";
        cell.append(make("button", { type: "button", className: "link", onclick: () => openCard(n) }, make("bdi", {}, text)));
      } else {
        cell.dataset.label = labels[key];
        cell.append(key === "case" || key === "member" ? make("bdi", {}, text) : text);
      }
      row.append(cell);
    }
    return row;
  }

  function refresh({ seek = false } = {}) {
    const found = select();
    if (seek && !found[shownTab].length) shownTab = Object.keys(TABS).find((name) => found[name].length) ?? shownTab;
    Object.keys(TABS).forEach((name, place) => {
      const one = tabs[place];
      one.replaceChildren(texts[`tab_${name}`], " ", make("small", {}, count.format(found[name].length)));
      one.ariaSelected = String(name === shownTab);
      one.tabIndex = name === shownTab ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${shownTab}`);
    note.textContent = labels[shownTab];
    rows = found[shownTab].sort(compare[offerOrders()]);
    page = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
    const shown = rows.slice(page * PAGE, (page + 1) * PAGE);
    columns = every.filter((key) => !(shownTab === "there" && numeric.has(key)) && !(key === "remark" && !rows.some((n) => data.remark[n].length)));
    head.replaceChildren(make("tr", {}, ...columns.map(makeHead)));
    body.replaceChildren(...shown.map(makeRow));
    if (!shown.length) body.append(make("tr", {}, make("td", { colSpan: columns.length }, texts.no_member)));
    rove(findAll("button.link", body));
    where.textContent = say("page", { first: count.format(rows.length && page * PAGE + 1), last: count.format(page * PAGE + shown.length), total: count.format(rows.length) });
    back.disabled = page === 0;
    forth.disabled = (page + 1) * PAGE >= rows.length;
    if (mapped) drawMap();
    return say("found", { n: count.format(Object.values(found).reduce((sum, one) => sum + one.length, 0)), total: count.format(bridge.length) });
  }

  rove(tabs);
  search.addEventListener("input", () => { query = search.value; page = 0; announce(refresh({ seek: query !== "" })); });
  sorter.addEventListener("change", () => { order = sorter.value; page = 0; refresh(); });
  back.addEventListener("click", () => { page -= 1; refresh(); if (back.disabled) forth.focus(); });
  forth.addEventListener("click", () => { page += 1; refresh(); if (forth.disabled) back.focus(); });
  csv.addEventListener("click", () => {
    const heads = columns.map((key) => labels[key]);
    const full = { soon: (n) => soon[n], when: (n) => calendar[n] ?? median[n] };
    save(`members-${shownTab}.csv`, `\ufeff${writeRows([heads, ...rows.map((n) => columns.map((key) => (full[key] ?? cellTexts[key])(n)))], ",")}`, "text/csv");
  });
  followers.push(() => { page = 0; refresh(); });

  /* -- A bridge's card ------------------------------------------------------------------------------------- */

  const card = find("#card");
  const drawn = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  function openCard(n) {
    const all = byBridge.get(bridge[n]);
    const close = make("button", { type: "button", onclick: () => card.close() }, texts.close);
    const title = make("h2", { id: "card-name" }, make("bdi", {}, bridge[n]));
    const sub = [several ? cases[caseOf[n]] : "", member[n] ?? ""].filter(Boolean).join(" \u00b7 ");
    const parts = [make("div", { className: "top" }, make("div", {}, title, make("bdi", {}, sub)), close)];
    parts.push(make("p", { className: "lead" }, ...describe(n).flatMap((line) => [line, " "])));
    parts.push(make("h3", {}, texts.card_history), drawHistory(n), make("p", { className: "aside" }, texts.card_fan));
    const drivers = listDrivers(n);
    if (drivers.length) parts.push(make("h3", {}, texts.card_drivers), make("ul", {}, ...drivers.map((line) => make("li", {}, line))));
    const remarks = remarksOf(n);
    if (remarks.length) parts.push(make("h3", {}, texts.card_remarks), make("ul", {}, ...remarks.map((line) => make("li", {}, line))));
    if (all.length > 1) parts.push(make("h3", {}, texts.card_members), listSiblings(all, n));
    card.replaceChildren(...parts);
    card.setAttribute("aria-labelledby", "card-name");
    if (!card.open) card.showModal();
    card.scrollTop = 0;
  }

  /** Its rating, and when it is expected at the threshold. */
  function describe(n) {
    const worse = data.worse[data.threshold[caseOf[n]] - 1];
    const rating = data.rated[state[n] - 1];
    const lines = [seen[n] ? say("card_now", { rating, seen: seen[n] }) : say("card_now_alone", { rating })];
    if (state[n] >= data.threshold[caseOf[n]]) return [...lines, say("card_there", { worse })];
    if (soon[n] !== null) lines.push(say("card_soon", { share: percent(soon[n]), worse, years: data.soon_years }));
    if (calendar[n]) lines.push(say("card_year", { worse, year: calendar[n] }));
    else lines.push(median[n] === null ? say("card_never", { worse }) : say("card_years", { worse, years: figure.format(median[n]) }));
    return lines;
  }

  /** What makes it faster or slower than a typical member, the strongest first. */
  function listDrivers(n) {
    const found = data.covariates.map((name, k) => ({ name, value: data.values[k]?.[n], unit: data.units[k], ratio: data.ratios[k]?.[n] }))
      .filter(({ value, ratio }) => value !== null && value !== undefined && ratio)
      .sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)))
      .map(({ name, value, unit, ratio }) => {
        const key = ratio > 1.005 ? "card_faster" : ratio < 0.995 ? "card_slower" : "card_same";
        const shown = typeof value === "number" ? `${figure.format(value)}${unit ? ` ${unit}` : ""}` : value;
        return say(key, { name, value: shown, ratio: figure.format(ratio) });
      });
    const own = data.frailty[n];
    if (own) found.push(say(own >= 1 ? "card_frailty_more" : "card_frailty_less", { ratio: figure.format(own) }));
    return found;
  }

  /** Other members of the bridge; each opens its own card. */
  function listSiblings(all, n) {
    const keys = every.filter((key) => key !== "bridge" && key !== "remark");
    const rows = all.map((one) => make("tr", one === n ? { ariaCurrent: "true" } : {}, ...keys.map((key, place) => {
      const text = cellTexts[key](one);
      const cell = make(place ? "td" : "th", { className: numeric.has(key) ? "n" : "" });
      if (place) cell.dataset.label = labels[key];
      else cell.scope = "row";
      cell.append(place || one === n ? text : make("button", { type: "button", className: "link", onclick: () => openCard(one) }, text));
      return cell;
    })));
    const heads = make("thead", {}, make("tr", {}, ...keys.map(makeHead)));
    const own = make("table", { role: "table" }, make("caption", { className: "unseen" }, texts.card_members), heads, make("tbody", {}, ...rows));
    return make("div", { className: "table cards" }, make("div", { className: "scroll" }, own));
  }

  /** The ratings found as steps with points, the forecast as a line within a band, and the threshold. */
  function drawHistory(n) {
    const past = (data.past[n] || "").split(",").filter(Boolean).map((one) => one.split(":").map(Number));
    const start = data.base ?? (past.length ? past.at(-1)[0] : 0);
    const quantiles = [...(data.fan[n] ?? "")].map((digit) => parseInt(digit, 36));
    const fan = data.fan_years.map((year, k) => [start + year, ...quantiles.slice(3 * k, 3 * k + 3)]).filter((one) => one.length === 4);
    const lastYear = fan.length ? fan.at(-1)[0] : start;
    const first = past.length ? past[0][0] : start;
    const states = ratings.length, letters = Math.max(...ratings.map((name) => [...name].length));
    const left = Math.min(150, 16 + 7 * letters), width = 680, row = Math.min(34, 190 / states), height = row * states, bottom = 36;
    const x = (year) => left + ((year - first) / Math.max(lastYear - first, 1e-9)) * (width - left - 24);
    const y = (one) => 8 + row * (one - 0.5);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height + bottom + 8}`, role: "img" });
    const middle = fan.length ? ratings[fan.at(-1)[2] - 1] : "";
    svg.setAttribute("aria-label", data.base || past.length
      ? say("card_chart", { first: Math.floor(first), rating: middle, last: Math.floor(lastYear) })
      : say("card_chart_years", { rating: middle, last: lastYear }));
    const colour = (name) => `var(--${name})`;
    const put = (tag, attributes, text) => { const one = drawn(tag, attributes); if (text !== undefined) one.textContent = text; svg.append(one); return one; };
    ratings.forEach((name, k) => {
      put("line", { x1: left, x2: width - 24, y1: y(k + 1), y2: y(k + 1), stroke: colour("line") });
      put("text", { x: left - 8, y: y(k + 1) + 4, "text-anchor": "end" }, [...name].length > 18 ? `${[...name].slice(0, 17).join("")}\u2026` : name);
    });
    const limit = y(data.threshold[caseOf[n]]) - row / 2;
    put("rect", { x: left, y: limit, width: width - left - 24, height: Math.max(0, 8 + height - limit), fill: colour("bad"), opacity: 0.08 });
    const step = (points, place) => points.map((one, k) => `${k ? `H${x(one[0]).toFixed(1)}V` : `M${x(one[0]).toFixed(1)},`}${y(one[place]).toFixed(1)}`).join("");
    if (fan.length) {
      // the band from the lower quantiles forth and the upper ones back
      const upper = fan.map((one, k) => `${k ? `H${x(one[0]).toFixed(1)}V` : `M${x(one[0]).toFixed(1)},`}${(y(one[1]) - row * 0.36).toFixed(1)}`).join("");
      const lower = [...fan].reverse().map((one, k, own) => `${k ? `V${(y(one[3]) + row * 0.36).toFixed(1)}H${x(one[0]).toFixed(1)}` : `V${(y(one[3]) + row * 0.36).toFixed(1)}`}`).join("");
      put("path", { d: `${upper}${lower}Z`, fill: colour("band"), opacity: 0.45 });
      put("path", { d: step(fan, 2), fill: "none", stroke: colour("accent"), "stroke-width": 2.2 });
    }
    if (past.length) {
      put("path", { d: `${step(past, 1)}${fan.length ? `H${x(start).toFixed(1)}` : ""}`, fill: "none", stroke: colour("ink"), "stroke-width": 1.4 });
      for (const [year, found] of past) put("circle", { cx: x(year), cy: y(found), r: 3.6, fill: colour("ink") }).append(drawn("title", {}, `${Math.floor(year)}: ${ratings[found - 1]}`));
    }
    if (past.length && fan.length) put("line", { x1: x(start), x2: x(start), y1: 8, y2: 8 + height, stroke: colour("muted"), "stroke-dasharray": "3 3" });
    const span = lastYear - first, pace = [1, 2, 5, 10, 20, 50].find((one) => span / one <= 10) ?? 100;
    for (let year = Math.ceil(first / pace) * pace; year <= lastYear; year += pace) {
      put("line", { x1: x(year), x2: x(year), y1: 8 + height, y2: 12 + height, stroke: colour("muted") });
      put("text", { x: x(year), y: height + 25, "text-anchor": "middle" }, year);
    }
    put("text", { x: (left + width) / 2, y: height + 40, "text-anchor": "middle", class: "quiet" }, data.base || past.length ? texts.card_year_axis : texts.card_years_axis);
    return svg;
  }

  card.addEventListener("click", (event) => { if (event.target === card) card.close(); });

  // Bridges that other tables name lead to their cards.
  for (const one of findAll("main td.bridge, main th.bridge")) {
    const name = find("bdi", one)?.textContent;
    const own = byBridge.get(name);
    if (!own) continue;
    const row = one.closest("tr");
    const title = row.dataset.case === undefined ? null : Number(row.dataset.case);
    const names = findAll("bdi", row).map((part) => part.textContent);
    const alike = own.filter((place) => title === null || data.places[caseOf[place]] === title);
    const n = alike.find((place) => names.includes(member[place])) ?? alike[0] ?? own[0];
    const link = make("button", { type: "button", className: "link", onclick: () => openCard(n) }, find("bdi", one));
    one.prepend(link);
  }
  for (const table of findAll("main table")) {
    const own = findAll(".bridge > .link", table);
    if (own.length) rove(own);
  }

  const form = find(".find");
  if (form) {
    form.hidden = false;
    const input = find("#find");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      search.value = query = input.value;
      page = 0;
      announce(refresh({ seek: true }));
      find("#members").scrollIntoView();
      search.focus({ preventScroll: true });
    });
  }

  /* -- The map --------------------------------------------------------------------------------------------- */

  const RADIUS = 3.5, NEAR = 12, KILOMETRES = 111.32;
  let points = [];
  const canvas = make("canvas", { role: "img" });
  const tip = make("div", { className: "tip", hidden: true });
  const choice = make("select", { id: "map-by" }, make("option", { value: "rating" }, texts.map_rating), make("option", { value: "year" }, texts.map_year));
  const key = make("ul", { className: "key" });
  const missing = make("p", { className: "aside" });
  plot.append(make("div", { className: "lister" }, make("label", {}, texts.map_by, choice)), canvas, tip, key, missing);

  const shade = (n) => {
    if (choice.value === "rating") return data.colours[state[n] - 1];
    return data.late[Math.min(data.late.length - 1, Math.floor((last(median[n]) / LATE) * data.late.length))];
  };

  /** The range of most values, and as much again on both sides: a coordinate that was mistyped must not shrink the map. */
  function findMost(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const [low, high] = [0.01, 0.99].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
    return [low - (high - low), high + (high - low)];
  }

  /** Members where they are: degrees of longitude as long as they are in the middle of the map. */
  function drawMap() {
    const placed = Object.values(select()).flat().filter((n) => data.latitude[n] !== null && data.longitude[n] !== null);
    const inside = [data.latitude, data.longitude].map((values) => findMost(placed.map((n) => values[n])));
    const shown = placed.filter((n) => [data.latitude, data.longitude].every((values, k) => values[n] >= inside[k][0] && values[n] <= inside[k][1]));
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.ariaLabel = say("map_label", { n: count.format(shown.length) });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    points = [];
    missing.textContent = [
      placed.length < bridge.length && getPicked() === "" && !query ? say("map_left_out", { n: count.format(bridge.length - placed.length) }) : "",
      shown.length < placed.length ? say("map_far", { n: count.format(placed.length - shown.length) }) : "",
    ].join(" ");
    drawKey();
    if (!shown.length) return;
    const ends = (values) => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);
    const [south, north] = ends(shown.map((n) => data.latitude[n])), [west, east] = ends(shown.map((n) => data.longitude[n]));
    const squeeze = Math.cos((((south + north) / 2) * Math.PI) / 180);
    const scale = Math.min((width - 40) / Math.max((east - west) * squeeze, 1e-4), (height - 60) / Math.max(north - south, 1e-4));
    const colours = getComputedStyle(document.documentElement);
    const [left, top] = [(width - (east - west) * squeeze * scale) / 2, (height - 20 - (north - south) * scale) / 2];
    points = shown.map((n) => [left + (data.longitude[n] - west) * squeeze * scale, top + (north - data.latitude[n]) * scale, n]).sort((a, b) => state[a[2]] - state[b[2]]);
    pen.strokeStyle = colours.getPropertyValue("--surface");
    pen.lineWidth = 0.7;
    for (const [x, y, n] of points) {
      pen.beginPath();
      pen.arc(x, y, RADIUS, 0, 2 * Math.PI);
      const colour = shade(n);
      pen.fillStyle = colour.startsWith("var(") ? colours.getPropertyValue(colour.slice(4, -1)) : colour;
      pen.fill();
      pen.stroke();
    }
    const round = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].findLast((one) => (one / KILOMETRES) * scale <= width / 3) ?? 0.1;
    const long = (round / KILOMETRES) * scale;
    pen.fillStyle = pen.strokeStyle = colours.getPropertyValue("--ink");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(16, height - 14);
    pen.lineTo(16 + long, height - 14);
    pen.stroke();
    pen.font = `12px ${colours.getPropertyValue("--plain")}`;
    pen.fillText(say("km", { n: round }), 16, height - 20);
  }

  function drawKey() {
    const dot = (colour, text) => make("li", {}, drawn("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, drawn("circle", { cx: 6, cy: 6, r: 6, fill: colour })), text);
    key.replaceChildren(...(choice.value === "rating" ? ratings.map((name, k) => dot(data.colours[k], name)) : [dot(data.late[0], texts.map_soon), dot(data.late.at(-1), say("map_late", { n: LATE }))]));
  }

  function findNear({ offsetX, offsetY }) {
    let best = null, least = NEAR * NEAR;
    for (const [x, y, n] of points) {
      const away = (x - offsetX) ** 2 + (y - offsetY) ** 2;
      if (away <= least) [best, least] = [[x, y, n], away];
    }
    return best;
  }

  canvas.addEventListener("pointermove", (event) => {
    const near = findNear(event);
    tip.hidden = !near;
    if (!near) return;
    const [x, y, n] = near;
    tip.textContent = [bridge[n], several ? cases[caseOf[n]] : "", ratings[state[n] - 1], when(n)].filter(Boolean).join(" \u00b7 ");
    tip.style.left = `${Math.min(x + 12, canvas.clientWidth - 180)}px`;
    tip.style.top = `${canvas.offsetTop + y + 12}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => { const near = findNear(event); if (near) openCard(near[2]); });
  choice.addEventListener("change", drawMap);
  toggle.addEventListener("click", () => {
    mapped = !mapped;
    toggle.ariaPressed = String(mapped);
    toggle.textContent = mapped ? texts.list : texts.map;
    plot.hidden = !mapped;
    panel.hidden = tabList.hidden = mapped;
    if (mapped) drawMap();
  });
  addEventListener("resize", () => { if (mapped) drawMap(); });

  refresh();
})();
