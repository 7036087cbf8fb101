"use strict";
/**
 * What the page does when scripts run: charts that answer, one component followed everywhere, tables that sort,
 * filter and can be saved. Without it every table and picture is there all the same. No text from data becomes
 * markup, and nothing is evaluated: a strict Content-Security-Policy holds. Members: members.js.
 */
const rekka = (() => {
  const find = (query, root = document) => root.querySelector(query);
  const findAll = (query, root = document) => [...root.querySelectorAll(query)];
  const { texts, cases, style, light } = JSON.parse(find("#words").textContent);
  const collator = new Intl.Collator(document.documentElement.lang, { numeric: true, sensitivity: "base" });

  /** A text with its values in their places. */
  const say = (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);

  /** An element with properties and children. */
  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  const announce = (text) => { find("#status").textContent = text; };

  let groups = []; // of controls that are one tab stop

  const isShown = (one) => !one.closest("[hidden]");

  /** One tab stop for many controls: the arrows, Home and End go from one to the next that is shown. */
  function rove(controls) {
    groups = [...groups.filter(([first]) => first?.isConnected), controls];
    stopAt(controls, controls[0]);
    for (const one of controls) {
      one.addEventListener("focus", () => stopAt(controls, one));
      one.addEventListener("keydown", (event) => {
        const shown = controls.filter(isShown), place = shown.indexOf(one);
        const steps = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: shown.length - 1 };
        const next = shown[steps[event.key]];
        if (!next) return;
        event.preventDefault();
        next.focus();
      });
    }
  }

  function stopAt(controls, one) {
    for (const other of controls) other.tabIndex = other === one ? 0 : -1;
  }

  /** Where the control that the tab key stops at is hidden now, stop at the first that is not. */
  function keepStops() {
    for (const controls of groups) {
      const shown = controls.find(isShown);
      if (shown && !isShown(controls.find((one) => one.tabIndex === 0) ?? shown)) stopAt(controls, shown);
    }
  }

  /** Save a text or a blob as a file. */
  function save(name, content, type) {
    const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  /* -- One case, everywhere -------------------------------------------------------------------------------- */

  let picked = ""; // the case's place in the study, "" for all
  const views = new Set();
  const tables = [];

  const followers = [];

  /** Show one case in the overview, tables, parts, members and charts; "" shows all. */
  function pick(place) {
    picked = place;
    find("#case").value = place;
    find("#clear").hidden = place === "";
    for (const table of tables) table.refresh();
    for (const part of findAll("main [data-case]:not(tr)")) part.hidden = place !== "" && part.dataset.case !== place;
    for (const part of findAll("main [data-cases]")) {
      part.hidden = place !== "" && !part.dataset.cases.split(" ").includes(place);
    }
    for (const one of findAll("[data-only='all']")) choose(one.parentElement, place || "all");
    for (const own of findAll(`details.case[data-case="${place}"]`)) own.open = true;
    for (const follow of followers) follow(place);
    keepStops();
    views.forEach(brush);
    announce(place === "" ? texts.cleared : say("picked", { case: cases[place] }));
  }

  /** Of what stands in one place, of all components and of each, show that of one; where it has none, that of all. */
  function choose(parent, wanted) {
    const own = [...parent.children].filter((one) => one.dataset.only !== undefined);
    const kinds = new Set(own.map((one) => one.className + one.tagName));
    for (const kind of kinds) {
      const same = own.filter((one) => one.className + one.tagName === kind);
      const shown = same.some((one) => one.dataset.only === wanted) ? wanted : "all";
      for (const one of same) one.hidden = one.dataset.only !== shown;
    }
  }

  /** Tell a chart which case is picked, if it asks. */
  function brush(view) {
    if (!("picked" in view.getState().signals)) return;
    view.signal("picked", picked === "" ? "" : cases[picked]).runAsync();
  }

  /** A click on a mark picks its case; on the picked one, or on nothing, all. */
  function pickMark(_event, item) {
    const place = cases.indexOf(item?.datum?.case);
    if (place >= 0) pick(String(place) === picked ? "" : String(place));
  }

  /* -- Charts ---------------------------------------------------------------------------------------------- */

  /** Draw a panel's chart and put it in the place of the picture. */
  async function draw(panel) {
    const picture = find(".static", panel);
    const live = make("div", { className: "live waiting", role: "img", ariaLabel: picture.ariaLabel });
    panel.append(live);
    try {
      const spec = { ...JSON.parse(find("script", panel).textContent), config: style };
      const options = { renderer: "svg", actions: false, defaultStyle: false, mode: "vega-lite", ast: true };
      const tooltip = { disableDefaultStyle: true, theme: "page" };
      const { view } = await window.vegaEmbed(live, spec, { ...options, tooltip });
      view.addEventListener("click", pickMark);
      views.add(view);
      brush(view);
      find("svg", live).ariaHidden = "true"; // the label of the whole says what it shows
      find(".undrawn", panel)?.remove();
      pictures.set(panel, find("svg", picture) ?? find("svg", live));
      picture.remove();
      live.classList.remove("waiting");
      focusIfScrolled(panel);
    } catch (error) {
      live.remove();
      panel.append(make("p", { className: "undrawn" }, say("undrawn", { why: error.message })));
    }
  }

  /** What scrolls sideways can be reached by keyboard. */
  function focusIfScrolled(panel) {
    if (panel.scrollWidth <= panel.clientWidth) return;
    panel.tabIndex = 0;
    panel.role = "group";
    panel.ariaLabel = find("[role=img]", panel)?.ariaLabel ?? "";
  }

  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "400px" });

  /* -- Pictures to save ------------------------------------------------------------------------------------- */

  const pictures = new Map(); // the pictures of panels that are drawn live
  const SVG = "http://www.w3.org/2000/svg";
  const GAP = 24, LINE = 20;

  /** A picture without variables: a file has no style sheet. Colours are those of paper. */
  function resolve(svg) {
    const copy = svg.cloneNode(true);
    for (const one of [copy, ...copy.querySelectorAll("*")]) {
      for (const { name, value } of [...one.attributes]) {
        if (value.includes("var(")) one.setAttribute(name, value.replace(/var\((--[\w-]+)[^)]*\)/g, (all, key) => light[key] ?? "#000"));
      }
    }
    return copy;
  }

  /** The panels of a figure beside each other, their titles above them. */
  function combine(figure) {
    const root = document.createElementNS(SVG, "svg");
    let x = 0, height = 0;
    for (const panel of findAll(".panel", figure)) {
      const svg = pictures.get(panel) ?? find("svg", panel);
      if (!svg) continue;
      const [wide, high] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
      const place = document.createElementNS(SVG, "g");
      place.setAttribute("transform", `translate(${x},${LINE})`);
      const own = resolve(svg);
      own.setAttribute("overflow", "visible");
      const title = document.createElementNS(SVG, "text");
      title.textContent = find(".panel-title", panel)?.textContent ?? find("figcaption strong", figure).textContent;
      for (const [name, value] of Object.entries({ x, y: LINE - 6, "font-weight": "bold", fill: light["--ink"] })) title.setAttribute(name, value);
      place.append(own);
      root.append(title, place);
      x += wide + GAP;
      height = Math.max(height, high + LINE);
    }
    const width = Math.max(x - GAP, 1) + 2 * GAP;
    for (const [name, value] of Object.entries({ width, height: height + GAP, viewBox: `${-GAP} ${-GAP / 2} ${width} ${height + GAP}`, "font-family": "system-ui, sans-serif", "font-size": 12 })) root.setAttribute(name, value);
    const ground = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ x: -GAP, y: -GAP / 2, width, height: height + GAP, fill: "#fff" })) ground.setAttribute(name, value);
    root.prepend(ground);
    return { text: new XMLSerializer().serializeToString(root), width, height: height + GAP };
  }

  /** A picture as a PNG, three pixels for each of its own. */
  function draw_png({ text, width, height }) {
    return new Promise((done, failed) => {
      const image = new Image();
      image.onload = () => {
        const canvas = make("canvas", { width: width * 3, height: height * 3 });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(done, "image/png");
      };
      image.onerror = () => failed(new Error("image"));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  /** Buttons under a figure, one tab stop. */
  function addSavers(figure) {
    const name = figure.id.replace(/^figure-/, "");
    const title = find("figcaption strong", figure)?.textContent ?? name;
    const svg = make("button", { type: "button" }, "SVG");
    const png = make("button", { type: "button" }, "PNG");
    svg.addEventListener("click", () => save(`${name}.svg`, combine(figure).text, "image/svg+xml"));
    png.addEventListener("click", async () => save(`${name}.png`, await draw_png(combine(figure)), "image/png"));
    const tools = make("div", { className: "tools", role: "group", ariaLabel: say("tools", { table: title }) }, svg, png);
    rove([svg, png]);
    figure.append(tools);
  }

  /* -- Tables ---------------------------------------------------------------------------------------------- */

  /** Sorting, filtering, saving and the count of rows for one table; sorting and saving are one tab stop. */
  class Table {
    constructor(box) {
      this.box = box;
      this.body = find("tbody", box);
      this.rows = [...this.body.rows];
      this.name = find("caption", box).textContent.trim();
      this.query = "";
      this.count = make("span", { hidden: true });
      this.tools = make("div", { className: "tools" });
      if (box.classList.contains("filtered")) this.tools.append(this.makeFilter());
      this.heads = [...find("thead tr", box).cells];
      const links = findAll("tbody th a", box);
      const controls = this.rows.length > 1 && !box.classList.contains("matrix")
        ? this.heads.map((head, column) => this.makeSorter(head, column)) : [];
      const made = this.makeSavers();
      controls.push(...links, ...made);
      rove(controls);
      this.tools.append(this.count);
      find(".scroll", box).after(this.tools);
      this.reached = controls.length > made.length; // by its headings and links
      this.settle();
      this.refresh();
    }

    /** The box is a tab stop only where it scrolls and nothing in it can be reached. */
    settle() {
      const box = find(".scroll", this.box);
      if (!this.reached && (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight)) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }

    makeFilter() {
      const label = say("filter_label", { table: this.name });
      const input = make("input", { type: "search", placeholder: texts.filter, ariaLabel: label });
      input.addEventListener("input", () => {
        this.query = input.value.trim().toLowerCase();
        announce(this.refresh());
        keepStops();
      });
      return input;
    }

    /** Buttons that save the table, or copy a matrix. */
    makeSavers() {
      const label = (text) => `${text}: ${this.name}`;
      const csv = make("button", { type: "button", ariaLabel: label(texts.csv) }, texts.csv);
      csv.addEventListener("click", () => save(`${this.box.id.replace(/^table-/, "")}.csv`, `\ufeff${this.write(",")}`, "text/csv"));
      const made = [csv];
      if (this.box.classList.contains("matrix") && navigator.clipboard) {
        const copy = make("button", { type: "button", ariaLabel: label(texts.copy) }, texts.copy);
        copy.addEventListener("click", async () => {
          await navigator.clipboard.writeText(this.write("\t"));
          announce(texts.copied);
          copy.textContent = texts.copied;
          setTimeout(() => { copy.textContent = texts.copy; }, 2_000);
        });
        made.unshift(copy);
      }
      this.tools.append(...made);
      return made;
    }

    /** The rows that are shown as text, numbers with all their digits. */
    write(by) {
      const heads = this.heads.flatMap((head) => head.dataset.parts ? JSON.parse(head.dataset.parts) : [head.innerText]);
      const wide = this.heads.map((head) => head.dataset.parts ? JSON.parse(head.dataset.parts).length : 1);
      const rows = [...this.body.rows].filter((row) => !row.hidden).map((row) => [...row.cells].flatMap((cell, column) => {
        if (wide[column] > 1) return cell.dataset.parts ? JSON.parse(cell.dataset.parts) : Array(wide[column]).fill("");
        return [cell.classList.contains("missing") ? "" : cell.dataset.value ?? cell.textContent];
      }));
      return writeRows([heads, ...rows], by);
    }

    /** Make a header a button: first up, then down, then as it was. */
    makeSorter(head, column) {
      const button = make("button", { type: "button", className: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const order = next[head.ariaSort ?? "none"];
        for (const other of this.heads) other.removeAttribute("aria-sort");
        if (order !== "none") head.ariaSort = order;
        this.sort(column, order);
      });
      return button;
    }

    sort(column, order) {
      const sign = order === "descending" ? -1 : 1;
      const keys = new Map(this.rows.map((row) => [row, keyOf(row.cells[column])]));
      const sorted = order === "none" ? this.rows : [...this.rows].sort((a, b) => compare(keys.get(a), keys.get(b), sign));
      this.body.append(...sorted);
    }

    /** Show the rows of the picked case that have the text; say how many. */
    refresh() {
      let shown = 0;
      for (const row of this.rows) {
        const other = picked !== "" && row.dataset.case !== undefined && row.dataset.case !== picked;
        row.hidden = other || (this.query !== "" && !row.textContent.toLowerCase().includes(this.query));
        shown += row.hidden ? 0 : 1;
      }
      const all = shown === this.rows.length;
      const text = say("shown", { shown, total: this.rows.length });
      this.count.textContent = text;
      this.count.hidden = all;
      return text;
    }
  }

  /** Rows as CSV or for a clipboard: quotes where they must be; a text that a spreadsheet would compute is none. */
  function writeRows(rows, by) {
    const quote = (value) => {
      let text = String(value ?? "").replace(/\s+/g, " ").trim();
      if (/^[=+@\t]|^-\D/.test(text)) text = `'${text}`;
      return text.includes(by) || text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return rows.map((row) => row.map(quote).join(by)).join("\r\n") + "\r\n";
  }

  /** A cell's number, or its text; null where it is missing. */
  function keyOf(cell) {
    if (cell.classList.contains("missing")) return null;
    const number = Number(cell.dataset.value ?? cell.textContent);
    return Number.isNaN(number) ? cell.textContent : number;
  }

  /** Missing cells stay last in both orders; equal ones stay as they are. */
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));
  }

  /* -- Paper ----------------------------------------------------------------------------------------------- */

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = findAll("details:not([open])");
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });

  /* -- Begin ----------------------------------------------------------------------------------------------- */

  /** A link into something folded unfolds it. */
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    const inside = target && [...target.children].find((one) => one.tagName === "DETAILS");
    if (inside) inside.open = true;
  }

  /** Mark the part that is being read in the contents. */
  function follow() {
    const links = new Map(findAll("nav a").map((link) => [link.hash.slice(1), link]));
    const watch = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(target.id).setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-20% 0px -75% 0px" });
    findAll("main > section").forEach((section) => watch.observe(section));
  }

  find("#controls").hidden = false;
  find("#case").addEventListener("change", (event) => pick(event.target.value));
  find("#clear").addEventListener("click", () => { pick(""); find("#case").focus(); });
  find("#print").addEventListener("click", () => print());
  find("#theme").addEventListener("change", ({ target: { value } }) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    for (const follow of followers) follow(picked);
  });
  addEventListener("keydown", ({ key }) => { if (key === "Escape" && picked !== "" && !find("dialog[open]")) pick(""); });
  addEventListener("hashchange", unfold);
  if (matchMedia("(max-width: 62rem)").matches) find("#contents").open = false;

  // What is folded or far down is made ready when it comes near: a large page must open at once.
  const ready = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      ready.unobserve(target);
      if (target.tagName === "FIGURE") addSavers(target);
      else tables.push(new Table(target));
    }
  }, { rootMargin: "600px" });
  for (const one of findAll("main figure, main .table")) ready.observe(one);
  findAll(".panel:not(.still)").forEach((panel) => { focusIfScrolled(panel); near.observe(panel); });
  findAll(".panel.still").forEach(focusIfScrolled);
  rove(findAll("nav a"));
  for (const parent of new Set(findAll("main details").map((one) => one.parentElement))) rove(findAll(":scope > details > summary", parent));
  addEventListener("resize", () => { for (const table of tables) table.settle(); });
  follow();
  unfold();
  return { find, findAll, make, say, texts, cases, collator, rove, save, writeRows, announce, followers, light, SVG, getPicked: () => picked };
})();
