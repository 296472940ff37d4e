"use strict";
// What is drawn of a sentence. All text goes into the page as text, never as markup.

const SIDES = ["source", "target"];
const SVG = "http://www.w3.org/2000/svg";
// A share below this is not written down, only shaded.
const LEAST_TOLD = 0.05;

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function percent(share) {
  return `${Math.round(100 * share)}\u00a0%`;
}

function scored(score) {
  return score.toFixed(3).replace("-", "\u2212");
}

function isolated(text, name = "bdi") {
  return element(name, { dir: "auto" }, text);
}

// A line whose words have the attributes that the rest goes by: data-side and data-index.
function drawLine(parts, side, language, label) {
  const line = element("p", {
    class: `line ${side}`, dir: "auto", lang: language, role: "listbox",
    "aria-orientation": "horizontal", "aria-label": label,
  });
  let index = 0;
  for (const part of parts) {
    if (typeof part === "string") {
      line.append(part);
      continue;
    }
    const word = element("span", {
      class: part.isGhost ? "word ghost" : "word", role: "option", "aria-selected": "false",
      tabindex: index ? "-1" : "0", "data-side": side, "data-index": index,
    }, part.text);
    line.append(word);
    index += 1;
  }
  return line;
}

function drawMatrix(view, seen, grain) {
  const head = element("tr", {}, element("td"));
  seen.source.forEach((part, index) => {
    const name = element("span", { dir: "auto" }, part.text);
    head.append(element("th", { scope: "col", "data-side": "source", "data-index": index }, name));
  });
  head.append(element("th", { scope: "col" }, element("span", {}, "how sure")));
  const pairs = new Set(view.pairs.map(([source, target]) => `${source}-${target}`));
  const body = element("tbody");
  view.weights.forEach((row, target) => {
    const line = element("tr", {}, element("th", {
      scope: "row", dir: "auto", "data-side": "target", "data-index": target,
    }, seen.target[target].text));
    row.forEach((weight, source) => {
      const cell = element("td", {
        class: pairs.has(`${source}-${target}`) ? "pair" : "",
        "data-side": "target", "data-index": target, "data-source": source,
      }, weight < LEAST_TOLD ? "" : Math.round(100 * weight));
      cell.style.setProperty("--weight", weight);
      line.append(cell);
    });
    const sureness = percent(Math.exp(view.logProbs[target]));
    line.append(element("td", { class: "sure" }, sureness));
    body.append(line);
  });
  const caption = element("caption", { class: "unseen" }, `Weights in percent, of ${grain}`);
  return element("table", {}, caption, element("thead", {}, head), body);
}

// A curve from the foot of one box to the head of another, in pixels from `origin`.
function drawLink(from, to, origin, weight) {
  const x0 = from.left + from.width / 2 - origin.left, y0 = from.bottom - origin.top + 2;
  const x1 = to.left + to.width / 2 - origin.left, y1 = to.top - origin.top - 2;
  const middle = (y0 + y1) / 2;
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", `M${x0},${y0} C${x0},${middle} ${x1},${middle} ${x1},${y1}`);
  if (weight !== undefined) {
    path.setAttribute("class", "lit");
    path.style.setProperty("--weight", weight);
  }
  return path;
}

// Where a key leads among so many; null: nowhere.
function stepped(key, index, number, isRightToLeft) {
  const [back, on] = isRightToLeft ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  const next = { [back]: index - 1, [on]: index + 1, Home: 0, End: number - 1 }[key];
  return next === undefined || next < 0 || next >= number ? null : next;
}
