"use strict";
const REPORT = JSON.parse(document.getElementById("report").textContent);
const LEGEND_PX = 22, LEGEND_LEFT_PX = 50, LETTER_PX = 7; // of a row of a legend; left of its name; of a letter
const PRINTED_PX = 680; // the width of a printed page
const THEME = {
  font: { family: "system-ui, Segoe UI, Roboto, Liberation Sans, Arial, sans-serif", size: 13, color: "#1a1a1a" },
  margin: { l: 10, r: 10, t: 10, b: 10 },
  legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0, traceorder: "normal" },
  hoverlabel: { align: "left" },
  dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls the page
};
const AXIS = { automargin: true, exponentformat: "none", separatethousands: true, gridcolor: "#e6e6e6", zerolinecolor: "#bbbbbb", linecolor: "#bbbbbb" };

function themed(layout) {
  const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name));
  const digits = (axis) => axis.type === "log" ? { dtick: "D2" } : {}; // 2 and 5 between powers of ten
  const drawn = Object.fromEntries(axes.map((name) => [name, { ...AXIS, ...digits(layout[name]), ...layout[name] }]));
  return { ...THEME, ...layout, ...drawn };
}

function roomy(element, data, layout) { // for a legend of several rows, whose columns are as wide as its longest name
  const names = data.filter((one) => one.name && one.showlegend !== false).map((one) => one.name.split("<br>"));
  if (names.length < 2 || !layout.height) return layout;
  const wide = LEGEND_LEFT_PX + LETTER_PX * Math.max(...names.flat().map((line) => line.length));
  const rows = Math.ceil(names.length / Math.max(1, Math.floor(element.clientWidth / wide)));
  const lines = Math.max(...names.map((one) => one.length));
  return rows * lines > 1 ? { ...layout, height: layout.height + rows * lines * LEGEND_PX } : layout;
}

function draw(figure) {
  const { data, layout } = JSON.parse(figure.querySelector("script").textContent), element = figure.querySelector(".plot");
  Plotly.newPlot(element, data, themed(roomy(element, data, layout)), { responsive: true, displayModeBar: false });
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(REPORT, null, 1)], { type: "application/json" }));
  link.download = "report.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

function resized(width) {
  document.querySelectorAll(".js-plotly-plot").forEach((plot) => Plotly.relayout(plot, { width }));
}

window.addEventListener("beforeprint", () => resized(PRINTED_PX));
window.addEventListener("afterprint", () => resized(undefined));
