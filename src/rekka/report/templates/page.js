"use strict";
/**
 * What the page does when scripts run: charts that answer, one case brushed everywhere, tables that sort and filter.
 * Without it every table and picture is there all the same. No text from data becomes markup.
 */
(() => {
  const find = (query, root = document) => root.querySelector(query);
  const findAll = (query, root = document) => [...root.querySelectorAll(query)];
  const { texts, cases, style } = JSON.parse(find("#words").textContent);
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

  /* -- One case, everywhere -------------------------------------------------------------------------------- */

  let picked = ""; // the case's place in the study, "" for all
  const views = new Set();
  const tables = [];

  /** Show one case in tables, parts and charts; "" shows all. */
  function pick(place) {
    picked = place;
    find("#case").value = place;
    find("#clear").hidden = place === "";
    for (const table of tables) table.refresh();
    for (const part of findAll("main [data-case]:not(tr)")) part.hidden = place !== "" && part.dataset.case !== place;
    for (const part of findAll("main [data-cases]")) {
      part.hidden = place !== "" && !part.dataset.cases.split(" ").includes(place);
    }
    for (const own of findAll(`details.case[data-case="${place}"]`)) own.open = true;
    views.forEach(brush);
    announce(place === "" ? texts.cleared : say("picked", { case: cases[place] }));
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
    const live = make("div", { className: "live", role: "img", ariaLabel: picture.ariaLabel });
    live.style.cssText = "position:absolute;visibility:hidden";
    panel.append(live);
    try {
      const spec = { ...JSON.parse(find("script", panel).textContent), config: style };
      const options = { renderer: "svg", actions: false, defaultStyle: false, mode: "vega-lite" };
      const tooltip = { disableDefaultStyle: true, theme: "page" };
      const { view } = await window.vegaEmbed(live, spec, { ...options, tooltip });
      view.addEventListener("click", pickMark);
      views.add(view);
      brush(view);
      find("svg", live).ariaHidden = "true"; // the label of the whole says what it shows
      find(".undrawn", panel)?.remove();
      picture.remove();
      live.style.cssText = "";
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

  /* -- Tables ---------------------------------------------------------------------------------------------- */

  /** Sorting, filtering and the count of rows for one table. */
  class Table {
    constructor(box) {
      this.body = find("tbody", box);
      this.rows = [...this.body.rows];
      this.name = find("caption", box).textContent.trim();
      this.query = "";
      this.count = make("span", { hidden: true });
      this.tools = make("div", { className: "tools", hidden: true }, this.count);
      if (box.classList.contains("filtered")) this.tools.prepend(this.makeFilter());
      box.prepend(this.tools);
      this.heads = [...find("thead tr", box).cells];
      if (this.rows.length > 1) this.heads.forEach((head, column) => this.makeSorter(head, column));
      this.refresh();
    }

    makeFilter() {
      const label = say("filter_label", { table: this.name });
      const input = make("input", { type: "search", placeholder: texts.filter, ariaLabel: label });
      input.addEventListener("input", () => {
        this.query = input.value.trim().toLowerCase();
        announce(this.refresh());
      });
      return input;
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
      this.tools.hidden = all && this.tools.childElementCount === 1;
      return text;
    }
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
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  }

  /** Mark the section that is being read in the contents. */
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
  });
  addEventListener("keydown", ({ key }) => { if (key === "Escape" && picked !== "") pick(""); });
  addEventListener("hashchange", unfold);
  if (matchMedia("(max-width: 68rem)").matches) find("#contents").open = false;
  for (const box of findAll(".table")) tables.push(new Table(box));
  findAll(".panel").forEach((panel) => { focusIfScrolled(panel); near.observe(panel); });
  follow();
  unfold();
})();
