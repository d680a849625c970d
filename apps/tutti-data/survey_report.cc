#include "survey_report.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/data/annotation/annotation.h"

namespace tutti {
namespace {

constexpr size_t kNamed = 20;  // unreadable images in the table; JSON has all

struct Spread {
  int64_t least = 0, p10 = 0, median = 0, p90 = 0, most = 0;  // p90: nine tenths are below
  double mean = 0;
};

Spread SpreadOf(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {at(0), at(0.1), at(0.5), at(0.9), at(1), sum / static_cast<double>(values.size())};
}

// 1,281,167
std::string Grouped(int64_t value) {
  std::string digits = absl::StrCat(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string Row(absl::string_view name, const Spread& s) {
  return absl::StrFormat("  %-18s%12s%12s%12s%12s%14s%12s\n", name, Grouped(s.least),
                         Grouped(s.p10), Grouped(s.median), Grouped(s.p90), Grouped(s.most),
                         Grouped(static_cast<int64_t>(s.mean + 0.5)));
}

int64_t CountOf(const data::ImageCodec& codec, const data::Survey& survey) {
  const auto found = survey.of_kind.find(codec.name);
  return found == survey.of_kind.end() ? 0 : found->second;
}

std::string FormatsOf(const data::Survey& survey) {
  std::string text;
  for (const data::ImageCodec* const codec : data::ImageCodecs()) {
    const int64_t count = CountOf(*codec, survey);
    if (count > 0)
      absl::StrAppend(&text, text.empty() ? "" : ", ", Grouped(count), " ", codec->name);
  }
  return text.empty() ? "none" : text;
}

// The classes with the fewest and the most images, where they differ.
std::string Extremes(const data::Dataset& dataset, const data::Survey& survey) {
  const auto [fewest, most] = std::minmax_element(survey.of_class.begin(), survey.of_class.end());
  if (*fewest == *most) return "";
  const auto name = [&](auto place) {
    return dataset.classes()[static_cast<size_t>(place - survey.of_class.begin())];
  };
  return absl::StrCat("  fewest of ", name(fewest), " (", Grouped(*fewest), "), most of ",
                      name(most), " (", Grouped(*most), ")\n");
}

absl::string_view OfClass(const data::Dataset& dataset) {
  return dataset.annotations() == data::Annotations::kBoxes ? "objects a class" : "images a class";
}

nlohmann::json JsonOf(const Spread& s) {
  return {{"min", s.least}, {"p10", s.p10},  {"median", s.median},
          {"p90", s.p90},   {"max", s.most}, {"mean", s.mean}};
}

}  // namespace

std::string TableOf(absl::string_view title, const data::Dataset& dataset,
                    const data::Survey& survey) {
  const int64_t bytes = std::accumulate(survey.bytes.begin(), survey.bytes.end(), int64_t{0});
  std::string text = absl::StrCat(title, "\n  ", Grouped(survey.images), " images of ",
                                  Grouped(static_cast<int64_t>(dataset.classes().size())),
                                  " classes (", data::NameOf(dataset.annotations()), "), ",
                                  Grouped(bytes), " bytes; ", FormatsOf(survey), "\n");
  absl::StrAppend(&text, absl::StrFormat("  %-18s%12s%12s%12s%12s%14s%12s\n", "", "least", "10 %",
                                         "median", "90 %", "most", "mean"));
  absl::StrAppend(&text, Row("width", SpreadOf(survey.widths)),
                  Row("height", SpreadOf(survey.heights)), Row("bytes", SpreadOf(survey.bytes)),
                  Row(OfClass(dataset), SpreadOf(survey.of_class)), Extremes(dataset, survey));
  if (survey.stddev[0] + survey.stddev[1] + survey.stddev[2] > 0) {
    absl::StrAppend(&text, absl::StrFormat("  mean %.4f,%.4f,%.4f  stddev %.4f,%.4f,%.4f\n",
                                           survey.mean[0], survey.mean[1], survey.mean[2],
                                           survey.stddev[0], survey.stddev[1], survey.stddev[2]));
  }
  if (survey.unreadable.empty()) return text;
  absl::StrAppend(&text, "  unreadable: ", Grouped(static_cast<int64_t>(survey.unreadable.size())),
                  "\n");
  for (size_t i = 0; i < std::min(kNamed, survey.unreadable.size()); ++i) {
    absl::StrAppend(&text, "    ", survey.unreadable[i].status.message(), "\n");
  }
  if (survey.unreadable.size() > kNamed) absl::StrAppend(&text, "    … (--json lists all)\n");
  return text;
}

nlohmann::json JsonOf(absl::string_view split, data::DatasetFormat format,
                      const data::Dataset& dataset, const data::Survey& survey) {
  nlohmann::json unreadable = nlohmann::json::array(), of_class = nlohmann::json::array();
  for (const auto& one : survey.unreadable) {
    unreadable.push_back({{"index", one.index}, {"why", std::string(one.status.message())}});
  }
  for (size_t i = 0; i < survey.of_class.size(); ++i) {
    const bool boxes = dataset.annotations() == data::Annotations::kBoxes;
    of_class.push_back(
        {{"name", dataset.classes()[i]}, {boxes ? "objects" : "images", survey.of_class[i]}});
  }
  nlohmann::json document = {
      {"split", std::string(split)},
      {"format", std::string(data::NameOf(format))},
      {"annotations", std::string(data::NameOf(dataset.annotations()))},
      {"images", survey.images},
      {"classes", std::move(of_class)},
      {"bytes", std::accumulate(survey.bytes.begin(), survey.bytes.end(), int64_t{0})},
      {"width", JsonOf(SpreadOf(survey.widths))},
      {"height", JsonOf(SpreadOf(survey.heights))},
      {"image_bytes", JsonOf(SpreadOf(survey.bytes))},
      {"mean", survey.mean},
      {"stddev", survey.stddev},
      {"remarks", dataset.Remarks()},
      {"unreadable", std::move(unreadable)}};
  for (const data::ImageCodec* const codec : data::ImageCodecs()) {
    document[absl::AsciiStrToLower(codec->name)] = CountOf(*codec, survey);
  }
  return document;
}

}  // namespace tutti
