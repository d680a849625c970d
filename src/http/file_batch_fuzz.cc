// Reads any bytes as a batch of files, which is read or refused; what was read makes the same batch
// again.
#include <cstdint>
#include <cstdlib>

#include "http/file_batch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view body(reinterpret_cast<const char*>(data), size);
  const auto files = tutti::http::FilesOfBatch(body);
  if (!files.ok()) return 0;
  std::string again;
  for (const tutti::http::BatchFile& file : *files) {
    tutti::http::AppendToBatch(file.name, file.bytes, again);
  }
  const auto same = tutti::http::FilesOfBatch(again);
  if (!same.ok() || same->size() != files->size()) std::abort();
  return 0;
}
