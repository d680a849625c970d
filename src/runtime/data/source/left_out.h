// Says in a sentence what of a set's files gives no sample, so that none is missing without a word.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::data {

// Counts files that are no images by the endings of their names.
class LeftOutFiles {
 public:
  void Add(absl::string_view path);
  // Returns "3 files give no sample: 2 .gif (cat/a.gif, …), 1 without an ending (README); images
  // end in .jpg, …"; nothing of none.
  std::vector<std::string> Remarks() const;

 private:
  struct Kind {
    int64_t count = 0;
    std::string first;  // in the order of names
  };
  std::map<std::string, Kind> kinds_;  // by ending: ".gif", "without an ending"
};

// Returns "2 files lie beside the folders of classes, and give no sample: a.jpg, b.jpg"; of many
// the first few; nothing of none.
std::vector<std::string> FilesBesideClasses(const std::vector<std::string>& names);

// Returns "2 files hold no sample: train-000003.tar, train-000007.tar", of many the first few;
// nothing of none.
std::vector<std::string> FilesWithoutSample(const std::vector<std::string>& names);

}  // namespace tutti::data
