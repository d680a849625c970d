// Parses podman's error about a registry: the image is absent, the registry cannot be asked, or it
// did not answer. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::container {

struct RegistryAnswer {
  enum class Kind {
    kHasIt,     // or nothing is known against it
    kAbsent,    // it has answered, and has no such image
    kCannot,    // it cannot be asked, or does not give it: `why` has the reason and the remedy
    kRefused,   // it does not take the login of a secret; likewise
    kNoAnswer,  // so far: it is slow, or overloaded
  };
  Kind kind = Kind::kHasIt;
  std::string why;
};

// Judges `words`: what `podman manifest inspect FULL` wrote to standard error when it failed;
// `full`: the reference with its registry; `has_login`: it was asked with the login of a secret.
RegistryAnswer AnswerOf(absl::string_view words, absl::string_view full, bool has_login = false);

}  // namespace tutti::container
