#include "spec/environment/job_environment.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/closest.h"
#include "spec/data/data_map.h"
#include "spec/environment/framework_image.h"
#include "spec/environment/package_files.h"
#include "spec/environment/shared_files.h"
#include "spec/site/requirement.h"
#include "spec/site/site_defaults.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"
#include "spec/types/image_reference.h"

namespace tutti::spec {
namespace {

// An environment that is written out has no name of its own: "environment of the job file".
constexpr char kUnnamed[] = "of the job file";

// Whether "-1.5" or the like stands in a name, after one of `before`. No regular expression: names
// are as long as a file makes them, and the standard library's recurse for each digit.
bool HasVersion(absl::string_view name, absl::string_view before) {
  for (size_t dot = name.find('.'); dot != absl::string_view::npos; dot = name.find('.', dot + 1)) {
    if (dot + 1 == name.size() || !absl::ascii_isdigit(name[dot + 1])) continue;
    size_t first = dot;
    while (first > 0 && absl::ascii_isdigit(name[first - 1])) --first;
    if (first < dot && first > 0 && absl::StrContains(before, name[first - 1])) return true;
  }
  return false;
}

constexpr absl::string_view kCuratedImages = "mcr.microsoft.com/azureml/curated/";

// "azureml:AzureML-sklearn-1.5@latest", "sklearn-1.5:3" and
// "azureml://registries/azureml/environments/sklearn-1.5/labels/latest" are "sklearn-1.5".
std::string TableName(const AssetReference& reference) {
  return std::string(absl::StripPrefix(reference.name, "AzureML-"));
}

// Reads one environment; the file in which it stands is the job's own or one that the job names.
class EnvironmentReader {
 public:
  EnvironmentReader(const ReadContext& context, absl::string_view shown, Diagnostics& diagnostics)
      : context_(context), shown_(shown), diagnostics_(diagnostics) {}

  Environment Read(const YamlNode::Entry& entry) {
    environment_line_ = entry.line;
    if (entry.value->kind == YamlNode::Kind::kScalar) {
      ReadReference(entry.value->scalar, entry.line);
    } else {
      ReadMapping(*entry.value);
    }
    return Finish();
  }

  Environment ReadWhole(const YamlNode& root) {
    ReadMapping(root);
    return Finish();
  }

 private:
  // A file that asks for Horovod, in place of the curated environment, has said whose it is.
  Environment Finish() {
    for (const Requirement& package : environment_.packages) {
      if (curated_line_ == 0 || package.text != kHorovod || !IsOfBuiltInTable(package)) continue;
      NoteWhichHorovodRuns(curated_line_, diagnostics_);
    }
    WarnOfAzuresRun();
    return std::move(environment_);
  }

  // Azure's own Run logs to Azure alone. One warning is enough: azureml-defaults brings the others.
  void WarnOfAzuresRun() {
    const auto found = std::find_if(
        environment_.packages.begin(), environment_.packages.end(), [](const Requirement& package) {
          const std::string name = PackageName(package.text);
          return !IsOfBuiltInTable(package) &&
                 (name == "azureml-defaults" || name == "azureml-core" || name == "azureml-sdk" ||
                  absl::StartsWith(name, "azureml-train"));
        });
    if (found == environment_.packages.end()) return;
    diagnostics_.Warning(
        environment_line_,
        absl::StrCat(found->text.substr(0, 80), " (", found->location,
                     ") has Azure's own Run: what a script logs by azureml.core is not kept, and a "
                     "sweep finds no metric; take tutti-client's wheel and its forwarder "
                     "azureml-core in place of it (docs/sdk/core.md). Logging by mlflow needs "
                     "neither"));
  }

  void ReadReference(absl::string_view written, int line) {
    absl::string_view path = written;
    if (absl::ConsumePrefix(&path, "file:") || absl::StartsWith(written, "./") ||
        absl::StartsWith(written, "../")) {
      return ReadFile(FileBeside(path, context_), line);
    }
    const AssetReference reference = ReferenceOf(AssetKind::kEnvironment, written);
    bool registered = false;
    const auto asset = context_.site.environment_assets.Find(reference, &registered);
    if (asset.ok()) {
      ReadFile({absl::StrCat("azureml:", asset->name, ":", asset->version), asset->path}, line);
      environment_.name = asset->name;
      return;
    }
    environment_.name = TableName(reference);
    const EnvironmentRule* rule = Site::FindRule(context_.site.environments, environment_.name);
    const absl::Status label = CheckLabel(AssetKind::kEnvironment, reference);
    if (rule != nullptr && rule->kind != EnvironmentRule::Kind::kRefused && !label.ok()) {
      return diagnostics_.Error(line, absl::StrCat("environment: ", label.message()));
    }
    if (rule != nullptr) {
      return Follow(RuleOfName(*rule), line, absl::StrCat("environment \"", written, "\""));
    }
    if (registered) {
      return diagnostics_.Error(line, absl::StrCat("environment: ", asset.status().message()));
    }
    RefuseUnknown(written, line);
  }

