#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {
namespace {

class RecipeFile {
 public:
  RecipeFile(const std::filesystem::path& path, Recipe& recipe)
      : name_(path.string()), fields_(FieldsOf(recipe)) {}

  absl::Status Read(const std::string& text) {
    try {
      const YAML::Node root = YAML::Load(text);
      if (root.IsNull()) return absl::OkStatus();
      if (!root.IsMap()) return Wrong(root.Mark(), "a recipe is a mapping of names to values");
      for (const auto& entry : root) TUTTI_RETURN_IF_ERROR(ReadEntry(entry.first, entry.second));
      return absl::OkStatus();
    } catch (const YAML::Exception& error) {
      return Wrong(error.mark, error.msg);
    }
  }

 private:
  absl::Status Wrong(const YAML::Mark& mark, absl::string_view what) const {
    const int line = mark.is_null() ? 1 : mark.line + 1;
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", line, ": ", what));
  }

  absl::Status ReadEntry(const YAML::Node& key, const YAML::Node& value) {
    const std::string name = key.IsScalar() ? key.Scalar() : "";
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) {
      return Wrong(key.Mark(), absl::StrCat("\"", name, "\" is set twice"));
    }
    seen_.push_back(name);
    for (const Field& field : fields_) {
      if (field.name == name) return ReadValue(field, key, value);
    }
    std::vector<absl::string_view> names;
    for (const Field& field : fields_) names.push_back(field.name);
    return Wrong(key.Mark(),
                 absl::StrCat("unknown key \"", name, "\"", base::DidYouMean(name, names)));
  }

  absl::Status ReadValue(const Field& field, const YAML::Node& key, const YAML::Node& value) {
    std::string text;
    if (value.IsScalar()) {
      text = value.Scalar();
    } else if (value.IsSequence()) {
      std::vector<std::string> parts;
      for (const auto& part : value) parts.push_back(part.IsScalar() ? part.Scalar() : "?");
      text = absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
    } else if (value.IsMap() && std::holds_alternative<parallel::Parallelism*>(field.value)) {
      std::vector<std::string> parts;
      for (const auto& part : value) {
        parts.push_back(absl::StrCat(part.first.IsScalar() ? part.first.Scalar() : "?", ": ",
                                     part.second.IsScalar() ? part.second.Scalar() : "?"));
      }
      text = absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
    } else {
      return Wrong(key.Mark(), absl::StrCat(field.name, " has no value"));
    }
    const absl::Status status = SetField(field, text);
    if (status.ok()) return status;
    return Wrong(value.Mark(), absl::StrCat(field.name, ": ", status.message()));
  }

  const std::string name_;
  const std::vector<Field> fields_;
  std::vector<std::string> seen_;
};

}  // namespace

absl::Status ReadRecipe(const std::filesystem::path& path, Recipe& recipe) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, 1 << 20));
  return RecipeFile(path, recipe).Read(text);
}

}  // namespace tutti::train
