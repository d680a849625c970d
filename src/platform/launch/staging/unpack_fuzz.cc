// Whatever the archive, nothing appears outside of the folder it is unpacked to.
#include <fcntl.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "base/file.h"
#include "platform/code/code_archive.h"
#include "platform/launch/staging/unpack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::base::TemporaryDirectory top("tutti-fuzz");
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto name = tutti::code::SafeRelativePath(bytes.substr(0, 200));
  if (name.ok() &&
      (absl::StrContains("/" + *name + "/", "/../") || (!name->empty() && name->front() == '/'))) {
    std::abort();
  }
  const auto room = top.path() / "room";
  const auto folder = room / "a" / "b" / "work";
  {
    const auto archive = tutti::base::Open(top.path() / "archive", O_WRONLY | O_CREAT | O_TRUNC);
    if (!archive.ok() || !tutti::base::WriteAll(archive->get(), bytes, "archive").ok()) return 0;
  }
  tutti::launch::UnpackArchive(top.path() / "archive", folder).IgnoreError();
  // room/a/b/work is all that may be there.
  size_t entries = 0;
  for (const auto& parent : {room, room / "a", room / "a" / "b"}) {
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(parent))
      ++entries;
  }
  if (entries != 3) std::abort();
  tutti::base::RemoveTree(room).IgnoreError();
  return 0;
}
