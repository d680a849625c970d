#include "plan_recipe.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti {
namespace {

constexpr absl::string_view kTrainer = "tutti-train";

// The mapping, if the text is one.
YAML::Node Mapping(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsMap()) return root;
  } catch (const YAML::Exception&) {  // ReadRecipe names the line
  }
  return YAML::Node(YAML::NodeType::Map);
}

std::string Scalar(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : ""; }

// Returns the words of a job's command, with the inputs in them whose values the file has itself.
std::vector<std::string> WordsOf(std::string command, const YAML::Node& inputs) {
  if (inputs && inputs.IsMap()) {
    for (const auto& input : inputs) {
      if (!input.second.IsScalar()) continue;
      absl::StrReplaceAll(
          {{absl::StrCat("${{inputs.", input.first.Scalar(), "}}"), input.second.Scalar()}},
          &command);
    }
  }
  std::vector<std::string> words =
      absl::StrSplit(command, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  std::erase(words, "\\");  // of a line that goes on
  return words;
}

// Takes the flags of tutti-train from the words of a command.
class CommandReader {
 public:
  CommandReader(std::filesystem::path code, PlanRecipe& plan)
      : code_(std::move(code)), plan_(plan), fields_(train::FieldsOf(plan.recipe)) {}

  absl::Status Read(std::vector<std::string> words) {
    const auto trainer = std::find(words.begin(), words.end(), kTrainer);
    if (trainer == words.end()) {
      return absl::InvalidArgumentError(
          "its command does not run tutti-train: when it has run on one node, name the job");
    }
    words_.assign(trainer + 1, words.end());
    TUTTI_RETURN_IF_ERROR(ReadConfig());
    for (size_t i = 0; i < words_.size(); ++i) TUTTI_RETURN_IF_ERROR(ReadFlag(i));
    return absl::OkStatus();
  }

 private:
  // Before the flags, which win.
  absl::Status ReadConfig() {
    for (size_t i = 0; i < words_.size(); ++i) {
      absl::string_view file = words_[i];
      if (absl::ConsumePrefix(&file, "--config=")) {
        return train::ReadRecipe(code_ / std::string(file), plan_.recipe);
      }
      if (file == "--config" && i + 1 < words_.size()) {
        return train::ReadRecipe(code_ / words_[i + 1], plan_.recipe);
      }
    }
    return absl::OkStatus();
  }

  // "--NAME VALUE", "--NAME=VALUE", "--NAME" or "--no-NAME" of a switch.
  absl::Status ReadFlag(size_t& at) {
    absl::string_view name = words_[at];
    if (!absl::ConsumePrefix(&name, "--")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", words_[at], "\" behind tutti-train is no flag of it: name the recipe"));
    }
    const std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits('=', 1));
    const bool takes_next =
        parts.size() == 1 && at + 1 < words_.size() && !absl::StartsWith(words_[at + 1], "--");
    if (parts[0] == "config") {
      if (parts.size() == 1) ++at;
      return absl::OkStatus();
    }
    for (const train::Field& field : fields_) {
      if (train::IsSwitch(field) && absl::StrCat("no-", field.name) == parts[0]) {
        return train::SetField(field, "false");
      }
      if (field.name != parts[0]) continue;
      if (train::IsSwitch(field) && parts.size() == 1) return train::SetField(field, "true");
      const std::string value = parts.size() == 2 ? parts[1] : takes_next ? words_[++at] : "";
      return Set(field, value);
    }
    return absl::InvalidArgumentError(absl::StrCat("tutti-train has no --", parts[0]));
  }

  absl::Status Set(const train::Field& field, const std::string& value) {
    if (!absl::StrContains(value, '$')) {
      return base::Annotate(train::SetField(field, value), absl::StrCat("--", field.name));
    }
    plan_.left_out.push_back(absl::StrCat("--", field.name, " ", value));
    if (field.name == "model") plan_.has_model = false;
    return absl::OkStatus();
  }

  const std::filesystem::path code_;
  PlanRecipe& plan_;
  const std::vector<train::Field> fields_;
  std::vector<std::string> words_;
};

}  // namespace

absl::StatusOr<PlanRecipe> ReadPlanRecipe(const std::filesystem::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  PlanRecipe plan;
  const YAML::Node file = Mapping(text);
  const std::string command = Scalar(file["command"]);
  if (command.empty()) {
    TUTTI_RETURN_IF_ERROR(train::ReadRecipe(path, plan.recipe));
    return plan;
  }
  CommandReader reader(path.parent_path() / Scalar(file["code"]), plan);
  TUTTI_RETURN_IF_ERROR(
      base::Annotate(reader.Read(WordsOf(command, file["inputs"])), path.native()));
  const YAML::Node distribution = file["distribution"];
  if (distribution && distribution.IsMap()) {
    const YAML::Node processes = distribution["process_count_per_instance"];
    plan.ranks_per_node = std::max(1, processes ? processes.as<int>(1) : 1);
  }
  return plan;
}

}  // namespace tutti