  EnvironmentRule RuleOfName(const EnvironmentRule& matched) const {
    return RuleOfFrameworkName(absl::AsciiStrToLower(environment_.name), matched,
                               context_.site.environments);
  }

  void RefuseUnknown(absl::string_view written, int line) {
    std::vector<absl::string_view> names;
    for (const EnvironmentRule& known : context_.site.environments) names.push_back(known.pattern);
    for (const auto& [name, versions] : context_.site.environment_assets.assets()) {
      names.push_back(name);
    }
    const absl::string_view name = absl::string_view(environment_.name).substr(0, 255);
    diagnostics_.Error(
        line, absl::StrCat("environment \"", written.substr(0, 120), "\" is not known here",
                           base::DidYouMean(name, names),
                           "; make it known by its file: tutti environment create --file FILE, or "
                           "say in site.yml what it holds: environments: {",
                           name, ": {packages: […]}}, or host"));
  }

  // `file:env.yml`: the environment's own schema, with paths that count from its folder.
  void ReadFile(const NamedFile& file, int line) {
    const auto text = context_.Read(file.path);
    const auto root = text.ok() ? ParseYaml(*text, file.shown) : text.status();
    if (!root.ok()) {
      diagnostics_.Error(line, absl::StrCat("environment: ", root.status().message()));
      return;
    }
    if (const auto other = OtherKindThan("environment", **root, file.shown)) {
      return diagnostics_.Error(line,
                                absl::StrCat("environment: ", file.shown, " is ", other->message));
    }
    Diagnostics inner(file.shown);
    environment_ = EnvironmentReader(context_.Beside(file.path, file.shown), file.shown, inner)
                       .ReadWhole(**root);
    diagnostics_.Add(line, inner);
  }

  void ReadMapping(const YamlNode& node) {
    environment_.is_host = false;
    environment_.name = kUnnamed;
    MappingReader reader(node, "environment", diagnostics_, {"environment", ""});
    std::string unused, image;
    for (const char* key : {"$schema", "version", "description"}) reader.Text(key, unused);
    reader.Take("tags");
    reader.Text("name", environment_.name);
    ReadSystem(reader);
    bool as_of_pins = true;
    reader.Flag("as_of_pins", as_of_pins);
    const YamlNode::Entry* image_entry = reader.Text("image", image);
    const YamlNode::Entry* build = reader.Take("build");
    const YamlNode::Entry* conda = reader.Take("conda_file");
    reader.Finish();
    if (image_entry != nullptr) FollowImage(image, image_entry->line);
    if (build != nullptr) ReadBuild(*build);
    const size_t of_image = environment_.packages.size();
    if (conda != nullptr) ReadConda(*conda);
    DropReplaced(of_image);
    WarnOfSharedFiles(environment_.packages, node.line, diagnostics_);
    environment_.as_of_pins = as_of_pins;
    if (image_entry == nullptr && build == nullptr && conda == nullptr) {
      diagnostics_.Error(node.line, "environment has neither image nor build nor conda_file");
    }
  }

  void ReadSystem(MappingReader& reader) {
    static constexpr std::array<absl::string_view, 2> kSystems = {"linux", "windows"};
    std::string system = "linux";
    const YamlNode::Entry* entry = reader.Choice("os_type", kSystems, system);
    if (system == "windows") diagnostics_.Error(entry->line, "os_type: the nodes run Linux");
  }

  // Returns what the table says of an image; nullptr if nothing, so that it is run as it is.
  const EnvironmentRule* RuleOfImage(absl::string_view image) const {
    absl::string_view curated = image;
    return absl::ConsumePrefix(&curated, kCuratedImages)
               ? Site::FindRule(context_.site.environments, curated.substr(0, curated.find(':')))
               : Site::FindRule(context_.site.images, image);
  }

  void FollowImage(const std::string& image, int line) {
    const EnvironmentRule* rule = RuleOfImage(image);
    const std::string shown = absl::StrCat("image \"", image.substr(0, 120), "\"");
    if (environment_.name == kUnnamed) environment_.name = image;
    if (rule == nullptr) return SetImage(image, line);
    absl::string_view curated = image;
    const std::vector<EnvironmentRule>& environments = context_.site.environments;
    if (absl::ConsumePrefix(&curated, kCuratedImages)) {
      const std::string name = absl::AsciiStrToLower(curated.substr(0, curated.find(':')));
      return Follow(RuleOfFrameworkName(name, *rule, environments), line, shown, image);
    }
    Follow(RuleOfFrameworkImage(image, *rule, environments), line, shown, image);
  }

