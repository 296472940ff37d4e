// One sentence of the page: lights up what a word looked at, or what looked at it, by `weights`.
class Sentence {
  constructor(data, number, grain) {
    this.data = data;
    this.number = number;
    this.chosen = 0;
    this.grain = grain;
    this.node = element("section", { class: "sentence", "aria-labelledby": `sentence-${number}` });
    const heading = element("h2", { id: `sentence-${number}` }, `Sentence ${number + 1}`);
    if (data.model) heading.append(` · ${data.languages.join(" → ")} · ${data.model}`);
    this.about = element("div", { class: "about" }, heading);
    this.node.append(this.about);
    if (data.hypotheses.length) this.drawSeen();
    else {
      heading.append(" · not translated: it went past the model");
      this.node.append(element("p", { class: "untouched", dir: "auto" }, data.text));
    }
  }

  drawSeen() {
    this.drawTabs();
    this.panel = element("div", { role: "tabpanel", id: `panel-${this.number}` });
    this.node.append(this.panel);
    this.panel.addEventListener("pointerover", (event) => this.point(event.target));
    this.panel.addEventListener("pointerleave", () => this.rest());
    this.panel.addEventListener("focusin", (event) => this.point(event.target));
    this.panel.addEventListener("focusout", () => this.show(null));
    this.panel.addEventListener("click", (event) => event.target.closest(".word")?.focus());
    this.panel.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => this.drawLinks()).observe(this.panel);
    this.draw();
  }

  get hypothesis() {
    return this.data.hypotheses[this.chosen];
  }

  drawTabs() {
    const { hypotheses } = this.data;
    if (hypotheses.length === 1) {
      this.about.append(element("span", {}, `score ${scored(hypotheses[0].score)}`));
      return;
    }
    const list = element("div", {
      class: "tabs", role: "tablist", "aria-label": `Translations of sentence ${this.number + 1}, with their scores`,
    });
    this.tabs = hypotheses.map((hypothesis, index) => {
      const tab = element("button", {
        class: "tab", type: "button", role: "tab", id: `tab-${this.number}-${index}`,
        "aria-controls": `panel-${this.number}`, title: hypothesis.text,
      }, element("b", {}, index + 1), ` ${scored(hypothesis.score)}`);
      tab.addEventListener("click", () => this.choose(index));
      return tab;
    });
    list.append("by score", ...this.tabs);
    list.addEventListener("keydown", (event) => {
      const next = stepped(event.key, this.chosen, this.tabs.length, false);
      if (next === null) return;
      event.preventDefault();
      this.choose(next);
      this.tabs[next].focus();
    });
    this.about.append(list);
  }

  choose(index) {
    this.chosen = index;
    this.draw();
  }

  setGrain(grain) {
    this.grain = grain;
    if (this.panel) this.draw();
  }

  draw() {
    this.tabs?.forEach((tab, index) => {
      tab.setAttribute("aria-selected", index === this.chosen);
      tab.tabIndex = index === this.chosen ? 0 : -1;
    });
    if (this.tabs) this.panel.setAttribute("aria-labelledby", this.tabs[this.chosen].id);
    this.view = this.hypothesis[this.grain];
    this.seen = Object.fromEntries(
      SIDES.map((side) => [side, this.view[side].filter((part) => typeof part !== "string")]));
    this.told = element("p", { class: "told", "aria-live": "polite" });
    this.matrix = element("div", {
      class: "matrix", role: "group", tabindex: "0", "aria-label": "All weights",
    }, drawMatrix(this.view, this.seen, this.grain));
    this.panel.replaceChildren(this.drawStage(), this.told, this.matrix);
    this.show(null);
  }

  // The two lines, and the curves between them.
  drawStage() {
    this.links = document.createElementNS(SVG, "svg");
    this.links.setAttribute("class", "links");
    this.links.setAttribute("aria-hidden", "true");
    const labels = ["Source", "Translation"];
    const lines = SIDES.map((side, index) =>
      drawLine(this.view[side], side, this.data.languages[index], labels[index]));
    this.words = Object.fromEntries(
      SIDES.map((side, index) => [side, [...lines[index].querySelectorAll(".word")]]));
    this.drawSureness(lines[1]);
    this.stage = element("div", { class: `lines ${this.grain}` }, this.links, ...lines);
    return this.stage;
  }

  drawSureness(line) {
    this.words.target.forEach((word, index) => {
      word.style.setProperty("--probability", Math.exp(this.view.logProbs[index]));
    });
    const end = this.view.logProbs[this.words.target.length];
    if (end !== undefined) {
      line.append(element("span", { class: "end" }, `end, ${percent(Math.exp(end))} sure`));
    }
  }

  // Curves from word to word: of the hard alignment, or from the word in question by weight.
  drawLinks() {
    if (!this.stage.isConnected) return;
    const origin = this.stage.getBoundingClientRect();
    const box = (side, index) => this.words[side][index].getClientRects()[0];
    const active = this.active;
    const pairs = active
      ? this.weightsOf(active).map((weight, other) => active.side === "target"
        ? [other, active.index, weight] : [active.index, other, weight])
      : this.view.pairs;
    const paths = pairs.filter(([, , weight]) => weight === undefined || weight >= 0.02);
    this.links.replaceChildren(...paths.map(([source, target, weight]) =>
      drawLink(box("source", source), box("target", target), origin, weight)));
  }

  // What the words of the other line have to do with one word.
  weightsOf({ side, index }) {
    const { weights } = this.view;
    return side === "target" ? weights[index] : weights.map((row) => row[index]);
  }

  point(node) {
    const of = node.closest("[data-side]");
    if (of) this.show({ side: of.dataset.side, index: Number(of.dataset.index) });
    else this.rest();
  }

  // When nothing is pointed at, the word with the focus is the one in question.
  rest() {
    const focused = document.activeElement;
    if (this.panel.contains(focused) && focused.matches(".word")) this.point(focused);
    else this.show(null);
  }

  show(active) {
    this.active = active;
    for (const side of SIDES) {
      const weights = active && active.side !== side ? this.weightsOf(active) : [];
      this.words[side].forEach((word, index) => {
        const isActive = active?.side === side && active.index === index;
        const weight = weights[index] ?? 0;
        word.classList.toggle("active", isActive);
        word.setAttribute("aria-selected", isActive);
        word.style.setProperty("--weight", weight);
        if (weight >= LEAST_TOLD) word.dataset.percent = Math.round(100 * weight);
        else delete word.dataset.percent;
      });
    }
    for (const node of [this.stage, this.matrix]) node.classList.toggle("is-lit", active !== null);
    this.markMatrix(active);
    this.told.replaceChildren(...this.telling(active));
    this.drawLinks();
  }

  markMatrix(active) {
    for (const node of this.matrix.querySelectorAll(".lit")) node.classList.remove("lit");
    if (!active) return;
    const { side, index } = active;
    this.matrix.querySelector(`th[data-side="${side}"][data-index="${index}"]`).classList.add("lit");
    const marked = side === "target" ? `tr:has(> th[data-side][data-index="${index}"])` : `td[data-source="${index}"]`;
    for (const node of this.matrix.querySelectorAll(`tbody ${marked}`)) node.classList.add("lit");
  }

  telling(active) {
    if (!active) {
      const { logProb, isCut } = this.hypothesis;
      const warning = element("span", { class: "warning" }, " Cut off at a limit of length.");
      return [`Log-probability ${scored(logProb)}.`, ...(isCut ? [warning] : [])];
    }
    const { side, index } = active;
    const other = side === "target" ? "source" : "target";
    const others = this.weightsOf(active)
      .map((weight, at) => ({ weight, part: this.seen[other][at] }))
      .filter(({ weight }) => weight >= LEAST_TOLD)
      .sort((a, b) => b.weight - a.weight)
      .flatMap(({ weight, part }, at) => [at ? ", " : " ", isolated(part.text), ` ${percent(weight)}`]);
    const part = this.seen[side][index];
    const verb = side === "target" ? " looked at" : " was looked at by";
    const told = [isolated(part.text, "b"), verb, ...(others.length ? others : [" nothing much"]), "."];
    if (side === "target") told.push(` It was ${percent(Math.exp(this.view.logProbs[index]))} sure of this word.`);
    if (part.readAs) told.push(" The model had ", isolated(part.readAs), " in its place.");
    return told;
  }

  move(event) {
    const word = event.target.closest(".word");
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    const side = word.dataset.side, index = Number(word.dataset.index);
    const across = { ArrowDown: "target", ArrowUp: "source" }[event.key];
    let next = null;
    if (across && across !== side) {
      const weights = this.weightsOf({ side, index });
      next = this.words[across][weights.indexOf(Math.max(...weights))];
    } else if (!across) {
      const isRightToLeft = getComputedStyle(word.parentElement).direction === "rtl";
      next = this.words[side][stepped(event.key, index, this.words[side].length, isRightToLeft)];
    }
    if (event.key === "Escape") word.blur();
    if (!next) return;
    event.preventDefault();
    for (const one of this.words[next.dataset.side]) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  }
}

const data = JSON.parse(document.getElementById("data").textContent);
const sentences = data.map((sentence, number) => new Sentence(sentence, number, "words"));
document.querySelector("main").append(...sentences.map((sentence) => sentence.node));
for (const input of document.querySelectorAll("[name=grain]")) {
  input.addEventListener("change", () => {
    for (const sentence of sentences) sentence.setGrain(input.value);
  });
}
