// Draws pages as SVG: words, labels, predictions; tells the caller which words were chosen.
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#bcbd22",
  "#6b6ecf", "#637939", "#843c39"];

export const colour = (index) => COLOURS[index % COLOURS.length];

function make(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

const around = (page, words) => {
  const boxes = words.map((w) => page.words[w]);
  return [Math.min(...boxes.map((b) => b[1])), Math.min(...boxes.map((b) => b[2])),
    Math.max(...boxes.map((b) => b[3])), Math.max(...boxes.map((b) => b[4]))];
};

// Words in the order they are read: lines from the top, words from the left.
export function inOrder(page, words) {
  const middle = (w) => (page.words[w][2] + page.words[w][4]) / 2;
  const left = [...words].sort((a, b) => middle(a) - middle(b) || page.words[a][1] - page.words[b][1]);
  const lines = [];
  for (const w of left) {
    const line = lines.at(-1);
    if (line && middle(w) < page.words[line[0]][4] && middle(w) > page.words[line[0]][2]) line.push(w);
    else lines.push([w]);
  }
  return lines.flatMap((line) => line.sort((a, b) => page.words[a][1] - page.words[b][1]));
}

export class Pages {
  // chosen(page number, words, was a single word clicked?, with Shift?)
  constructor(holder, chosen) {
    this.holder = holder;
    this.chosen = chosen;
    this.cursor = null;
  }

  draw(found, names) {
    this.found = found;
    this.holder.replaceChildren();
    this.layers = found.pages.map((page, number) => this.page(page, number));
    this.cursor = null;
    this.marks(found, names);
  }

  page(page, number) {
    const turned = page.rotation === 90 || page.rotation === 270;
    const [width, height] = turned ? [page.height, page.width] : [page.width, page.height];
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width: 900, height: (900 * height) / width,
      role: "img", "aria-label": `page ${number + 1} of ${this.found.pages.length}` }, this.holder);
    const turns = { 0: "", 90: `translate(0 ${page.width}) rotate(-90)`,
      180: `translate(${page.width} ${page.height}) rotate(180)`, 270: `translate(${page.height} 0) rotate(90)` };
    const group = make("g", { transform: turns[page.rotation] }, svg);
    if (page.image) {
      svg.classList.add("drawn");
      make("image", { href: `api/document/${this.found.number}/image/${number}`, width: page.width,
        height: page.height, preserveAspectRatio: "none" }, group);
    }
    const marks = make("g", {}, group), words = make("g", {}, group);
    page.words.forEach(([text, x0, y0, x1, y1], index) => {
      this.text(page, text, [x0, y0, x1, y1], words);
      const box = make("rect", { class: "word", x: x0, y: y0, width: Math.max(x1 - x0, 0.01),
        height: Math.max(y1 - y0, 0.01), "data-word": index }, words);
      make("title", {}, box).textContent = text;
    });
    this.choosing(svg, group, page, number);
    return { svg, group, marks, words };
  }

  text(page, text, [x0, y0, x1, y1], parent) {
    if (!text.trim() || x1 <= x0 || y1 <= y0) return;
    const upright = page.rotation % 180 === 0;
    const [length, size] = upright ? [x1 - x0, y1 - y0] : [y1 - y0, x1 - x0];
    const place = { 0: `translate(${x0} ${y1 - size * 0.2})`, 90: `translate(${x0 + size * 0.2} ${y0}) rotate(90)`,
      180: `translate(${x1} ${y0 + size * 0.2}) rotate(180)`, 270: `translate(${x1 - size * 0.2} ${y1}) rotate(-90)` };
    const element = make("text", { class: "text paper", transform: place[page.rotation], "font-size": size * 0.85,
      textLength: length, lengthAdjust: "spacingAndGlyphs" }, parent);
    element.textContent = text;
  }

  choosing(svg, group, page, number) {
    let start = null, band = null;
    const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(group.getScreenCTM().inverse());
    svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = at(event);
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.holder.focus();
    });
    svg.addEventListener("pointermove", (event) => {
      if (!start) return;
      const now = at(event);
      band ??= make("rect", { class: "band" }, group);
      band.setAttribute("x", Math.min(start.x, now.x));
      band.setAttribute("y", Math.min(start.y, now.y));
      band.setAttribute("width", Math.abs(now.x - start.x));
      band.setAttribute("height", Math.abs(now.y - start.y));
    });
    const end = (event, cancelled) => {
      if (!start) return;
      const now = at(event), from = start;
      start = null;
      band?.remove();
      band = null;
      if (cancelled) return;
      const [x0, x1] = [Math.min(from.x, now.x), Math.max(from.x, now.x)];
      const [y0, y1] = [Math.min(from.y, now.y), Math.max(from.y, now.y)];
      const words = page.words.flatMap(([, a, b, c, d], i) => (a <= x1 && c >= x0 && b <= y1 && d >= y0 ? [i] : []));
      if (!words.length) return;
      const small = Math.hypot(x1 - x0, y1 - y0) < 0.004 * page.width;
      this.place(number, words[0]);
      this.chosen(number, small ? [words[0]] : words, small, event.shiftKey);
    };
    svg.addEventListener("pointerup", (event) => end(event, false));
    svg.addEventListener("pointercancel", (event) => end(event, true));
  }

  marks(found, names) {
    this.found = found;
    for (const { marks } of this.layers) marks.replaceChildren();
    names.forEach((name, index) => {
      for (const value of found.fields[name].values)
        for (const run of value.runs) this.mark(value.page, run, "label", { fill: colour(index) }, name);
      for (const place of found.predictions?.[name].places ?? [])
        this.mark(place.page, place.words, "prediction", { stroke: colour(index) }, `${name}, predicted`);
    });
  }

  mark(number, words, kind, attributes, title) {
    if (!words.length) return;
    const [x0, y0, x1, y1] = around(this.found.pages[number], words);
    const box = make("rect", { class: kind, x: x0 - 1, y: y0 - 1, width: x1 - x0 + 2, height: y1 - y0 + 2,
      ...attributes }, this.layers[number].marks);
    make("title", {}, box).textContent = title;
  }

  place(number, word) {
    this.holder.querySelector(".cursor")?.classList.remove("cursor");
    this.cursor = { number, word };
    const box = this.layers[number].words.querySelector(`[data-word="${word}"]`);
    box.classList.add("cursor");
    box.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // Moves the cursor to the nearest word in a direction (dx, dy of -1, 0, 1).
  move(dx, dy) {
    if (!this.cursor) {
      const number = this.found.pages.findIndex((page) => page.words.length);
      if (number >= 0) this.place(number, inOrder(this.found.pages[number], this.found.pages[number].words.keys())[0]);
      return;
    }
    const { number, word } = this.cursor, page = this.found.pages[number];
    const middle = ([, a, b, c, d]) => [(a + c) / 2, (b + d) / 2];
    const [x, y] = middle(page.words[word]), height = page.words[word][4] - page.words[word][2];
    let best = null, least = Infinity;
    page.words.forEach((other, index) => {
      const [a, b] = middle(other), along = (a - x) * dx + (b - y) * dy;
      const across = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
      if (index === word || along <= 0 || (dx && across > height)) return;
      const far = along + 3 * across;
      if (far < least) [best, least] = [index, far];
    });
    if (best !== null) this.place(number, best);
    else if (dy) {
      const next = number + dy;
      if (this.found.pages[next]?.words.length) {
        const order = inOrder(this.found.pages[next], this.found.pages[next].words.keys());
        this.place(next, order.at(dy > 0 ? 0 : -1));
      }
    }
  }
}
