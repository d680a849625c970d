#include "spec/environment/shared_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "spec/environment/python_version.h"
#include "spec/site/requirement.h"

namespace tutti::spec {
namespace {

struct Family {
  std::vector<absl::string_view> names;
  bool is_nested = false;  // each has the files of those behind it; else one stands for another
};

// The families, of which a distribution is in one at most.
const std::vector<Family>& Families() {
  static const auto* const families = new std::vector<Family>{
      {{"mlflow", "mlflow-skinny", "mlflow-tracing"}, true},
      {{"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel"}},
      {{"opencv-python", "opencv-python-headless", "opencv-contrib-python",
        "opencv-contrib-python-headless"}},
      {{"onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-training"}},
      {{"xgboost", "xgboost-cpu"}},
      {{"psycopg2", "psycopg2-binary"}},
      {{"faiss-cpu", "faiss-gpu"}},
  };
  return *families;
}

size_t PlaceIn(const Family& family, absl::string_view name) {
  return static_cast<size_t>(std::find(family.names.begin(), family.names.end(), name) -
                             family.names.begin());
}

// Returns nullptr for a package that shares its files with none.
const Family* FamilyOf(absl::string_view name) {
  const auto found = std::find_if(Families().begin(), Families().end(), [&](const Family& family) {
    return PlaceIn(family, name) < family.names.size();
  });
  return found == Families().end() ? nullptr : &*found;
}

// Whether two pinned versions may be the same: "2.5.*" and "2.5.0".
bool MayAgree(absl::string_view a, absl::string_view b) {
  const auto begin = [](absl::string_view version) {
    while (absl::ConsumeSuffix(&version, ".*") || absl::ConsumeSuffix(&version, ".0")) {
    }
    return absl::StrCat(version, ".");
  };
  const std::string one = begin(a), other = begin(b);
  return one == other || (absl::EndsWith(a, ".*") && absl::StartsWith(other, one)) ||
         (absl::EndsWith(b, ".*") && absl::StartsWith(one, other));
}

bool AllowsMajor(const std::string& versions, int major) {
  for (int minor = 0; minor < 40; ++minor) {
    for (const char* patch : {".0", ".9999"}) {
      if (AllowsVersion(versions, absl::StrCat(major, ".", minor, patch))) return true;
    }
  }
  return false;
}

// Whether a requirement asks for versions before 2 alone.
bool IsBefore2(const std::string& requirement) {
  const std::string pinned = PinnedVersion(requirement), versions = VersionsOf(requirement);
  if (!pinned.empty()) return absl::StartsWith(pinned, "0.") || absl::StartsWith(pinned, "1.");
  return AllowsMajor(versions, 1) && !AllowsMajor(versions, 2);
}

// Whether a requirement holds PyTorch below version 2, whose wheels are compiled against numpy 1
// and fail beside numpy 2. A file that says the last numpy itself is not corrected.
bool NeedsNumpy1(const std::vector<std::string>& requirements) {
  bool has_old_torch = false;
  for (const std::string& requirement : requirements) {
    const std::string name = PackageName(requirement);
    const std::string versions = VersionsOf(requirement);
    if (versions.empty()) continue;
    const bool is_open = AllowsVersion(versions, "99.0") && AllowsVersion(versions, "1.26.4");
    if (name == "numpy" && !is_open) return false;
    has_old_torch |= name == "torch" && IsBefore2(requirement);
  }
  return has_old_torch;
}

}  // namespace

std::vector<std::string> ConstraintsOf(const std::vector<std::string>& requirements) {
  std::map<const Family*, std::string> held;  // the requirement that holds each family
  std::set<std::string> pinned;
  for (const std::string& requirement : requirements) {
    const std::string name = PackageName(requirement);
    const Family* const family = FamilyOf(name);
    if (family == nullptr || VersionsOf(requirement).empty()) continue;
    const bool is_pinned = !PinnedVersion(requirement).empty();
    if (is_pinned) pinned.insert(name);
    const auto [holder, is_first] = held.try_emplace(family, requirement);
    const bool is_stronger = is_pinned && PinnedVersion(holder->second).empty();
    if (!is_first && is_stronger) holder->second = requirement;
  }
  std::vector<std::string> constraints;
  for (const Family& family : Families()) {
    const auto holder = held.find(&family);
    if (holder == held.end()) continue;
    for (const absl::string_view name : family.names) {
      if (name == PackageName(holder->second) || pinned.contains(std::string(name))) continue;
      constraints.push_back(absl::StrCat(name, VersionsOf(holder->second)));
    }
  }
  if (NeedsNumpy1(requirements)) constraints.emplace_back("numpy<2");
  return constraints;
}

std::string Beside(absl::string_view asked, const std::string& requirement) {
  const std::string name = PackageName(requirement), other = PackageName(asked);
  if (name == other) return "";
  const Family* const family = FamilyOf(name);
  if (family == nullptr || family != FamilyOf(other)) return requirement;
  if (!family->is_nested || PlaceIn(*family, other) < PlaceIn(*family, name)) return "";
  const std::string versions = VersionsOf(asked);
  return versions.empty() ? requirement : absl::StrCat(name, versions);
}

void WarnOfSharedFiles(const std::vector<Requirement>& packages, int line,
                       Diagnostics& diagnostics) {
  std::map<const Family*, const Requirement*> pinned;  // the first of each family
  for (const Requirement& package : packages) {
    const Family* const family = FamilyOf(PackageName(package.text));
    if (family == nullptr || PinnedVersion(package.text).empty()) continue;
    const Requirement*& first = pinned[family];
    if (first == nullptr) {
      first = &package;
    } else if (!MayAgree(PinnedVersion(first->text), PinnedVersion(package.text))) {
      diagnostics.Warning(
          line, absl::StrCat(first->text, " (", first->location, ") and ", package.text, " (",
                             package.location, ") install the same files in different versions: ",
                             "ask for one of them, or for both in one version"));
    }
  }
}

}  // namespace tutti::spec
