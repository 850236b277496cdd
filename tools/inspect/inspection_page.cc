#include "tools/inspect/inspection_page.h"

#include <algorithm>

#include "generator/families.h"
#include "tools/inspect/inspection_text.h"
#include "tools/inspect/number_text.h"
#include "tools/inspect/pipeline_drawing.h"
#include "tools/inspect/source_map.h"
#include "tools/plot/svg_chart.h"
#include "tools/plot/xml_text.h"

namespace pagejit::inspect {
namespace {

using plot::escape_xml;

// No "<" and no "&" in scripts and styles, so that the page is well-formed XML as it stands.
constexpr const char* kStyle = R"(<style>
:root{--ink:#1c1c1c;--ground:#fff;--soft:#f2f3f5;--line:#d5d8dd;--on:#ffe9a8;--loop:#e8f1fb}
@media (prefers-color-scheme:dark){:root{--ink:#dcdcdc;--ground:#181818;--soft:#232528;--line:#3b3f45;--on:#5a4a12;--loop:#1d2b3a}}
body{margin:1.5rem;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse}td,th{padding:.15rem .7rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}
pre,code,.code{font:12px/1.4 ui-monospace,monospace}
pre{background:var(--soft);padding:.7rem;overflow-x:auto}
.sides{display:flex;gap:.7rem;height:80vh}
.code{flex:1;min-width:0;overflow:auto;background:var(--soft);white-space:pre}
.code div{padding:0 .4rem;min-height:1.4em;width:max-content;min-width:100%;box-sizing:border-box}
.code b{display:inline-block;width:5.5em;font-weight:400;opacity:.6}
.code i{display:inline-block;width:3em;font-style:normal;opacity:.6}
.code .loop{background:var(--loop)}.code .on,.code div:target{background:var(--on)}
a{color:inherit;text-decoration:none}
</style>
)";

// A line of source and the instructions made of it have the same data-s. Resting shows the others,
// a click scrolls the other side to them.
constexpr const char* kScript = R"(<script>
(function () {
  var shown = [];
  function others(row) {
    return Array.from(document.querySelectorAll('[data-s="' + row.getAttribute('data-s') + '"]'));
  }
  function row_of(event) { return event.target.closest('[data-s]'); }
  document.addEventListener('mouseover', function (event) {
    var row = row_of(event);
    if (!row) return;
    shown.forEach(function (other) { other.classList.remove('on'); });
    shown = others(row);
    shown.forEach(function (other) { other.classList.add('on'); });
  });
  document.addEventListener('click', function (event) {
    var row = row_of(event);
    if (!row) return;
    event.preventDefault();
    var side = row.parentNode;
    var other = others(row).find(function (o) { return o.parentNode !== side; });
    if (other) other.parentNode.scrollTop = other.offsetTop - other.parentNode.offsetTop - 80;
  });
})();
</script>
)";

std::string section(const std::string& title, const std::string& content) {
  return "<h2>" + escape_xml(title) + "</h2>\n" + content;
}

std::string paragraph(const std::string& text) { return "<p>" + escape_xml(text) + "</p>\n"; }
std::string preformatted(const std::string& text) {
  return "<pre>" + escape_xml(text) + "</pre>\n";
}

std::string html_table(const Table& table) {
  std::string html = "<table>\n";
  for (size_t row = 0; row < table.size(); ++row) {
    const char* tag = row == 0 ? "th" : "td";
    html += "<tr>";
    for (const std::string& cell : table[row]) {
      html += std::string("<") + tag + ">" + escape_xml(cell) + "</" + tag + ">";
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%04llx", static_cast<unsigned long long>(value));
  return text;
}

// Of each instruction the index of its line in the source; -1: not known.
std::vector<int> lines_of(const SassListing& sass, const SourceMap& map) {
  std::vector<int> lines;
  for (const SassInstruction& instruction : sass.instructions) {
    lines.push_back(
        instruction.file < 0
            ? -1
            : map.find(sass.files[static_cast<size_t>(instruction.file)], instruction.line));
  }
  return lines;
}

std::string source_side(const SourceMap& map, const std::vector<int>& of_instruction) {
  std::vector<int> counts(map.lines().size());
  for (const int line : of_instruction) {
    if (line >= 0) ++counts[static_cast<size_t>(line)];
  }
  std::string html = "<div class=\"code\">\n";
  for (size_t i = 0; i < map.lines().size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const bool is_used = counts[i] > 0;
    html += "<div id=\"l" + number + "\"" + (is_used ? " data-s=\"" + number + "\"" : "") + "><b>" +
            number + "</b><i>" + (is_used ? std::to_string(counts[i]) : "") + "</i>" +
            escape_xml(map.lines()[i]) + "</div>\n";
  }
  return html + "</div>\n";
}

std::string sass_side(const SassListing& sass, const std::vector<int>& lines) {
  const SassLoop* loop = main_loop(sass);
  std::string html = "<div class=\"code\">\n";
  for (size_t i = 0; i < sass.instructions.size(); ++i) {
    const SassInstruction& instruction = sass.instructions[i];
    const bool is_in_loop = loop != nullptr && i >= loop->begin && i < loop->end;
    const std::string number = std::to_string(lines[i] + 1);
    html += "<div";
    if (lines[i] >= 0) html += " data-s=\"" + number + "\"";
    if (is_in_loop) html += " class=\"loop\"";
    html += "><b>" + hex(instruction.address) + "</b>";
    if (lines[i] >= 0) html += "<a href=\"#l" + number + "\">";
    html += escape_xml(instruction.text);
    if (lines[i] >= 0) html += "</a>";
    html += "</div>\n";
  }
  return html + "</div>\n";
}

std::string code_section(const Inspection& i) {
  if (!i.sass) {
    std::string html = paragraph(i.no_sass);
    if (!i.source.empty()) html += preformatted(i.source);
    return section("Source", html);
  }
  const SourceMap map(i.source);
  const std::vector<int> lines = lines_of(*i.sass, map);
  std::string html;
  if (!i.source.empty()) {
    html = paragraph(
        "Beside a line stands how many instructions come from it, calls inside being lines of "
        "their "
        "own. Resting on a line or an instruction shows what belongs to it, a click goes there. "
        "The main loop has a ground of its own.");
  }
  html += "<div class=\"sides\">\n";
  if (!i.source.empty()) html += source_side(map, lines);
  return section("Source and machine code", html + sass_side(*i.sass, lines) + "</div>\n");
}

std::string occupancy_section(const Inspection& i) {
  std::string html;
  for (const std::string& note : i.occupancy_notes()) html += paragraph(note);
  if (!i.occupancy.empty()) html += html_table(occupancy_table(i));
  return section("Occupancy", html);
}

std::string roofline_section(const Inspection& i) {
  if (!i.roofline && !i.unit_roofline) return "";
  std::string html = roofline_svg(i) + preformatted(explained_roofline(i));
  for (const std::string& sentence : i.caveats()) html += paragraph(sentence);
  return section("Roofline on " + std::string(i.gpu->title), html);
}

}  // namespace

std::string roofline_svg(const Inspection& i) {
  if (!i.roofline) return "";
  const Gpu& gpu = *i.gpu;
  const double here = i.roofline->intensity();
  // Of the formula's operations: each may take several products.
  const double tflops = gpu.tensor_tflops / i.roofline->products_each;
  const double ridge = tflops > 0 ? tflops * 1e3 / gpu.bandwidth_gb_s : here;
  // A decade on both sides.
  const double low = std::min(here, ridge) / 10;
  const double high = std::max(here, ridge) * 10;
  const double tb_per_s = gpu.bandwidth_gb_s * 1e-3;
  plot::Chart chart;
  chart.title = std::string(gpu.title) + ": what memory and products allow";
  chart.x = {"FLOP per byte", plot::Scale::kLogarithmic, low, high};
  chart.y = {"TFLOP/s", plot::Scale::kLogarithmic};
  plot::Series limit = {.name = "limit"};
  limit.points.push_back({low, low * tb_per_s});
  if (tflops > 0) {
    limit.points.push_back(
        {ridge, tflops,
         significant(tflops) + " TFLOP/s from " + significant(ridge) + " FLOP/B on"});
    limit.points.push_back({high, tflops});
  } else {
    limit.points.push_back({high, high * tb_per_s});
  }
  chart.series.push_back(limit);
  chart.series.push_back(
      {.name = "this problem at its limit",
       .line = false,
       .points = {{here, i.roofline->tflops(), significant(i.roofline->limit_us()) + " us"}}});
  return plot::to_svg(chart, plot::SvgPlace::kInPage);
}

std::string to_html(const Inspection& i) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
      escape_xml(i.symbol + ", " + i.target.to_string()) + "</title>\n" + kStyle +
      "</head>\n<body>\n<h1>" + escape_xml(i.symbol) + "</h1>\n";
  Table facts = {{"", ""}};
  if (i.config) facts.push_back({"spec", spec_text(*i.config)});
  facts.push_back({"target", i.target.to_string()});
  facts.push_back({"origin", i.origin});
  facts.push_back({"made by", i.tool});
  html += html_table(facts);
  html += section("Resources", html_table(resource_table(i)));
  for (const std::string& sentence : i.contradictions) html += paragraph(sentence);
  html += occupancy_section(i);
  if (i.config) html += section("Pipeline", preformatted(draw_pipeline(*i.config)));
  html += roofline_section(i);
  if (i.sass) {
    html += section("Instructions",
                    paragraph("Main loop: " + describe_main_loop(i)) + html_table(mix_table(i)));
  }
  return html + code_section(i) + kScript + "</body>\n</html>\n";
}

}  // namespace pagejit::inspect
