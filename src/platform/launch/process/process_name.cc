#include "platform/launch/process/process_name.h"

#include <algorithm>
#include <cstring>

namespace tutti::launch {

void NameProcess(int argc, const char* const* argv, const std::vector<std::string>& words,
                 const std::string& last) {
  if (argc < 1) return;
  // The arguments stand one behind the other; each ends with a zero byte.
  char* const begin = const_cast<char*>(argv[0]);
  const char* end = begin;
  for (int i = 0; i < argc && argv[i] == end; ++i) end += std::strlen(argv[i]) + 1;
  const size_t room = static_cast<size_t>(end - begin);
  std::string text;
  for (const std::string& word : words) text.append(word).push_back('\0');
  if (room < text.size() + 2) return;
  text.append(last, last.size() - std::min(last.size(), room - text.size() - 1));
  text.resize(room, '\0');
  std::memcpy(begin, text.data(), room);
}

}  // namespace tutti::launch
