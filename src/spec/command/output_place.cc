#include "spec/command/output_place.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/data/percent.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kKept =
    "outputs are kept with the job; `tutti job download` fetches them";

// "file:/a/b", "file:///a/b": a folder or file of the nodes.
absl::StatusOr<DataPlace> OfFile(absl::string_view written) {
  absl::string_view path = written.substr(5);
  if (absl::ConsumePrefix(&path, "//")) absl::ConsumePrefix(&path, "localhost");
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  DataPlace place{.path = PercentDecoded(path)};
  if (!absl::StartsWith(place.path, "/") || absl::StrContains(place.path, '\0')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ShownAddress(written), "\" names no absolute path: write file:///FOLDER"));
  }
  for (const absl::string_view part : absl::StrSplit(place.path, '/')) {
    if (part == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", ShownAddress(written), "\" has \"..\": write the path without it"));
    }
  }
  return place;
}

// Why nothing can be written there, with what to do; "" if it can.
std::string WhyNotWritten(const DataPlace& place, absl::string_view type) {
  if (place.is_pattern) {
    return "is a pattern, and what is written is one folder or file: name it without \"*\" and "
           "\"?\"";
  }
  if (place.kind == StoreKind::kGcs && place.credential == CredentialKind::kNone) {
    return "is in Google's storage, of which there is no datastore with credentials: make one of "
           "type gcs with an HMAC key (tutti datastore create --file FILE)";
  }
  if (place.kind == StoreKind::kAzureFile && place.credential == CredentialKind::kNone) {
    return "is a share of Azure Files, of which there is no datastore with credentials: make one "
           "of "
           "type azure_file with account_key or sas_token (tutti datastore create --file FILE)";
  }
  if (place.kind == StoreKind::kNfs) {
    return "is on a file server, which is read alone this way: mount it on every node and name the "
           "folder, as file:/FOLDER";
  }
  const bool has_name = !place.path.empty() && place.path.back() != '/';
  if (type == "uri_file" && !has_name) {
    return "names all of a container, and the output is a file (type: uri_file): add the file's "
           "name";
  }
  return "";
}

// The expressions of Azure ML that may stand in it: what they are at submission is put in place.
std::string WithName(const std::string& written, const std::string& name) {
  return ReplaceExpressions(written, [&](absl::string_view body) -> std::optional<std::string> {
    if (body == "output_name") return name;
    if (body == "name") return std::string(kOwnName);
    return std::nullopt;
  });
}

}  // namespace

void NameFileByPlace(Output& output) {
  if (output.type != "uri_file" || !output.place) return;
  const std::string& path = output.place->path;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!name.empty()) output.file = name;
}

absl::StatusOr<std::optional<DataPlace>> PlaceToWrite(const std::string& written, const Site& site,
                                                      absl::string_view type,
                                                      absl::string_view known) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", ShownAddress(written), "\" ", why));
  };
  const Datastores& datastores = site.datastores;
  absl::StatusOr<std::optional<DataPlace>> found = std::nullopt;
  if (absl::StartsWith(written, "file:")) {
    found = OfFile(written);
  } else {
    found = PlaceOf(written, datastores);
  }
  if (!found.ok()) return found;
  if (!found->has_value()) {
    const bool is_store = PlaceOf(written.substr(0, written.find('?')), datastores)
                              .value_or(std::nullopt)
                              .has_value();
    if (!is_store) return found;
    return wrong(
        "has a query, such as a signature, which would be kept with the "
        "job: give it to a datastore as its sas_token, and leave it out "
        "here (tutti datastore create --file FILE)");
  }
  const DataPlace& place = **found;
  if (absl::StrContains(absl::StrReplaceAll(place.path, {{kOwnName, ""}}), "${{")) {
    return wrong(absl::StrCat("has an expression that is not known here: a path may have ", known));
  }
  if (place.kind != StoreKind::kLocal && place.credential == CredentialKind::kNone) {
    const auto folder = site.data.Find(written);
    if (folder.ok()) return DataPlace{.path = *folder};
  }
  if (const std::string why = WhyNotWritten(place, type); !why.empty()) return wrong(why);
  return found;
}

void TakeOutputPlace(const std::string& name, const YamlNode::Entry& path,
                     const ReadContext& context, Output& output, Diagnostics& diagnostics) {
  const std::string written = WithName(path.value->scalar, name);
  const auto no_effect = [&](absl::string_view why) {
    diagnostics.Warning(path.line, absl::StrCat("\"path\" has no effect: ", why));
  };
  const std::string known = absl::StrCat(kOwnName, " and ${{output_name}}");
  auto found = PlaceToWrite(written, context.site, output.type, known);
  if (absl::IsNotFound(found.status())) {
    return no_effect(absl::StrCat(found.status().message(), ", so the output is kept with the ",
                                  "job alone; to have it brought there make the datastore known ",
                                  "by its file: tutti datastore create --file FILE"));
  }
  if (!found.ok()) {
    return diagnostics.Error(
        path.line, absl::StrCat("output \"", name, "\": path ", found.status().message()));
  }
  if (!found->has_value()) return no_effect(kKept);
  output.place = **std::move(found);
  output.location = {diagnostics.file_name(), path.line};
  NameFileByPlace(output);
}

}  // namespace tutti::spec
