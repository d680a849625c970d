#include "spec/json/rank_stacks.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

struct TextField {
  const char* name;
  std::string ProcessStacks::*text;
};
constexpr TextField kTextFields[] = {{"command", &ProcessStacks::command},
                                     {"python", &ProcessStacks::python},
                                     {"native", &ProcessStacks::native},
                                     {"kernel", &ProcessStacks::kernel}};

void ReadText(const json& object, const char* name, std::string& text) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_string()) text = at->get<std::string>();
}

int PidOf(const json& object) {
  const auto at = object.find("pid");
  if (at == object.end() || !at->is_number_unsigned()) return 0;
  const auto number = at->get<uint64_t>();
  return number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : 0;
}

ProcessStacks ProcessOf(const json& object) {
  ProcessStacks process{.pid = PidOf(object)};
  for (const auto& [name, text] : kTextFields) ReadText(object, name, process.*text);
  const auto notes = object.find("notes");
  if (notes == object.end() || !notes->is_array()) return process;
  for (const json& note : *notes) {
    if (note.is_string()) process.notes.push_back(note.get<std::string>());
  }
  return process;
}

}  // namespace

std::string ToJson(const RankStacks& stacks) {
  json object = {{"processes", json::array()}};
  if (!stacks.error.empty()) object["error"] = stacks.error;
  for (const ProcessStacks& process : stacks.processes) {
    json& entry = object["processes"].emplace_back(json{{"pid", process.pid}});
    for (const auto& [name, text] : kTextFields) {
      if (!(process.*text).empty()) entry[name] = process.*text;
    }
    if (!process.notes.empty()) entry["notes"] = process.notes;
  }
  return Dump(object);
}

absl::StatusOr<RankStacks> RankStacksFromJson(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, false);
  const auto processes = object.is_object() ? object.find("processes") : object.end();
  if (!object.is_object() || processes == object.end() || !processes->is_array()) {
    return absl::InvalidArgumentError("these are no stacks of a rank");
  }
  RankStacks stacks;
  ReadText(object, "error", stacks.error);
  for (const json& entry : *processes) {
    if (entry.is_object() && PidOf(entry) > 0) stacks.processes.push_back(ProcessOf(entry));
  }
  return stacks;
}

}  // namespace tutti::spec
