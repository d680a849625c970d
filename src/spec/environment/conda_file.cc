// ReadCondaMapping of package_files.h.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/environment/package_files.h"
#include "spec/environment/python_version.h"
#include "spec/site/requirement.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {
namespace {

// In the table, before what a package is instead of a name on PyPI.
constexpr absl::string_view kRefusedPackage = "refused:";
constexpr absl::string_view kProgram = "program:";

// One of conda's match specifications, "channel::name=1.2=build", taken apart.
struct CondaPackage {
  std::string name;     // lower case
  std::string version;  // with its operators, blanks removed: "=1.2", ">=1,<2"; may be empty
};

bool IsPackageName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

CondaPackage Parse(absl::string_view text) {
  if (const size_t channel = text.find("::"); channel != absl::string_view::npos) {
    text = text.substr(channel + 2);
  }
  text = absl::StripAsciiWhitespace(text.substr(0, text.find('[')));
  const size_t end = std::min(text.find_first_of(" =<>!~"), text.size());
  CondaPackage package{.name = absl::AsciiStrToLower(text.substr(0, end)), .version = ""};
  absl::string_view version = absl::StripAsciiWhitespace(text.substr(end));
  const bool has_operator = !version.empty() && absl::StrContains("=<>!~", version[0]);
  if (!has_operator && !version.empty()) package.version.push_back('=');  // "numpy 1.21"
  for (const char c : version) {
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) package.version += c;
  }
  return package;
}

// One comparison as pip writes it: "=1.2" is 1.2 and its patches, as is "=1.2.*"; "=1.2=build" and
// "==1.2" are 1.2 alone.
std::string PipClause(absl::string_view clause) {
  if (!absl::StartsWith(clause, "=")) return std::string(clause);
  const bool exact = absl::ConsumePrefix(&clause, "==");
  if (!exact) clause.remove_prefix(1);
  const size_t build = clause.find('=');
  const bool has_build = build != absl::string_view::npos;
  absl::string_view version = clause.substr(0, build);
  if (version == "*" || version.empty()) return "";
  if (exact || has_build) return absl::StrCat("==", version);
  absl::ConsumeSuffix(&version, ".*");
  absl::ConsumeSuffix(&version, "*");
  return absl::StrCat("==", version, ".*");
}

std::string PipVersion(absl::string_view version) {
  std::string pip;
  for (const absl::string_view clause : absl::StrSplit(version, ',', absl::SkipEmpty())) {
    const std::string part = PipClause(clause);
    if (!part.empty()) absl::StrAppend(&pip, pip.empty() ? "" : ",", part);
  }
  return pip;
}

bool IsMpi(absl::string_view name) {
  return name == "openmpi" || name == "mpich" || name == "impi-rt";
}

// Returns the major version: 3 for "=3.1.2" and "==3.*"; -1 if `version` is not a single version.
int MajorOf(absl::string_view version) {
  int major = 0;
  if (!absl::ConsumePrefix(&version, "=")) return -1;
  absl::ConsumePrefix(&version, "=");
  return absl::SimpleAtoi(version.substr(0, version.find_first_of(".=*,")), &major) ? major : -1;
}

// Returns pip's version for an MPI from conda; "" if it may be any. "=4.1.4" allows any 4.x: PyPI
// has few releases of an MPI, programs cannot tell them apart, and Open MPI on PyPI begins with 4.
std::string MpiVersion(absl::string_view name, absl::string_view version) {
  if (!absl::StartsWith(version, "=")) return PipVersion(version);
  const int major = MajorOf(version);
  if (major < 0) return "";
  return absl::StrCat("==", name == "openmpi" ? std::max(major, 4) : major, ".*");
}

class CondaReader {
 public:
  CondaReader(const NamedFile& file, const ReadContext& context, Environment& environment,
              Diagnostics& diagnostics)
      : file_(file), context_(context), environment_(environment), diagnostics_(diagnostics) {}

  void Read(const YamlNode& root) {
    MappingReader reader(root, "a conda file", diagnostics_);
    for (const char* key : {"name", "channels", "prefix"}) reader.Take(key);
    ReadVariables(reader);
    const YamlNode::Entry* dependencies = reader.Take("dependencies");
    reader.Finish();
    if (dependencies == nullptr) return;
    if (dependencies->value->kind != YamlNode::Kind::kSequence) {
      diagnostics_.Error(dependencies->line, "dependencies must be a list");
      return;
    }
    for (const auto& item : dependencies->value->items) ReadItem(*item);
  }

