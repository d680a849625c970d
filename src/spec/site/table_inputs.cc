#include "spec/site/table_inputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/path_pattern.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/data/percent.h"
#include "spec/site/data_finder.h"
#include "spec/text/diagnostics.h"

namespace tutti::spec {
namespace {

using base::Wildcards;
using PathKind = TablePath::Kind;
using Parts = std::vector<std::string>;  // of a path

Parts ComponentsOf(absl::string_view path) { return absl::StrSplit(path, '/', absl::SkipEmpty()); }

absl::Status Refused(absl::string_view why) { return absl::InvalidArgumentError(why); }

// The path below `folder` that a relative one names, without "." and "..". InvalidArgument if it
// leads out of what `folder` is relative to.
absl::StatusOr<std::string> Below(absl::string_view folder, absl::string_view relative) {
  Parts parts = ComponentsOf(folder);
  for (const absl::string_view part : absl::StrSplit(relative, '/', absl::SkipEmpty())) {
    if (part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (parts.empty()) {
      return Refused("leads out of the container that the table lies in");
    } else {
      parts.pop_back();
    }
  }
  return absl::StrJoin(parts, "/");
}

bool HasEncodedWildcard(absl::string_view text) {
  for (const char* encoded : {"%2A", "%2a", "%3F", "%3f", "%5B", "%5b"}) {
    if (absl::StrContains(text, encoded)) return true;
  }
  return false;
}

// A path as it is written, by the folder that all it names lies in, and of a pattern the rest.
struct Split {
  std::string folder;  // of a file or a folder: itself
  std::string pattern;
};

absl::StatusOr<Split> SplitPath(const TablePath& path) {
  if (path.kind != PathKind::kPattern) return Split{path.text, ""};
  const std::string& text = path.text;
  std::string folder = base::FolderOfPattern(text, Wildcards::kClasses);
  const bool has_slash = !folder.empty() || absl::StartsWith(text, "/");
  Parts parts;
  for (std::string& part : ComponentsOf(absl::string_view(text).substr(folder.size()))) {
    if (part == "..") return Refused("has \"..\" behind a wildcard");
    if (part != ".") parts.push_back(std::move(part));
  }
  if (parts.empty() || absl::EndsWith(text, "/")) return Refused("names no file");
  std::string pattern = absl::StrJoin(parts, "/");
  if (IsUrl(text)) pattern = PercentDecoded(pattern);
  return Split{folder.empty() && has_slash ? "/" : folder, pattern};
}

// Where an input lies: its store and, of a file, its folder and name, else the folder that its
// files are relative to.
struct Lies {
  std::string store;
  std::string label;  // for people; not unique
  Parts folder;
  std::string file;
  std::string query;  // of an address by https
};

class PathReader {
 public:
  PathReader(const Input& table, const Site& site) : table_(table), site_(site) {}

  absl::StatusOr<Input> Read(const TablePath& path) const {
    TUTTI_RETURN_IF_ERROR(CheckText(path));
    TUTTI_RETURN_IF_ERROR(SplitPath(path).status());
    Input input{.type = path.kind == PathKind::kFile ? "uri_file" : "uri_folder"};
    if (IsAddress(path.text)) {
      TUTTI_RETURN_IF_ERROR(FindAddress(path, input));
    } else if (table_.place) {
      TUTTI_RETURN_IF_ERROR(FindBeside(path, input));
    } else {
      TUTTI_ASSIGN_OR_RETURN(Split split, SplitPath(path));
      TUTTI_ASSIGN_OR_RETURN(input.path, LocalPath(split.folder, table_.path));
      input.pattern = std::move(split.pattern);
    }
    return input;
  }

 private:
  static absl::Status CheckText(const TablePath& path) {
    const bool is_pattern = path.kind == PathKind::kPattern;
    if (HasUser(path.text)) return Refused("has a user or a password");
    if (!is_pattern && base::HasWildcard(WithoutQuery(path.text))) {
      return Refused(absl::StrCat("has a wildcard: write \"pattern:\" in place of \"",
                                  Name(path.kind), ":\""));
    }
    if (!is_pattern || !IsUrl(path.text)) return absl::OkStatus();
    if (HasEncodedWildcard(path.text)) {
      return Refused("has an encoded wildcard, which no pattern can say: name a folder");
    }
    if (absl::StrContains(path.text, '?')) {
      return Refused(
          "has a \"?\", by which the query of an address begins: write \"*\" or \"[a-z]\"");
    }
    return absl::OkStatus();
  }

  absl::Status TakePlace(const TablePath& path, DataPlace place, Input& input) const {
    place.is_pattern = place.has_classes = path.kind == PathKind::kPattern;
    if (place.path.empty() && path.kind != PathKind::kFolder) return Refused("names no file");
    for (const absl::string_view part : absl::StrSplit(place.path, '/')) {
      if (part.empty() && !place.path.empty()) return Refused("has an empty component");
      if (part == "." || part == "..") return Refused("has a component \".\" or \"..\"");
    }
    input.place = std::move(place);
    return absl::OkStatus();
  }

  // Relative to a table in a store.
  absl::Status FindBeside(const TablePath& path, Input& input) const {
    if (absl::StartsWith(path.text, "/") || absl::StartsWithIgnoreCase(path.text, "file:")) {
      return Refused("is a path of a machine, and the table lies in a store");
    }
    DataPlace place = *table_.place;
    if (path.kind == PathKind::kPattern && base::HasWildcard(place.path, Wildcards::kClasses)) {
      return Refused("is a pattern below a folder that has a wildcard in its name");
    }
    TUTTI_ASSIGN_OR_RETURN(place.path, Below(place.path, path.text));
    return TakePlace(path, std::move(place), input);
  }

  // A data asset, a copy here, an earlier job's output, what a store has, or a file behind https.
  absl::Status FindAddress(TablePath path, Input& input) const {
    TUTTI_ASSIGN_OR_RETURN(Split split, SplitPath(path));
    TUTTI_ASSIGN_OR_RETURN(const NamedData named, ResolveAsset(split.folder, site_));
    if (named.address != split.folder) {
      path.text =
          split.pattern.empty() ? named.address : absl::StrCat(named.address, "/", split.pattern);
      split.folder = named.address;
    }
    auto here = FindHere(split.folder, input.type, table_.path, site_);
    if (here.ok()) {
      input.path = std::move(here->path);
      input.job_folder = std::move(here->job_folder);
      input.pattern = split.pattern;
      return absl::OkStatus();
    }
    if (!absl::IsNotFound(here.status())) return here.status();
    TUTTI_ASSIGN_OR_RETURN(auto place, PlaceOf(path.text, site_.datastores));
    if (place) return TakePlace(path, *std::move(place), input);
    input.path = WebAddress(path.text);
    if (!input.path.empty() && path.kind == PathKind::kFile) return absl::OkStatus();
    return Refused(input.path.empty()
                       ? absl::StrCat("is not on this machine; ", AdviceToMap(path.text))
                       : "names more than one file of a server that cannot list them");
  }

  const Input& table_;
  const Site& site_;
};

Lies LiesIn(const Input& input) {
  Lies lies;
  std::string path = input.path;
  const bool is_web = absl::StrContains(input.path, "://");
  if (input.place) {
    const DataPlace& place = *input.place;
    lies.store = StoreOf(place);
    lies.label = place.datastore.empty() ? place.container : place.datastore;
    path = place.is_pattern ? base::FolderOfPattern(place.path, Wildcards::kClasses) : place.path;
  } else if (is_web) {
    const std::string address = WithoutQuery(input.path);
    const size_t host = address.find("://") + 3, end = EndOfServer(address);
    lies.store = address.substr(0, end);
    lies.label = absl::StrReplaceAll(address.substr(host, end - host), {{":", "_"}});
    lies.query = input.path.substr(address.size());
    path = PercentDecoded(address.substr(end));
  } else {
    lies.store = lies.label = "local";
  }
  lies.folder = ComponentsOf(path);
  if (input.type == "uri_file" && !lies.folder.empty()) {
    lies.file = std::move(lies.folder.back());
    lies.folder.pop_back();
  }
  return lies;
}

size_t InCommon(const Parts& a, const Parts& b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

// Holds what one store has of the table.
struct OfStore {
  std::string label;
  const Parts* first = nullptr;
  size_t in_common = 0;  // of the folders, at their beginnings
};

// No two have the same name.
void NameStores(std::map<std::string, OfStore>& stores) {
  std::set<std::string> taken;
  for (auto& [key, store] : stores) {
    const bool is_name = !store.label.empty() && store.label != "." && store.label != ".." &&
                         !absl::StrContains(store.label, '/');
    const std::string label = is_name ? store.label : "store";
    store.label = label;
    for (int i = 2; !taken.insert(store.label).second; ++i)
      store.label = absl::StrCat(label, "-", i);
  }
}

// Two addresses that differ in their queries alone may be of two files, as if of two stores.
void TellQueriesApart(std::vector<Lies>& all) {
  std::map<std::string, std::set<std::string>> queries;
  const auto file_of = [](const Lies& lies) {
    return absl::StrCat(lies.store, "/", absl::StrJoin(lies.folder, "/"), "/", lies.file);
  };
  for (const Lies& lies : all) queries[file_of(lies)].insert(lies.query);
  for (Lies& lies : all) {
    if (queries[file_of(lies)].size() > 1) absl::StrAppend(&lies.store, lies.query);
  }
}

void PlaceAll(std::vector<Input>& inputs) {
  std::vector<Lies> all;
  for (const Input& input : inputs) all.push_back(LiesIn(input));
  TellQueriesApart(all);
  std::map<std::string, OfStore> stores;
  for (const Lies& lies : all) {
    OfStore& store = stores[lies.store];
    const bool is_first = store.first == nullptr;
    store.in_common = is_first ? lies.folder.size()
                               : std::min(store.in_common, InCommon(*store.first, lies.folder));
    if (!is_first) continue;
    store.first = &lies.folder;
    store.label = lies.label;
  }
  NameStores(stores);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OfStore& store = stores.at(all[i].store);
    Parts parts = std::move(all[i].folder);
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(store.in_common));
    if (stores.size() > 1) parts.insert(parts.begin(), store.label);
    if (!all[i].file.empty()) parts.push_back(all[i].file);
    inputs[i].placed = absl::StrJoin(parts, "/");
  }
}

// As a file or folder of the job's can be called.
absl::Status CheckPlaced(const Input& input) {
  for (const absl::string_view part : absl::StrSplit(input.placed, '/', absl::SkipEmpty())) {
    if (part == "." || part == ".." || part.size() > 255 || absl::StrContains(part, '\0')) {
      return Refused("has a name that no file can have");
    }
  }
  if (input.type == "uri_file" && input.placed.empty()) return Refused("names no file");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Input>> TableInputs(const std::vector<TablePath>& paths,
                                               const Input& table, const Site& site,
                                               absl::string_view file_name) {
  Diagnostics diagnostics(file_name);
  const auto refuse = [&](const TablePath& path, const absl::Status& why) {
    diagnostics.Error(path.line, absl::StrCat(Name(path.kind), ": \"", ShownAddress(path.text),
                                              "\" ", why.message()));
  };
  std::vector<Input> inputs;
  const PathReader reader(table, site);
  for (const TablePath& path : paths) {
    auto input = reader.Read(path);
    if (!input.ok()) refuse(path, input.status());
    if (input.ok()) inputs.push_back(*std::move(input));
  }
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  PlaceAll(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const absl::Status fits = CheckPlaced(inputs[i]); !fits.ok()) refuse(paths[i], fits);
  }
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return inputs;
}

}  // namespace tutti::spec