  void SetImage(const std::string& reference, int line) {
    environment_.is_host = false;
    environment_.image = {reference, "", "", absl::StrCat(shown_, ":", line)};
    if (!IsImageReference(reference)) {
      diagnostics_.Error(line, absl::StrCat("image \"", reference.substr(0, 120),
                                            "\" is no name of an image: write "
                                            "REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:…, the name "
                                            "in lower case"));
      environment_.image = {};
    }
  }

  // `image`: as it was written; "" where a rule of a name is followed.
  void Follow(const EnvironmentRule& rule, int line, const std::string& what,
              const std::string& image = "") {
    if (rule.kind == EnvironmentRule::Kind::kImage) {
      return SetImage(rule.image.empty() ? image : rule.image, line);
    }
    environment_.is_host = rule.kind == EnvironmentRule::Kind::kHost;
    if (rule.kind == EnvironmentRule::Kind::kRefused) {
      diagnostics_.Error(
          line, absl::StrCat(what, " cannot be had here: ", rule.reason, " (", rule.location, ")"));
      return;
    }
    if (!rule.python.empty()) {
      environment_.python = PythonOf(rule, image.empty() ? environment_.name : image);
      environment_.python_place = absl::StrCat(shown_, ":", line);
    }
    // With any other image, Horovod is the package that the table lists for it, and nothing is said
    // of whose it is.
    if (image.empty() || absl::StartsWith(image, kCuratedImages)) curated_line_ = line;
    for (const auto& [name, value] : rule.variables) environment_.variables[name] = value;
    WarnOfVersions(rule, line, what, image.empty() ? "-" : "-:");
    for (const std::string& package : rule.packages) {
      environment_.packages.push_back(RequirementOf(package, rule.location, line, diagnostics_));
    }
    if (!rule.conda_file.empty()) ReadPackagesOf(rule.conda_file, line);
  }

  // "sklearn-1.99", which is newer than the curated names, is the scikit-learn of the day. A
  // version stands after one of `before`.
  void WarnOfVersions(const EnvironmentRule& rule, int line, const std::string& what,
                      absl::string_view before) {
    if (!rule.differs.empty()) {
      diagnostics_.Warning(line, absl::StrCat(what, " is not all that its name says: ",
                                              rule.differs, " (", rule.location, ")"));
    }
    if (!IsInBuiltInTable(rule.location) || rule.packages.empty() || !HasVersion(what, before)) {
      return;
    }
    if (absl::StrContains(rule.packages.front(), "=")) return;
    diagnostics_.Warning(line,
                         absl::StrCat(what, " becomes the newest ", rule.packages.front(),
                                      rule.packages.size() > 1 ? " and what goes with it" : "",
                                      ", not the version of its name (", rule.location,
                                      "); where that matters, give it packages in site.yml"));
  }

  void ReadBuild(const YamlNode::Entry& entry) {
    MappingReader reader(*entry.value, "build", diagnostics_, {"environment", "build."});
    std::string path = ".", name = "Dockerfile";
    reader.Text("path", path);
    reader.Text("dockerfile_path", name);
    reader.Finish();
    if (IsAddress(path)) {
      diagnostics_.Error(entry.line, "build.path must be a local folder");
      return;
    }
    const NamedFile folder = FileBeside(path, context_);
    const NamedFile file{(std::filesystem::path(folder.shown) / name).string(), folder.path / name};
    const auto text = context_.Read(file.path);
    if (!text.ok()) {
      diagnostics_.Error(entry.line, absl::StrCat("build: ", text.status().message()));
      return;
    }
    Diagnostics inner(file.shown);
    Environment installed;
    const ReadContext below = context_.Below(folder.path, folder.shown);
    const Dockerfile found = ReadDockerfile(*text, file, below, installed, inner);
    if (found.image.empty()) {
      inner.Error(1, "has no FROM");
    } else if (IsBuilt(found)) {
      // The whole of it is done, by podman: what could not be followed here does not matter.
      environment_.image = {"", folder.path.string(), name, absl::StrCat(shown_, ":", entry.line),
                            found.needs_build};
      environment_.copied = std::move(installed.copied);
      return;
    } else {
      EnvironmentReader base(below, file.shown, inner);
      base.FollowImage(found.image, found.line);
      if (base.curated_line_ > 0) curated_line_ = entry.line;
      environment_.is_host = base.environment_.is_host;
      environment_.packages = std::move(base.environment_.packages);
      environment_.programs = std::move(base.environment_.programs);
      environment_.variables = std::move(base.environment_.variables);
      if (environment_.python.empty()) {
        environment_.python = base.environment_.python;
        environment_.python_place = base.environment_.python_place;
      }
    }
    const size_t of_image = environment_.packages.size();
    Merge(std::move(installed));
    DropReplaced(of_image);
    diagnostics_.Add(entry.line, inner);
  }

