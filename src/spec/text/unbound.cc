#include "spec/text/unbound.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/closest.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostOfBody = 120;  // of an expression, in a message
constexpr size_t kMostNames = 8;     // that a message lists

constexpr std::array<absl::string_view, 4> kRoots = {"parent", "inputs", "jobs", "outputs"};

// The nearest of `names`, which may be `word` itself; "" if none is near.
std::string Nearest(absl::string_view word, const std::vector<std::string>& names) {
  const std::vector<absl::string_view> candidates(names.begin(), names.end());
  return base::Closest(word.substr(0, 80), candidates);
}

std::vector<std::string> StepNames(const Bindable& names) {
  std::vector<std::string> steps;
  for (const auto& [step, outputs] : names.steps) steps.push_back(step);
  return steps;
}

bool IsNear(absl::string_view word, absl::string_view meant) {
  const std::array<absl::string_view, 1> only = {meant};
  return !base::Closest(word.substr(0, 80), only).empty();
}

std::string InBraces(absl::string_view body) {
  return absl::StrCat(" (did you mean \"${{", body, "}}\"?)");
}

// The parts between the dots, without a first one that means the parent.
std::vector<std::string> PartsOf(absl::string_view body) {
  std::vector<std::string> parts = absl::StrSplit(body.substr(0, 400), '.');
  for (std::string& part : parts) part = std::string(absl::StripAsciiWhitespace(part));
  const bool has_parent =
      parts.size() > 1 && (IsNear(parts[0], "parent") || parts[0] == "pipeline");
  if (has_parent) parts.erase(parts.begin());
  return parts;
}

// {"train", "outputs", "model"}, with or without "jobs" or "steps" before it.
std::string MeantResult(std::vector<std::string> parts, const Bindable& names) {
  if (parts.size() == 4 && (IsNear(parts[0], "jobs") || IsNear(parts[0], "steps"))) {
    parts.erase(parts.begin());
  }
  if (parts.size() != 3 || !IsNear(parts[1], "outputs")) return "";
  const std::string step = Nearest(parts[0], StepNames(names));
  if (step.empty()) return "";
  const std::string output = Nearest(parts[2], names.steps.at(step));
  return absl::StrCat("parent.jobs.", step, ".outputs.", output.empty() ? parts[2] : output);
}

std::string Listed(absl::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return absl::StrCat("no ", what);
  const size_t shown = std::min(names.size(), kMostNames);
  return absl::StrCat("the ", what, " ", absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      shown < names.size() ? ", …" : "");
}

}  // namespace

std::map<std::string, std::vector<std::string>> OutputsOfSteps(const YamlNode& jobs) {
  std::map<std::string, std::vector<std::string>> steps;
  for (const YamlNode::Entry& step : jobs.entries) {
    std::vector<std::string>& outputs = steps[step.key];
    const YamlNode::Entry* const section = FindEntry(*step.value, "outputs");
    if (section == nullptr) continue;
    for (const YamlNode::Entry& output : section->value->entries) outputs.push_back(output.key);
  }
  return steps;
}

std::string BindingIn(absl::string_view text) {
  std::string found;
  ReplaceExpressions(text, [&](absl::string_view body) -> std::optional<std::string> {
    if (found.empty()) found = std::string(body.substr(0, kMostOfBody));
    return std::nullopt;
  });
  if (!found.empty()) return found;
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  const absl::string_view all = rest;
  absl::ConsumePrefix(&rest, "$");
  while (absl::ConsumePrefix(&rest, "{")) {
  }
  const bool is_marked = rest.size() < all.size();
  while (absl::ConsumeSuffix(&rest, "}")) {
  }
  rest = absl::StripAsciiWhitespace(rest);
  const size_t dot = rest.find('.');
  const bool is_name =
      dot != absl::string_view::npos && std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
      });
  const auto is_root = [&](absl::string_view root) { return rest.substr(0, dot) == root; };
  if (!is_marked || !is_name || std::none_of(kRoots.begin(), kRoots.end(), is_root)) return "";
  return std::string(rest.substr(0, kMostOfBody));
}

std::string MeantInput(absl::string_view body, const Bindable& names) {
  std::vector<std::string> parts = PartsOf(body);
  if (const std::string result = MeantResult(parts, names); !result.empty()) {
    return InBraces(result);
  }
  if (parts.size() > 1 && IsNear(parts[0], "inputs")) parts.erase(parts.begin());
  const std::string input = parts.size() == 1 ? Nearest(parts[0], names.inputs) : "";
  if (!input.empty()) return InBraces(absl::StrCat("parent.inputs.", input));
  return absl::StrCat("; write ${{parent.inputs.NAME}} or ${{parent.jobs.STEP.outputs.NAME}}: ",
                      "the pipeline has ", Listed("inputs", names.inputs), " and ",
                      Listed("steps", StepNames(names)));
}

std::string MeantOutput(absl::string_view body, const Bindable& names) {
  std::vector<std::string> parts = PartsOf(body);
  if (parts.size() > 1 && IsNear(parts[0], "outputs")) parts.erase(parts.begin());
  const std::string output = parts.size() == 1 ? Nearest(parts[0], names.outputs) : "";
  if (!output.empty()) return InBraces(absl::StrCat("parent.outputs.", output));
  return absl::StrCat("; write ${{parent.outputs.NAME}}: the pipeline has ",
                      Listed("outputs", names.outputs));
}

}  // namespace tutti::spec
