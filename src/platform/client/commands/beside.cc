#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/how_to_get.h"

namespace tutti::client {

absl::StatusOr<ExitCode> RunBeside(Context& context, const std::string& name,
                                   const std::vector<std::string>& arguments) {
  const std::string program = (context.program_folder / name).string();
  if (::access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(name, " is not beside this program, in ",
                                            context.program_folder.string(), ": ",
                                            HowToGet(context.program_folder, name)));
  }
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  context.out.flush();
  ::execv(program.c_str(), pointers.data());
  return base::ErrnoStatus(absl::StrCat("run ", program));
}

}  // namespace tutti::client
