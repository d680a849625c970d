// Tells where a failure comes of a script whose lines end as on Windows, with CR and LF: a shell
// takes the CR for a part of the line's last word, and the kernel for a part of the program's name
// behind "#!". Inside the room launch only.
#pragma once

#include <filesystem>
#include <string>

namespace tutti::launch {

// Returns `error`, a line as of LinesOf, and behind it that the file has Windows line ends, where
// the line shows them: "$'data\r': No such file or directory".
std::string WithShownLineEnds(std::string error);

// Does the same where the line names a script below `folder`, as "run.sh: line 4: syntax error:
// unexpected end of file" does, and its first line ends so. Reads no more than 64 KiB of it.
std::string WithLineEndsOfScript(std::string error, const std::filesystem::path& folder);

}  // namespace tutti::launch
