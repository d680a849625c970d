// ReadContext is what a reader of job files needs beside the text: the folder that paths count
// from, the site, and a function that reads other files. Inside the room spec only.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "spec/site/site.h"
#include "spec/types/read_file.h"

namespace tutti::spec {

inline constexpr int kMostFiles = 512;  // that a file and those it names bring in

struct ReadContext {
  std::filesystem::path base;  // absolute: relative paths count from it
  const Site& site;
  const ReadFileFunction& read_file;
  int& files_left;                        // how many more may be read: files may name each other
  std::filesystem::path shown_base = {};  // base as messages name it

  // Returns the folder from which paths of data count: data stay where they are, also those of a
  // file that is kept elsewhere under a name.
  const std::filesystem::path& data_base() const {
    return shown_base.is_absolute() ? shown_base : base;
  }

  // Reads the content of a file that the text names.
  absl::StatusOr<std::string> Read(const std::filesystem::path& file) const {
    if (--files_left < 0) return absl::ResourceExhaustedError("too many files are named");
    return read_file(file);
  }
  ReadContext Below(std::filesystem::path folder, std::filesystem::path shown) const {
    return {std::move(folder), site, read_file, files_left, std::move(shown)};
  }
  // Returns the context for files beside `file`, which messages call `shown`.
  ReadContext Beside(const std::filesystem::path& file, const std::string& shown) const {
    const bool by_name = absl::StartsWith(shown, "azureml:");  // it says nothing of the folder
    const std::filesystem::path folder = file.parent_path();
    return Below(folder, by_name ? AsGiven(folder, shown.substr(8))
                                 : std::filesystem::path(shown).parent_path());
  }

 private:
  // Returns the folder as the user gave it: one that is kept for "NAME:VERSION" lies in
  // assets/KIND/NAME/VERSION/ under the path that it had when the user gave it, which is what
  // messages call it.
  static std::filesystem::path AsGiven(const std::filesystem::path& folder,
                                       const std::string& asset) {
    const std::string version = absl::StrReplaceAll(asset, {{":", "/"}});
    for (const char* kind : {"component", "environment"}) {
      const std::string kept = absl::StrCat("/assets/", kind, "/", version, "/");
      const size_t found = folder.native().find(kept);
      if (found != std::string::npos) return folder.native().substr(found + kept.size() - 1);
    }
    return folder;
  }
};

}  // namespace tutti::spec
