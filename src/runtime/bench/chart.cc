#include "runtime/bench/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::bench {
namespace {

constexpr double kWidth = 420, kHeight = 340, kLeft = 62, kRight = 50, kTop = 48, kBottom = 60;
constexpr std::array<absl::string_view, 4> kColours = {"#2f6690", "#b5573c", "#7a8f5a", "#7b5ea7"};

std::string ChartText(double x, double y, absl::string_view words, absl::string_view anchor,
                      absl::string_view colour = "#24303c", int size = 11) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">%s</text>\n", x,
      y, anchor, colour, size, words);
}

// One model's points at (x0, 0).
class Panel {
 public:
  Panel(double x0, std::vector<Point> points) : x0_(x0), points_(std::move(points)) {
    for (const Point& point : points_) {
      most_ranks_ = std::max(most_ranks_, point.ranks);
      least_ = std::min({least_, point.images_per_second(), point.alone});
      most_ = std::max({most_, point.images_per_second(), point.ideal()});
    }
  }

  std::string Draw() const {
    std::string svg = ChartText(x0_ + kWidth / 2, 22, points_[0].model, "middle", "#24303c", 14);
    const double right = X(most_ranks_);
    absl::StrAppendFormat(&svg,
                          "<path d=\"M%.1f %.1f V%.1f H%.1f\" fill=\"none\" stroke=\"#24303c\"/>\n",
                          x0_ + kLeft, kTop, kHeight - kBottom, right + 8);
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                          "stroke=\"#888\" stroke-dasharray=\"5 4\"/>\n",
                          X(1), Y(points_[0].alone), right, Y(points_[0].alone * most_ranks_));
    absl::StrAppend(
        &svg, ChartText(right - 4, Y(points_[0].alone * most_ranks_) - 8, "ideal", "end", "#666"));
    std::set<int> ranks;
    for (const Point& point : points_) ranks.insert(point.ranks);
    for (const int n : ranks) {
      absl::StrAppend(&svg, ChartText(X(n), kHeight - kBottom + 16, absl::StrCat(n), "middle"));
      absl::StrAppend(&svg, ChartText(x0_ + kLeft - 6, Y(points_[0].alone * n) + 4,
                                      absl::StrFormat("%.0f", points_[0].alone * n), "end"));
    }
    absl::StrAppend(&svg, ChartText(x0_ + kWidth / 2, kHeight - kBottom + 34, "ranks", "middle"),
                    ChartText(x0_ + kLeft - 30, kTop - 12, "images/s", "start"));
    return svg + Lines();
  }

 private:
  double X(double ranks) const {
    const double span = kWidth - kLeft - kRight;
    return x0_ + kLeft + span * std::log2(ranks) / std::max(1.0, std::log2(most_ranks_));
  }
  double Y(double rate) const {
    const double span = kHeight - kTop - kBottom - 12;
    const double part = std::log(rate / least_) / std::max(1e-9, std::log(most_ / least_));
    return kHeight - kBottom - 12 - span * part;
  }

  // Where the first word below all points of so many ranks stands.
  double Below(int ranks) const {
    double lowest = 0;
    for (const Point& p : points_) {
      if (p.ranks == ranks) lowest = std::max(lowest, Y(p.images_per_second()));
    }
    return lowest + 14;
  }

  std::string Lines() const {
    std::vector<std::string> transports;
    for (const Point& p : points_) {
      if (std::find(transports.begin(), transports.end(), p.transport) == transports.end()) {
        transports.push_back(p.transport);
      }
    }
    std::string svg;
    for (size_t i = 0; i < transports.size(); ++i) {
      absl::StrAppend(&svg, Line(transports[i], kColours[i % kColours.size()], i));
    }
    return svg;
  }

  std::string Line(const std::string& transport, absl::string_view colour, size_t number) const {
    std::string path, marks;
    for (const Point& p : points_) {
      if (p.transport != transport) continue;
      const double x = X(p.ranks), y = Y(p.images_per_second());
      absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : " L", x, y);
      absl::StrAppendFormat(&marks, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x,
                            y, colour);
      if (p.ranks > 1) {
        absl::StrAppend(&marks, ChartText(x + 6, Below(p.ranks) + 12 * static_cast<double>(number),
                                          absl::StrFormat("%.0f %%", 100 * p.efficiency()), "start",
                                          colour, 10));
      }
    }
    return absl::StrCat(
        absl::StrFormat("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", path,
                        colour),
        marks,
        ChartText(x0_ + kLeft + 12, kTop + 14 + 14 * static_cast<double>(number), transport,
                  "start", colour));
  }

  const double x0_;
  const std::vector<Point> points_;
  int most_ranks_ = 1;
  double least_ = 1e300, most_ = 0;
};

}  // namespace

std::string SvgChart(const Conditions& conditions, std::span<const Point> points) {
  std::vector<std::vector<Point>> models;
  for (const Point& point : points) {
    if (models.empty() || models.back()[0].model != point.model) models.emplace_back();
    models.back().push_back(point);
  }
  const double width = kWidth * static_cast<double>(std::max<size_t>(models.size(), 1));
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
      "%.0f\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n"
      "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fbfaf7\"/>\n",
      width, kHeight, width, kHeight, width, kHeight);
  for (size_t i = 0; i < models.size(); ++i) {
    absl::StrAppend(&svg, Panel(kWidth * static_cast<double>(i), models[i]).Draw());
  }
  absl::StrAppend(
      &svg, ChartText(width / 2, kHeight - 8,
                      absl::StrFormat("%s on %s, %d thread%s a rank, %s", conditions.precision,
                                      conditions.device, conditions.threads,
                                      conditions.threads == 1 ? "" : "s", conditions.date),
                      "middle", "#666", 10));
  return svg + "</svg>\n";
}

}  // namespace tutti::bench
