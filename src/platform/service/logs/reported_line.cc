#include "platform/service/logs/reported_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/text/utf8.h"
#include "platform/flow/metric_reports.h"

namespace tutti::service {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostStep = 1e15;

}  // namespace

bool ReportedLine::Read(absl::string_view line) {
  at_ = line.data();
  end_ = at_ + line.size();
  unescaped_.clear();
  values_.clear();
  event_ = name_ = run_ = "";
  nested_ = false;
  step_ = time_ = std::nullopt;
  const bool is_object = ReadObject();
  if (is_object) {
    ChooseValues();
  } else {
    values_.clear();
  }
  return is_object;
}

std::optional<int64_t> ReportedLine::step() const {
  if (!step_ || !(std::abs(*step_) < kMostStep)) return std::nullopt;
  return static_cast<int64_t>(*step_);
}

bool ReportedLine::ReadObject() {
  PassOverSpace();
  if (!Take('{')) return false;
  PassOverSpace();
  bool more = !Take('}');
  while (more) {
    absl::string_view key;
    PassOverSpace();
    if (!ReadText(key)) return false;
    PassOverSpace();
    if (!Take(':')) return false;
    PassOverSpace();
    if (!ReadField(key)) return false;
    PassOverSpace();
    more = Take(',');
    if (!more && !Take('}')) return false;
  }
  PassOverSpace();
  return at_ == end_;
}

bool ReportedLine::ReadText(absl::string_view& text) {
  if (!Take('"')) return false;
  const char* const begin = at_;
  bool has_escapes = false;
  while (at_ != end_ && *at_ != '"') {
    if (*at_ == '\\') {
      has_escapes = true;
      if (++at_ == end_) return false;
    }
    const auto c = static_cast<unsigned char>(*at_);
    const absl::string_view rest(at_, static_cast<size_t>(end_ - at_));
    const size_t length = c < 0x80 ? 1 : base::Utf8Length(rest);
    if (c < 0x20 || length == 0) return false;
    at_ += length;
  }
  if (at_ == end_) return false;
  text = absl::string_view(begin, static_cast<size_t>(at_ - begin));
  ++at_;
  if (!has_escapes) return true;
  const auto parsed = nlohmann::json::parse(begin - 1, at_, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_string()) return false;
  text = unescaped_.emplace_back(parsed.get<std::string>());
  return true;
}

bool ReportedLine::ReadField(absl::string_view key) {
  nested_ |= key == "nested";
  if (at_ == end_) return false;
  double number = kNotANumber;
  absl::string_view text;
  switch (*at_) {
    case '"':
      if (!ReadText(text)) return false;
      if (key == "event") event_ = text;
      if (key == "name") name_ = text;
      if (key == "run") run_ = text;
      return true;
    case '{':
    case '[':
      return PassOverNested();
    case 't':
      return ReadWord("true");
    case 'f':
      return ReadWord("false");
    case 'n':
      if (!ReadWord("null")) return false;
      break;
    default:
      if (!ReadNumber(number)) return false;
  }
  if (key == "step") step_ = number;
  if (key == "time" && std::isfinite(number)) time_ = number;
  values_.push_back({"", key, number});
  return true;
}

bool ReportedLine::ReadNumber(double& number) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (*at_ == 'N') return ReadWord("NaN");  // which `number` is
  const bool is_negative = *at_ == '-';
  const char* const digits = at_ + (is_negative ? 1 : 0);
  if (digits == end_) return false;
  if (*digits == 'I') {
    number = is_negative ? -kInfinity : kInfinity;
    at_ = digits;
    return ReadWord("Infinity");
  }
  if (*digits < '0' || *digits > '9') return false;  // from_chars takes "inf", "nan" and ".5"
  const auto [rest, error] = std::from_chars(at_, end_, number);
  if (error == std::errc::result_out_of_range)
    number = std::strtod(std::string(at_, rest).c_str(), nullptr);
  at_ = rest;
  return true;
}

bool ReportedLine::ReadWord(absl::string_view word) {
  if (static_cast<size_t>(end_ - at_) < word.size()) return false;
  if (absl::string_view(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

// Finds the end of a list or an object; nothing in it is a metric.
bool ReportedLine::PassOverNested() {
  int depth = 0;
  do {
    if (at_ == end_) return false;
    const char c = *at_;
    if (c == '"') {
      absl::string_view text;
      if (!ReadText(text)) return false;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at_;
  } while (depth > 0);
  return true;
}

bool ReportedLine::Take(char c) {
  if (at_ == end_ || *at_ != c) return false;
  ++at_;
  return true;
}

void ReportedLine::PassOverSpace() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
}

void ReportedLine::ChooseValues() {
  if (event_ == "metric") {
    const auto value = std::find_if(values_.begin(), values_.end(),
                                    [](const Value& one) { return one.name == "value"; });
    if (name_.empty() || value == values_.end()) return values_.clear();
    values_ = {{"", name_, value->value}};
    return;
  }
  const bool is_evaluation = event_ == "evaluation";
  if (!event_.empty() && event_ != "step" && !is_evaluation) return values_.clear();
  std::erase_if(values_, [](const Value& one) { return flow::IsBookkeeping(one.name); });
  if (!is_evaluation) return;
  for (Value& one : values_) one.prefix = "evaluation/";
}

}  // namespace tutti::service
