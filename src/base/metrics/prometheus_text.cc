#include "base/metrics/prometheus_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::base {
namespace {

// Whole numbers as such: %g would write 1e+06.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrFormat("%.17g", value);
}

// As OpenMetrics wants it, "10.0".
std::string Bound(absl::Duration bound) {
  std::string text = absl::StrFormat("%.15g", absl::ToDoubleSeconds(bound));
  return absl::StrContains(text, '.') || absl::StrContains(text, 'e') ? text : text + ".0";
}

absl::string_view Name(PrometheusText::Type type) {
  switch (type) {
    case PrometheusText::Type::kGauge:
      return "gauge";
    case PrometheusText::Type::kCounter:
      return "counter";
    case PrometheusText::Type::kHistogram:
      break;
  }
  return "histogram";
}

void AppendEscaped(absl::string_view text, std::string& to) {
  if (text.find_first_of("\\\"\n") == text.npos) {  // nearly always
    absl::StrAppend(&to, text);
    return;
  }
  to += absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// Returns a parameter of a part of Accept; "": it has none.
std::string ParameterOf(absl::string_view range, absl::string_view name) {
  for (const absl::string_view parameter : absl::StrSplit(range, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first), name)) {
      return absl::StrReplaceAll(absl::StripAsciiWhitespace(parts.second), {{"\"", ""}});
    }
  }
  return "";
}

// How well a part of Accept likes what it names: its q, 1 without one.
double QualityOf(absl::string_view range) {
  const std::string text = ParameterOf(range, "q");
  double quality = 0;
  if (!absl::SimpleAtod(text, &quality) || std::isnan(quality)) return text.empty() ? 1 : 0;
  return std::clamp(quality, 0.0, 1.0);
}

// Whether a part of Accept takes the version of OpenMetrics that there is.
bool TakesVersion1(absl::string_view range) {
  const std::string version = ParameterOf(range, "version");
  return version.empty() || version == "1" || absl::StartsWith(version, "1.");
}

}  // namespace

void PrometheusText::Begin(absl::string_view name, Type type, absl::string_view help) {
  name_ = std::string(name);
  absl::string_view family = name;
  const bool is_open = format_ == Format::kOpenMetrics;
  if (is_open && type == Type::kCounter) absl::ConsumeSuffix(&family, "_total");
  absl::StrAppend(&text_, "# HELP ", family, " ");
  if (is_open) {
    AppendEscaped(help, text_);
  } else {
    text_ += absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}});
  }
  absl::StrAppend(&text_, "\n# TYPE ", family, " ", Name(type), "\n");
}

void PrometheusText::Add(double value, const Labels& labels) { AddSample("", value, labels); }

void PrometheusText::Add(const base::Histogram& times, const Labels& labels) {
  int64_t so_far = 0;
  for (size_t i = 0; i < times.counts().size(); ++i) {
    so_far += times.counts()[i];
    const std::string bound = i < times.bounds().size() ? Bound(times.bounds()[i]) : "+Inf";
    AddSample("_bucket", static_cast<double>(so_far), labels, bound);
  }
  AddSample("_sum", absl::ToDoubleSeconds(times.sum()), labels);
  AddSample("_count", static_cast<double>(so_far), labels);
}

void PrometheusText::AddOne(absl::string_view name, Type type, absl::string_view help,
                            double value) {
  Begin(name, type, help);
  Add(value);
}

void PrometheusText::AddSample(absl::string_view suffix, double value, const Labels& labels,
                               absl::string_view bound) {
  absl::StrAppend(&text_, name_, suffix);
  absl::string_view before = "{";
  for (const auto& [name, text] : labels) {
    absl::StrAppend(&text_, before, name, "=\"");
    AppendEscaped(text, text_);
    text_ += '"';
    before = ",";
  }
  if (!bound.empty()) absl::StrAppend(&text_, before, "le=\"", bound, "\"");
  const bool any = !labels.empty() || !bound.empty();
  absl::StrAppend(&text_, any ? "}" : "", " ", Number(value), "\n");
}

std::string PrometheusText::Finish() && {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

absl::string_view MediaType(PrometheusText::Format format) {
  return format == PrometheusText::Format::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

PrometheusText::Format FormatFor(absl::string_view accept) {
  double open = 0, plain = 0;
  for (const absl::string_view range : absl::StrSplit(accept, ',', absl::SkipWhitespace())) {
    const std::string type = absl::AsciiStrToLower(
        absl::StripAsciiWhitespace(range.substr(0, std::min(range.find(';'), range.size()))));
    if (type == "application/openmetrics-text" && TakesVersion1(range))
      open = std::max(open, QualityOf(range));
    if (type == "text/plain") plain = std::max(plain, QualityOf(range));
  }
  return open > 0 && open >= plain ? PrometheusText::Format::kOpenMetrics
                                   : PrometheusText::Format::kText;
}

}  // namespace tutti::base