  void ReadPackage(absl::string_view text, int line) {
    const CondaPackage package = Parse(text);
    if (package.name == "python") {
      environment_.python = PythonOfConda(package.version);
      environment_.python_place = absl::StrCat(file_.shown, ":", line);
      return;
    }
    if (package.name == "pip" || absl::StartsWith(package.name, "_")) return;
    if (!IsPackageName(package.name)) {
      diagnostics_.Error(line, absl::StrCat("\"", text.substr(0, 80), "\" names no package"));
      return;
    }
    if (!absl::StartsWith(package.name, "r-") || package.name == "r-base") {
      return Add(package, line);
    }
    diagnostics_.Error(line, absl::StrCat("\"", text.substr(0, 80),
                                          "\" cannot be had: R's packages are not on PyPI"));
  }

 private:
  void ReadVariables(MappingReader& reader) {
    std::map<std::string, std::string> texts;
    reader.TextMap("variables", texts);
    const YamlNode::Entry* section = reader.Take("variables");
    if (section == nullptr) return;
    for (const YamlNode::Entry& entry : section->value->entries) {
      const auto text = texts.find(entry.key);
      if (text == texts.end()) continue;  // an error by now
      SetVariable(absl::StrCat("variables: ", entry.key.substr(0, 80)), entry.key, text->second,
                  entry.line, environment_, diagnostics_);
    }
  }

  void ReadItem(const YamlNode& item) {
    if (item.kind == YamlNode::Kind::kScalar) return ReadPackage(item.scalar, item.line);
    for (const YamlNode::Entry& entry : item.entries) {
      if (entry.key != "pip" || (entry.value->kind != YamlNode::Kind::kSequence &&
                                 entry.value->kind != YamlNode::Kind::kNull)) {
        diagnostics_.Error(entry.line, "below dependencies only `pip:` with a list may stand");
        continue;
      }
      for (const auto& line : entry.value->items) {
        if (line->kind != YamlNode::Kind::kScalar) {
          diagnostics_.Error(line->line, "what pip is to install must be text");
          continue;
        }
        ReadPipLine(line->scalar, line->line, file_, context_, environment_, diagnostics_);
      }
    }
    if (item.kind != YamlNode::Kind::kMapping) {
      diagnostics_.Error(item.line, "a dependency must be text");
    }
  }

  // Notes which of PyTorch's builds conda chooses by `name`. A file that names both kinds means the
  // CPU's.
  void NoteTorch(absl::string_view name) {
    if (name == "cpuonly" || name == "pytorch-cpu" || name == "torchvision-cpu") {
      environment_.torch = "cpu";
    } else if (environment_.torch.empty() &&
               (name == "cudatoolkit" || name == "pytorch-cuda" || name == "pytorch-gpu")) {
      environment_.torch = "gpu";
    }
  }

  void Add(const CondaPackage& package, int line) {
    NoteTorch(package.name);
    const auto found = context_.site.conda_packages.find(package.name);
    const std::string name =
        found == context_.site.conda_packages.end() ? package.name : found->second;
    if (name.empty()) return;
    if (absl::StartsWith(name, kRefusedPackage)) {
      diagnostics_.Error(
          line, absl::StrCat("\"", package.name.substr(0, 80), "\" cannot be had: ",
                             absl::StripAsciiWhitespace(name.substr(kRefusedPackage.size()))));
      return;
    }
    std::string location = absl::StrCat(file_.shown, ":", line);
    if (absl::string_view program = name; absl::ConsumePrefix(&program, kProgram)) {
      environment_.programs.push_back(
          {std::string(absl::StripAsciiWhitespace(program)), package.name, location});
      return;
    }
    const std::string version =
        IsMpi(name) ? MpiVersion(name, package.version) : PipVersion(package.version);
    if (IsMpi(name) && MajorOf(version) != MajorOf(package.version)) {
      diagnostics_.Warning(line, absl::StrCat(package.name, package.version, " becomes ", name,
                                              version, ", the oldest that PyPI has"));
    }
    environment_.packages.push_back(
        RequirementOf(absl::StrCat(name, version), std::move(location), line, diagnostics_));
  }

  const NamedFile& file_;
  const ReadContext& context_;
  Environment& environment_;
  Diagnostics& diagnostics_;
};

}  // namespace

void ReadCondaMapping(const YamlNode& root, const NamedFile& file, const ReadContext& context,
                      Environment& environment, Diagnostics& diagnostics) {
  CondaReader(file, context, environment, diagnostics).Read(root);
}

void ReadCondaPackage(absl::string_view text, int line, const NamedFile& file,
                      const ReadContext& context, Environment& environment,
                      Diagnostics& diagnostics) {
  CondaReader(file, context, environment, diagnostics).ReadPackage(text, line);
}

}  // namespace tutti::spec
