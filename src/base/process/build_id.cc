#include "base/process/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace tutti::base {
namespace {

constexpr size_t Padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

// Finds the note of that kind among those of a segment: each is a head, the name of who defines it
// and what it says, both padded.
absl::string_view BuildIdAmong(absl::string_view notes) {
  constexpr absl::string_view kOfGnu("GNU\0", 4);
  ElfW(Nhdr) head;
  while (notes.size() >= sizeof(head)) {
    std::memcpy(&head, notes.data(), sizeof(head));
    notes.remove_prefix(sizeof(head));
    const size_t name = Padded(head.n_namesz), text = Padded(head.n_descsz);
    if (notes.size() < name + text) break;
    if (head.n_type == NT_GNU_BUILD_ID && notes.substr(0, head.n_namesz) == kOfGnu) {
      return notes.substr(name, head.n_descsz);
    }
    notes.remove_prefix(name + text);
  }
  return "";
}

// Called by dl_iterate_phdr, with the program first; 1 ends that.
int TakeFirst(dl_phdr_info* object, size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const absl::string_view id = BuildIdAmong({at, segment.p_memsz});
    if (id.empty()) continue;
    *static_cast<std::string*>(found) = absl::BytesToHexString(id);
    break;
  }
  return 1;
}

}  // namespace

std::string BuildIdOfThisProgram() {
  std::string found;
  ::dl_iterate_phdr(&TakeFirst, &found);
  return found;
}

}  // namespace tutti::base