  // Not where packages stand for its image, unless it needs more than tutti's own table knows of.
  bool IsBuilt(const Dockerfile& found) const {
    const EnvironmentRule* rule = RuleOfImage(found.image);
    if (rule == nullptr || rule->kind == EnvironmentRule::Kind::kImage) return true;
    return rule->kind == EnvironmentRule::Kind::kPackages && !found.needs_build.empty() &&
           IsInBuiltInTable(rule->location);
  }

  void Merge(Environment other) {
    if (!other.python.empty()) {
      environment_.python = other.python;
      environment_.python_place = other.python_place;
    }
    if (!other.packages.empty()) environment_.is_host = false;
    std::move(other.packages.begin(), other.packages.end(),
              std::back_inserter(environment_.packages));
    std::move(other.options.begin(), other.options.end(), std::back_inserter(environment_.options));
    std::move(other.programs.begin(), other.programs.end(),
              std::back_inserter(environment_.programs));
    std::move(other.copied.begin(), other.copied.end(), std::back_inserter(environment_.copied));
    for (auto& [name, value] : other.variables) environment_.variables[name] = std::move(value);
  }

  // A file's packages come in place of what the image has: of the first `below` packages those go
  // that the others name as well, or whose files the others have.
  void DropReplaced(size_t below) {
    std::vector<Requirement>& packages = environment_.packages;
    for (size_t i = 0; i < below; ++i) {
      for (size_t asked = below; asked < packages.size() && !packages[i].text.empty(); ++asked) {
        packages[i].text = Beside(packages[asked].text, packages[i].text);
      }
    }
    const auto end = packages.begin() + static_cast<std::ptrdiff_t>(below);
    packages.erase(std::remove_if(packages.begin(), end,
                                  [](const Requirement& package) { return package.text.empty(); }),
                   end);
  }

  void ReadConda(const YamlNode::Entry& entry) {
    environment_.is_host = false;
    if (entry.value->kind == YamlNode::Kind::kScalar) {
      return ReadPackagesOf(entry.value->scalar, entry.line);
    }
    const NamedFile here{shown_, context_.base / "here"};
    ReadCondaMapping(*entry.value, here, context_, environment_, diagnostics_);
  }

  void ReadPackagesOf(absl::string_view path, int line) {
    const NamedFile file = FileBeside(path, context_);
    const auto text = context_.Read(file.path);
    if (!text.ok()) {
      diagnostics_.Error(line, absl::StrCat("conda_file: ", text.status().message()));
      return;
    }
    Diagnostics inner(file.shown);
    const ReadContext below = context_.Beside(file.path, file.shown);
    if (absl::EndsWith(file.shown, ".txt")) {
      ReadRequirements(*text, file, below, environment_, inner);
    } else if (absl::EndsWith(file.shown, ".toml")) {
      ReadPyproject(*text, file, below, environment_, inner);
    } else if (const auto root = ParseYaml(*text, file.shown); !root.ok()) {
      diagnostics_.Error(line, root.status().message());
    } else if (const auto other = OtherKindThan("conda environment", **root, file.shown)) {
      diagnostics_.Error(line, absl::StrCat("conda_file: ", file.shown, " is ", other->message));
    } else {
      ReadCondaMapping(**root, file, below, environment_, inner);
    }
    diagnostics_.Add(line, inner);
  }

  const ReadContext context_;
  const std::string shown_;
  Diagnostics& diagnostics_;
  Environment environment_;
  int curated_line_ = 0;      // which names a curated environment; or 0
  int environment_line_ = 1;  // where the environment is named or begins
};

}  // namespace

Environment ReadEnvironment(const YamlNode::Entry& entry, const ReadContext& context,
                            Diagnostics& diagnostics) {
  Environment environment =
      EnvironmentReader(context, diagnostics.file_name(), diagnostics).Read(entry);
  environment.place = absl::StrCat(diagnostics.file_name(), ":", entry.line);
  return environment;
}

Environment ReadWholeEnvironment(const YamlNode& root, const ReadContext& context,
                                 Diagnostics& diagnostics) {
  return EnvironmentReader(context, diagnostics.file_name(), diagnostics).ReadWhole(root);
}

}  // namespace tutti::spec
