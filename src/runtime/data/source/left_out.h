// Says in a sentence what of a set's files gives no sample, so that none is missing without a word.
// Pure functions.
#pragma once

#include <string>
#include <vector>

namespace tutti::data {

// Returns "2 files hold no sample: train-000003.tar, train-000007.tar", of many the first few;
// nothing of none.
std::vector<std::string> FilesWithoutSample(const std::vector<std::string>& names);

}  // namespace tutti::data
