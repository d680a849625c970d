#include "runtime/scoring/foreign_model.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::scoring {
namespace {

namespace fs = std::filesystem;

constexpr char kModelFile[] = "model.yml";
constexpr int64_t kMostPixels = 1 << 14;  // a side, as in a model folder

fs::path FileOf(const fs::path& path) {
  return path.filename() == kModelFile ? path : path / kModelFile;
}

absl::Status Wrong(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(key, " must be ", what));
}

absl::Status CheckKeys(const YAML::Node& map, const std::set<std::string>& known) {
  if (!map.IsMap()) return absl::InvalidArgumentError("is no mapping of keys");
  for (const auto& entry : map) {
    const std::string key = entry.first.as<std::string>();
    if (known.count(key) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("line ", entry.first.Mark().line + 1, ": ", key,
                                                   " is not one of ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

template <typename Value>
absl::Status ReadIfThere(const YAML::Node& map, const char* key, const char* what, Value& into) {
  if (!map[key]) return absl::OkStatus();
  try {
    into = map[key].as<Value>();
  } catch (const YAML::Exception&) {
    return Wrong(key, what);
  }
  return absl::OkStatus();
}

absl::Status ReadSide(const YAML::Node& map, const char* key, int64_t least, int64_t& into) {
  constexpr char kWhat[] = "a number of pixels, at most 16384";
  TUTTI_RETURN_IF_ERROR(ReadIfThere(map, key, kWhat, into));
  return into < least || into > kMostPixels ? Wrong(key, kWhat) : absl::OkStatus();
}

absl::Status ReadColors(const YAML::Node& map, const char* key, std::array<double, 3>& into) {
  constexpr char kWhat[] = "three numbers, of red, green and blue in 0..1";
  std::vector<double> values(into.begin(), into.end());
  TUTTI_RETURN_IF_ERROR(ReadIfThere(map, key, kWhat, values));
  if (values.size() != into.size()) return Wrong(key, kWhat);
  std::copy(values.begin(), values.end(), into.begin());
  return absl::OkStatus();
}

absl::Status ReadInput(const YAML::Node& map, ForeignModel& model) {
  checkpoint::ModelInput& input = model.folder.input;
  input.height = input.width = 0;
  TUTTI_RETURN_IF_ERROR(
      CheckKeys(map, {"height", "width", "layout", "resize", "stretch", "mean", "stddev"}));
  TUTTI_RETURN_IF_ERROR(ReadSide(map, "height", 1, input.height));
  TUTTI_RETURN_IF_ERROR(ReadSide(map, "width", 1, input.width));
  TUTTI_RETURN_IF_ERROR(ReadSide(map, "resize", 0, input.resize));
  TUTTI_RETURN_IF_ERROR(ReadIfThere(map, "stretch", "true or false", input.stretch));
  TUTTI_RETURN_IF_ERROR(ReadColors(map, "mean", input.mean));
  TUTTI_RETURN_IF_ERROR(ReadColors(map, "stddev", input.stddev));
  if (*std::min_element(input.stddev.begin(), input.stddev.end()) <= 0) {
    return Wrong("stddev", "three positive numbers");
  }
  std::string layout = "nchw";
  TUTTI_RETURN_IF_ERROR(ReadIfThere(map, "layout", "nchw or nhwc", layout));
  model.channels_last = layout == "nhwc";
  return layout == "nchw" || layout == "nhwc" ? absl::OkStatus() : Wrong("layout", "nchw or nhwc");
}

absl::StatusOr<std::vector<std::string>> ReadClasses(const YAML::Node& node, const fs::path& at) {
  std::vector<std::string> classes;
  if (node && node.IsSequence()) {
    for (const auto& name : node) classes.push_back(name.as<std::string>());
  } else if (node && node.IsScalar()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(at / node.as<std::string>()));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const absl::string_view name = absl::StripAsciiWhitespace(line);
      if (!name.empty()) classes.emplace_back(name);
    }
  }
  if (classes.empty()) {
    return Wrong("classes", "a list of names, or a file beside it with one name on each line");
  }
  return classes;
}

absl::StatusOr<fs::path> FindScript(const YAML::Node& file, const fs::path& at) {
  if (file) return at / file.as<std::string>();
  std::vector<fs::path> scripts;
  for (const auto& entry : fs::directory_iterator(at)) {
    if (entry.path().extension() == ".pt") scripts.push_back(entry.path());
  }
  if (scripts.size() == 1) return scripts[0];
  return absl::InvalidArgumentError(
      absl::StrCat(scripts.empty() ? "no *.pt lies" : "several *.pt lie",
                   " beside it: name the TorchScript file by the key file"));
}

absl::StatusOr<ForeignModel> Parse(const YAML::Node& map, const fs::path& at) {
  ForeignModel model;
  TUTTI_RETURN_IF_ERROR(CheckKeys(map, {"task", "file", "classes", "input"}));
  TUTTI_RETURN_IF_ERROR(ReadIfThere(map, "task", "a name", model.folder.task));
  if (!map["input"]) return Wrong("input", "a mapping with height and width");
  TUTTI_RETURN_IF_ERROR(base::Annotate(ReadInput(map["input"], model), "input"));
  TUTTI_ASSIGN_OR_RETURN(model.folder.classes, ReadClasses(map["classes"], at));
  TUTTI_ASSIGN_OR_RETURN(model.script, FindScript(map["file"], at));
  model.folder.architecture = absl::StrCat("script:", model.script.string());
  return model;
}

}  // namespace

bool IsForeignModel(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(FileOf(path), error);
}

absl::StatusOr<ForeignModel> ReadForeignModel(const fs::path& path) {
  const fs::path file = FileOf(path);
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, uint64_t{1} << 20));
  absl::StatusOr<ForeignModel> model;
  try {
    model = Parse(YAML::Load(text), file.parent_path());
  } catch (const std::exception& problem) {  // also of folders that cannot be read
    model = absl::InvalidArgumentError(problem.what());
  }
  if (!model.ok()) return base::Annotate(model.status(), file.string());
  return model;
}

}  // namespace tutti::scoring
