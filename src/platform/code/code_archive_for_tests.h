// Makes a tar archive, compressed by zstd, of any entries, also of hostile ones, for tests.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::code {

struct TestEntry {
  std::string name;
  std::string content = "";  // or the link's target
  int type = AE_IFREG;
  bool hard_link = false;
};

class TestArchive {
 public:
  explicit TestArchive(const std::vector<TestEntry>& entries) : bytes_(1 << 20, '\0') {
    archive* writer = archive_write_new();
    archive_write_add_filter_zstd(writer);
    archive_write_set_format_pax_restricted(writer);
    archive_write_set_bytes_in_last_block(writer, 1);
    size_t used = 0;
    archive_write_open_memory(writer, bytes_.data(), bytes_.size(), &used);
    for (const TestEntry& entry : entries) Add(writer, entry);
    archive_write_close(writer);
    archive_write_free(writer);
    bytes_.resize(used);
  }
  const std::string& bytes() const { return bytes_; }
  std::string hash() const { return absl::StrCat("sha256:", base::Hex(base::Sha256Of(bytes_))); }

 private:
  static void Add(archive* writer, const TestEntry& entry) {
    archive_entry* header = archive_entry_new();
    archive_entry_set_pathname(header, entry.name.c_str());
    archive_entry_set_filetype(header, static_cast<unsigned>(entry.type));
    archive_entry_set_perm(header, 0644);
    const bool has_content = entry.type == AE_IFREG && !entry.hard_link;
    if (has_content) archive_entry_set_size(header, static_cast<la_int64_t>(entry.content.size()));
    if (entry.type == AE_IFLNK) archive_entry_set_symlink(header, entry.content.c_str());
    if (entry.hard_link) archive_entry_set_hardlink(header, entry.content.c_str());
    archive_write_header(writer, header);
    if (has_content) archive_write_data(writer, entry.content.data(), entry.content.size());
    archive_entry_free(header);
  }

  std::string bytes_;
};

// Bytes that do not pack.
inline std::string RandomBytes(size_t count) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same ones each time
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(random());
  return bytes;
}

}  // namespace tutti::code
