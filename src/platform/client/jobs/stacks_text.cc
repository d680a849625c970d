#include "platform/client/jobs/stacks_text.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/client/text/style.h"

namespace tutti::client {
namespace {

using nlohmann::json;

// Processes choose their names themselves: nothing in a name must act on the terminal.
std::string Plain(absl::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return plain;
}

std::string StringOf(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

void AppendIndented(absl::string_view text, int indent, std::string& lines) {
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&lines, std::string(indent, ' '), Plain(line), "\n");
  }
}

// py-spy begins with the process and its Python, which is said already.
std::string WithoutHead(const std::string& python) {
  std::string rest;
  for (const absl::string_view line : absl::StrSplit(python, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "Process ") || absl::StartsWith(line, "Python v")) continue;
    absl::StrAppend(&rest, line, "\n");
  }
  return rest;
}

void AppendProcess(const json& process, std::string& lines) {
  absl::StrAppend(&lines, "  ", Plain(StringOf(process, "command")), " (process ",
                  process.value("pid", 0), ")\n");
  AppendIndented(WithoutHead(StringOf(process, "python")), 4, lines);
  AppendIndented(StringOf(process, "native"), 4, lines);
  AppendIndented(StringOf(process, "kernel"), 4, lines);
  for (const json& note : process.value("notes", json::array())) {
    if (note.is_string()) AppendIndented("! " + note.get<std::string>(), 4, lines);
  }
}

std::string GroupHead(const json& group, bool colour) {
  const auto ranks = group.value("ranks", std::vector<int>());
  std::string head = Styled(RanksText(ranks), Tint::kBold, colour);
  if (ranks.size() > 1) absl::StrAppend(&head, ", as rank ", group.value("shown", 0));
  const std::string note = StringOf(group, "note");
  return absl::StrCat(head, note.empty() ? "" : absl::StrCat(" (", Plain(note), ")"), ":\n");
}

}  // namespace

std::string RanksText(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, i == 0 ? "" : ",", ranks[i]);
    if (last > i) absl::StrAppend(&text, last > i + 1 ? "-" : ",", ranks[last]);
    i = last;
  }
  return text;
}

absl::StatusOr<StacksText> TextOfStacks(const std::string& answer, bool colour) {
  const json document = json::parse(answer, nullptr, false);
  if (!document.is_object() || !document.contains("groups") || !document.contains("missing")) {
    return absl::InternalError("the service's answer has no stacks");
  }
  StacksText text;
  try {
    for (const json& group : document["groups"]) {
      text.has_any = true;
      absl::StrAppend(&text.lines, GroupHead(group, colour));
      for (const json& process : group.at("processes")) AppendProcess(process, text.lines);
    }
    for (const json& missing : document["missing"]) {
      absl::StrAppend(&text.lines, RanksText(missing.at("ranks").get<std::vector<int>>()), " on ",
                      Plain(StringOf(missing, "node")), ": none: ", Plain(StringOf(missing, "why")),
                      "\n");
    }
  } catch (const json::exception& error) {
    return absl::InternalError(absl::StrCat("the service's answer: ", error.what()));
  }
  return text;
}

}  // namespace tutti::client
